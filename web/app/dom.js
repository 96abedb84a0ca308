// Making and updating elements. Texts go in as text nodes only: nothing that a message holds is ever parsed as HTML.

/**
 * `h('button', {class: 'quiet', onclick: send, 'aria-label': 'Send'}, icon)`: functions become listeners, `null`,
 * `undefined` and `false` nothing, `true` an empty attribute. Children are nodes, texts, or nothing.
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

const SVG = 'http://www.w3.org/2000/svg'

/** Paths of 24 × 24 line drawings. */
const ICONS = {
  send: 'M4 12 20 4l-5 16-4-7-7-1z',
  attach: 'M20 11.5 12.4 19a5 5 0 0 1-7-7l8-8a3.3 3.3 0 0 1 4.7 4.7l-8 7.9a1.7 1.7 0 0 1-2.3-2.3l7.2-7.2',
  back: 'M15 5l-7 7 7 7',
  close: 'M6 6l12 12M18 6 6 18',
  reply: 'M10 6 4 12l6 6M4 12h9a7 7 0 0 1 7 7',
  recall: 'M4 5v5h5M4.6 10a8 8 0 1 1-.6 4',
  pulse: 'M3 12h4l3-8 4 16 3-8h4',
  plus: 'M12 5v14M5 12h14',
  info: 'M12 11v6M12 7.5v.5M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  people: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.5a6.5 6.5 0 0 1 3.5 5.5',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  file: 'M14 3H7a1.5 1.5 0 0 0-1.5 1.5v15A1.5 1.5 0 0 0 7 21h10a1.5 1.5 0 0 0 1.5-1.5V7.5zM14 3v4.5h4.5',
  receipt: 'M2 13l4 4 8-9M11 16l1 1 8-9',
  clock: 'M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  check: 'M5 13l4 4L19 7',
  warning: 'M12 4 2.8 20h18.4zM12 10v4M12 17v.5'
}

/** A drawing that says nothing by itself: whatever holds it has a name. */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  svg.setAttribute('class', 'icon')
  svg.setAttribute('aria-hidden', 'true')
  const path = document.createElementNS(SVG, 'path')
  path.setAttribute('d', ICONS[name])
  svg.append(path)
  return svg
}

/** A button that shows only a drawing. */
export function iconButton(name, label, onclick, attributes) {
  return h('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick, ...attributes }, icon(name))
}

/**
 * Makes the children of `parent` those of `items`, each `{key, version, …}`. A child stays as long as its version does,
 * so focus, selection and scrolling survive. Where the child with the focus is made anew, its control of the same
 * `data-control` gets the focus.
 */
export function reconcile(parent, items, render) {
  const old = new Map(Array.from(parent.children, (child) => [child.dataset.key, child]))
  let place = parent.firstElementChild
  for (const item of items) {
    const key = String(item.key)
    let child = old.get(key)
    old.delete(key)
    if (!child || child.dataset.version !== item.version) {
      const fresh = render(item)
      fresh.dataset.key = key
      fresh.dataset.version = item.version
      if (child) {
        if (place === child) place = fresh
        replaceKeepingFocus(child, fresh)
      }
      child = fresh
    }
    if (child === place) place = place.nextElementSibling
    else parent.insertBefore(child, place)
  }
  for (const child of old.values()) child.remove()
}

function replaceKeepingFocus(child, fresh) {
  const focused = child.contains(document.activeElement) ? document.activeElement : null
  child.replaceWith(fresh)
  if (!focused) return
  const control = focused.dataset.control
  const target = focused === child ? fresh : control && fresh.querySelector(`[data-control="${control}"]`)
  ;(target || fresh).focus({ preventScroll: true })
}

/** Sets a text only where it is another, so that nothing is read out twice. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}
