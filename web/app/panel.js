// What goes on underneath, for everybody to see: the socket, the last push, the cursors, and what pulls brought that no
// push had. A button cuts the socket, so that one can watch push stop and pull heal.

import { typeName } from '../sdk/nudge.js'
import { t } from '../texts.js'
import { h, iconButton, reconcile, setText } from './dom.js'
import { secondTime } from './names.js'

const CUT_MS = 10_000
const MAX_EVENTS = 40

export function panel(app) {
  const { client } = app
  const values = {}
  const value = (name) => (values[name] = h('dd', { 'data-value': name }))
  const row = (name) => [h('dt', {}, t(`panel_${name}`)), value(name)]
  const cut = h('button', { type: 'button', class: 'wide', 'data-control': 'cut', onclick: toggleCut })
  const events = []
  const log = h('ol', { class: 'events', 'aria-label': t('panelEvents'), tabindex: 0 })
  let number = 0

  const element = h('aside', { class: 'pane panel', id: 'panel', 'aria-labelledby': 'panel-title' },
    h('header', { class: 'bar' }, h('h2', { id: 'panel-title' }, t('panel')), iconButton('close', t('close'), () => app.togglePanel(false))),
    h('div', { class: 'scroll' },
      h('p', { class: 'hint' }, t('panelIntro')),
      cut,
      h('dl', { class: 'facts' }, row('socket'), row('lastPush'), row('lastPull'), row('pushes'), row('healed')),
      h('h3', {}, t('panelCursors')),
      h('dl', { class: 'facts' }, row('private'), row('group'), row('friend'), row('read'), row('outbox')),
      h('h3', {}, t('panelEvents')),
      log))

  function toggleCut() {
    if (client.socket.state === 'held') client.socket.release()
    else client.socket.cut(CUT_MS)
  }

  function note(kind, text) {
    number += 1
    events.unshift({ key: number, version: '', at: Date.now(), kind, text })
    events.length = Math.min(events.length, MAX_EVENTS)
    update()
  }

  client.addEventListener('push', ({ detail }) => note('push', t('panelPush', { type: typeName(detail.contentType), id: detail.payload.id ?? '–' })))
  client.addEventListener('pull', ({ detail }) => {
    if (detail.error) note('lost', t('panelPullFailed', { reason: t(`reason_${detail.reason}`) }))
    else note(detail.healed ? 'healed' : 'pull', t('panelPull', { reason: t(`reason_${detail.reason}`), rows: detail.rows, healed: detail.healed }))
  })
  client.addEventListener('connection', () => note({ open: 'open', connecting: 'pull' }[client.socket.state] ?? 'lost', t(`socket_${client.socket.state}`)))

  function update() {
    const { socket, stats, store } = client
    // Whether everything that was missed before this connection is here.
    element.dataset.pulled = String(socket.state === 'open' && stats.lastPull?.at >= socket.since)
    if (!app.isPanelOpen) return
    const wait = Math.max(0, Math.ceil((socket.retryAt - Date.now()) / 1000))
    const isTimed = socket.state === 'waiting' || socket.state === 'held'
    element.dataset.state = socket.state
    setText(cut, socket.state === 'held' ? t('releaseSocket', { n: wait }) : t('cutSocket'))
    cut.disabled = socket.state === 'closed'
    setText(values.socket, t(`socket_${socket.state}`) + (isTimed ? ` · ${wait} s` : ''))
    setText(values.lastPush, stats.lastPush ? `${secondTime(stats.lastPush.at)} · ${typeName(stats.lastPush.type)}` : '–')
    setText(values.lastPull, stats.lastPull ? `${secondTime(stats.lastPull.at)} · ${t(`reason_${stats.lastPull.reason}`)}` : '–')
    setText(values.pushes, String(stats.pushes))
    setText(values.healed, String(client.healed))
    setText(values.private, String(store.cursors.private))
    setText(values.group, String(store.cursors.group))
    setText(values.friend, stamp(store.cursors.friend))
    setText(values.read, stamp(store.cursors.read))
    setText(values.outbox, String(store.outbox.size))
    reconcile(log, events, (event) => h('li', { class: event.kind }, h('time', {}, secondTime(event.at)), ' ', event.text))
  }

  return { element, update }
}

function stamp(cursor) {
  return cursor ? `${secondTime(cursor.lastUpdateTime)} · ${cursor.lastId}` : '–'
}
