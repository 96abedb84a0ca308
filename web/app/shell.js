// The page of a signed-in user: lists on the left, the conversation in the middle, what goes on underneath on the right.

import { errorText, t } from '../texts.js'
import { chatList, isSilent, totalUnread } from './chats.js'
import { contactList, openRequests } from './contacts.js'
import { conversationPane } from './conversation.js'
import { showNewGroup } from './dialogs.js'
import { h, iconButton, setText } from './dom.js'
import { avatar, conversationName, userName } from './names.js'
import { panel } from './panel.js'
import { summary } from './tips.js'

const TYPING_MS = 5_000
const NOTICE_MS = 6_000
const WIDE = matchMedia('(min-width: 1100px)')

/** What the parts of the page share: the client, what is open, and the verbs that concern several parts. */
class App {
  open = null
  filter = ''
  tab = 'chats'
  canUpload = false
  isPanelOpen = WIDE.matches
  #typists = new Map()
  #isWaiting = false

  constructor(client, onUpdate) {
    this.client = client
    this.onUpdate = onUpdate
  }

  openConversation(key) {
    const was = this.open
    this.open = key
    // So that “back” goes to the list, as phones lead one to expect.
    if (key && !was) history.pushState(null, '')
    // At once: what is not shown yet cannot get the focus.
    this.onUpdate()
    if (key) this.parts.conversation.focusComposer()
    else if (was) document.querySelector(`.list [data-key="${was}"] button`)?.focus()
  }

  togglePanel(isOpen = !this.isPanelOpen) {
    this.isPanelOpen = isOpen
    this.update()
  }

  /** A call that changes something; a failure is told. */
  act(call) {
    return this.try(this.client.act(call))
  }

  async try(promise) {
    try {
      return await promise
    } catch (error) {
      this.notify(errorText(error))
      return undefined
    }
  }

  startTyping(conversation, userId) {
    const typists = this.#typists.get(conversation) ?? new Map()
    this.#typists.set(conversation, typists)
    clearTimeout(typists.get(userId))
    typists.set(userId, setTimeout(() => this.stopTyping(conversation, userId), TYPING_MS))
    this.update()
  }

  stopTyping(conversation, userId) {
    const typists = this.#typists.get(conversation)
    clearTimeout(typists?.get(userId))
    if (typists?.delete(userId)) this.update()
  }

  typists(conversation) {
    return [...(this.#typists.get(conversation)?.keys() ?? [])]
  }

  isTyping(conversation) {
    return this.typists(conversation).length > 0
  }

  /** Shows what is there now; many changes together once. Not by animation frames, which hidden pages do not get. */
  update() {
    if (this.#isWaiting) return
    this.#isWaiting = true
    queueMicrotask(() => {
      this.#isWaiting = false
      this.onUpdate()
    })
  }

  notify(text) {
    this.parts.notice(text)
  }
}

/** `session` has `signOut()` and `leave()`. What must be undone when the page goes is returned as `stop`. */
export function chatPage(client, session) {
  const app = new App(client, update)
  const chats = chatList(app)
  const contacts = contactList(app)
  const conversation = conversationPane(app)
  const facts = panel(app)
  const banner = connectionBanner(app)
  const notice = noticeBar()
  app.parts = { conversation, notice: notice.show }

  const me = h('span', { class: 'me-name' }, '')
  const picture = h('span', {})
  const chatsTab = tab('chats', t('chats'))
  const contactsTab = tab('contacts', t('contacts'))
  const filter = h('input', { type: 'search', id: 'filter', placeholder: t('filter'), autocomplete: 'off', oninput: () => { app.filter = filter.value; update() } })
  const side = h('nav', { class: 'pane side', 'aria-label': t('lists') },
    h('header', { class: 'bar' }, picture, h('h1', { class: 'titles' }, me),
      iconButton('pulse', t('panel'), () => app.togglePanel(), { 'aria-controls': 'panel' }),
      iconButton('plus', t('newGroup'), () => showNewGroup(app)), accountMenu(session)),
    h('div', { class: 'tabs', role: 'tablist', 'aria-label': t('lists'), onkeydown: switchTab }, chatsTab.element, contactsTab.element),
    h('div', { class: 'filter' }, h('label', { class: 'unseen', for: 'filter' }, t('filter')), filter),
    h('div', { class: 'tab-panel', role: 'tabpanel', id: 'panel-chats', 'aria-labelledby': 'tab-chats' }, chats.element),
    h('div', { class: 'tab-panel', role: 'tabpanel', id: 'panel-contacts', 'aria-labelledby': 'tab-contacts' }, contacts.element))
  const element = h('div', { class: 'chat' }, h('a', { class: 'skip', href: '#composer', onclick: skip }, t('skip')), banner.element, h('div', { class: 'panes' }, side, conversation.element, facts.element), notice.element)

  function tab(name, text) {
    const badge = h('span', { class: 'badge', hidden: true })
    return {
      badge,
      element: h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `panel-${name}`, onclick: () => { app.tab = name; update() } }, text, badge)
    }
  }

  function switchTab(event) {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return
    app.tab = app.tab === 'chats' ? 'contacts' : 'chats'
    update()
    side.querySelector('[role=tab][aria-selected=true]').focus()
  }

  function skip(event) {
    event.preventDefault()
    if (app.open) conversation.focusComposer()
  }

  function update() {
    const unread = totalUnread(client)
    showBadge(chatsTab.badge, unread)
    showBadge(contactsTab.badge, openRequests(client).length)
    for (const [name, { element: button }] of [['chats', chatsTab], ['contacts', contactsTab]]) {
      const isSelected = app.tab === name
      button.setAttribute('aria-selected', String(isSelected))
      button.tabIndex = isSelected ? 0 : -1
      side.querySelector(`#panel-${name}`).hidden = !isSelected
    }
    document.title = unread ? `(${unread > 99 ? '99+' : unread}) Nudge` : 'Nudge'
    element.classList.toggle('has-open', Boolean(app.open))
    element.classList.toggle('has-panel', app.isPanelOpen)
    facts.element.hidden = !app.isPanelOpen
    for (const button of element.querySelectorAll('[aria-controls=panel]')) button.setAttribute('aria-expanded', String(app.isPanelOpen))
    if (app.tab === 'chats') chats.update()
    else contacts.update()
    conversation.update()
    conversation.refresh()
    banner.update()
    facts.update()
  }

  const goBack = () => app.open && app.openConversation(null)
  addEventListener('popstate', goBack)
  const listeners = {
    change: () => app.update(),
    connection: () => app.update(),
    typing: ({ detail }) => app.startTyping(detail.conversation, detail.senderId),
    storagefailed: () => app.notify(t('storageFailed')),
    message: ({ detail }) => {
      app.stopTyping(detail.conversation, detail.row.senderId)
      if (!isSilent(client, detail.conversation)) announce(client, detail)
    }
  }
  for (const [name, listener] of Object.entries(listeners)) client.addEventListener(name, listener)
  const ticks = setInterval(() => { banner.update(); facts.update() }, 1_000)

  app.try(loadMe())
  async function loadMe() {
    app.canUpload = await client.api.canUpload()
    const { user } = await client.api.get('/system/auth/get-permission-info')
    setText(me, user.nickname)
    picture.replaceChildren(avatar(user.nickname, user.id, user.avatar))
    app.update()
  }

  update()
  return {
    element,
    looked: () => update(),
    notify: (text) => app.notify(text),
    stop() {
      clearInterval(ticks)
      removeEventListener('popstate', goBack)
      for (const [name, listener] of Object.entries(listeners)) client.removeEventListener(name, listener)
    }
  }
}

function accountMenu(session) {
  return h('details', { class: 'menu' },
    h('summary', { class: 'icon-button', 'aria-label': t('account'), title: t('account') }, '⋯'),
    h('div', { class: 'menu-items' },
      h('button', { type: 'button', onclick: session.leave }, t('switchUser')),
      h('button', { type: 'button', onclick: session.signOut }, t('signOut'))))
}

function showBadge(badge, count) {
  badge.hidden = count === 0
  setText(badge, count > 99 ? '99+' : String(count))
}

/** Says in one line that the connection is away, and what is done about it. */
function connectionBanner(app) {
  const text = h('span', { role: 'status' })
  const countdown = h('span', { 'aria-hidden': 'true' })
  const button = h('button', { type: 'button', class: 'small', onclick: again }, t('tryNow'))
  const element = h('div', { class: 'banner', hidden: true }, h('span', {}, text, ' ', countdown), button)

  function again() {
    const { socket } = app.client
    if (socket.state === 'held') socket.release()
    else if (socket.state === 'closed') socket.connect()
    else app.client.comeBack('action')
  }

  function update() {
    const { socket } = app.client
    const isFirst = socket.opened === 0 && socket.state === 'connecting'
    const isAway = socket.state !== 'open' && !isFirst
    element.hidden = !isAway
    if (!isAway) return setText(text, '')
    element.dataset.state = socket.state
    const name = navigator.onLine === false ? 'offline' : socket.state === 'closed' ? 'closedElsewhere' : socket.state === 'held' ? 'held' : 'lost'
    setText(text, t(`banner_${name}`))
    const seconds = Math.ceil((socket.retryAt - Date.now()) / 1000)
    setText(countdown, socket.state !== 'connecting' && socket.state !== 'closed' && seconds > 0 ? t('inSeconds', { n: seconds }) : '')
    button.disabled = socket.state === 'connecting'
  }

  return { element, update }
}

/** A line that tells of a failure and goes away by itself. */
function noticeBar() {
  const element = h('div', { class: 'toast', role: 'alert', hidden: true })
  let timer = null
  return {
    element,
    show(text) {
      clearTimeout(timer)
      element.textContent = text
      element.hidden = false
      timer = setTimeout(() => (element.hidden = true), NOTICE_MS)
    }
  }
}

/** Reads a new message out. */
function announce(client, { conversation, row }) {
  const text = summary(client, row).slice(0, 200)
  const place = row.groupId ? `${conversationName(client, conversation)}, ` : ''
  document.getElementById('announcer').textContent = `${place}${userName(client, row.senderId, row.groupId)}: ${text}`
}
