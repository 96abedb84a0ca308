// The open conversation: its header, its messages, its composer.

import * as wire from '../sdk/nudge.js'
import { errorText, t } from '../texts.js'
import { composer } from './composer.js'
import { showGroup, showReaders } from './dialogs.js'
import { h, iconButton, reconcile, setText } from './dom.js'
import { draftElement, messageElement, messageVersion } from './message.js'
import { conversationAvatar, conversationName, dayName, isSameDay, userName } from './names.js'
import { isShown, isTip } from './tips.js'

/** Messages shown at first, and further ones with each step back. */
const PAGE = 60
/** Nearer to the end than this, the view follows new messages. */
const STICKY_PX = 120
/** Messages of one sender within this time stand together. */
const TOGETHER_MS = 5 * 60 * 1000

export function conversationPane(app) {
  const picture = h('span', { class: 'header-picture' })
  const title = h('h2', { id: 'conversation-title', tabindex: -1 })
  const subtitle = h('p', { class: 'subtitle', role: 'status' })
  const info = iconButton('people', t('groupInfo'), () => showGroup(app, target()))
  const header = h('header', { class: 'bar' },
    iconButton('back', t('back'), () => history.back(), { class: 'icon-button only-narrow' }),
    picture, h('div', { class: 'titles' }, title, subtitle), info,
    iconButton('pulse', t('panel'), () => app.togglePanel(), { class: 'icon-button only-narrow', 'aria-controls': 'panel' }))
  const older = h('button', { type: 'button', class: 'link older', onclick: showOlder }, t('older'))
  const list = h('ol', { class: 'messages', onkeydown: move, onfocusin: (event) => activate(event.target.closest('li')) })
  const scroll = h('div', { class: 'scroll log', role: 'log', 'aria-live': 'off', 'aria-labelledby': 'conversation-title', onscroll: () => (newest.hidden = isAtEnd()) }, older, list)
  const newest = h('button', { type: 'button', class: 'newest', onclick: toEnd }, t('toNewest'))
  const writer = composer(app)
  const pane = h('section', { class: 'conversation', 'aria-labelledby': 'conversation-title' }, header, h('div', { class: 'log-frame' }, scroll, newest), writer.element)
  const nothing = h('section', { class: 'nothing' }, h('img', { src: '/assets/icon.svg', alt: '', width: 64, height: 64 }), h('p', {}, t('chooseChat')))
  const element = h('main', { class: 'pane main', id: 'conversation' }, nothing, pane)

  let open = null
  let limit = PAGE
  /** The read position when the conversation was opened, if something was unread. */
  let unreadFrom = null
  /** For which conversation, connection and state of members it was fetched what is needed while one is open. */
  let loaded = ''
  /** Conversations of which the server has older messages than we know; false: it has not. */
  const hasOlder = new Map()
  const actions = {
    reply: (row) => writer.reply(row),
    recall: (row) => app.try(app.client.recall(open, row.id)),
    showReaders: (row) => showReaders(app, row),
    jumpTo
  }

  const target = () => wire.parseConversation(open).target

  function update() {
    nothing.hidden = Boolean(app.open)
    pane.hidden = !app.open
    if (!app.open) return void (open = null)
    const isOther = app.open !== open
    if (isOther) enter()
    const sticks = isOther || isAtEnd() || app.client.store.drafts(open).some((draft) => draft.createdAt > Date.now() - 300)
    updateHeader()
    const rows = app.client.store.messages(open).filter(isShown)
    older.hidden = rows.length <= limit && !hasOlder.get(open)
    reconcile(list, items(rows.slice(-limit)), (item) => item.render())
    if (!list.querySelector('li[tabindex="0"]')) activate(list.lastElementChild)
    writer.update()
    if (sticks) toEnd()
    newest.hidden = isAtEnd()
    if (document.visibilityState === 'visible') readTo(rows)
  }

  function enter() {
    open = app.open
    limit = PAGE
    unreadFrom = app.client.store.unread(open) ? app.client.store.readPosition(open) : null
    list.replaceChildren()
  }

  function load() {
    const { type } = wire.parseConversation(open)
    if (!hasOlder.has(open)) findOlder(open)
    if (type === wire.GROUP) return void app.client.loadMembers(target()).catch(() => {})
    app.client.loadPeerRead(target()).catch(() => {})
    app.client.loadFriend(target()).catch(() => {})
  }

  /** Whether pulls brought all of it: they go back only some weeks. */
  async function findOlder(conversation) {
    hasOlder.set(conversation, false)
    const more = await app.client.loadOlder(conversation, 1).catch(() => true)
    hasOlder.set(conversation, more)
    app.update()
  }

  /** What only an open conversation needs is fetched when it is opened, after a reconnect, and after events about members. */
  function refresh() {
    if (!open) return void (loaded = '')
    const isGroup = wire.parseConversation(open).type === wire.GROUP
    const wanted = `${open} ${app.client.socket.opened} ${isGroup ? app.client.store.memberEvents : ''}`
    if (wanted === loaded) return
    loaded = wanted
    load()
  }

  function updateHeader() {
    const { type } = wire.parseConversation(open)
    const name = conversationName(app.client, open)
    setText(title, name)
    info.hidden = type !== wire.GROUP || !app.client.store.isMember(target())
    if (picture.dataset.of !== `${open} ${name}`) {
      picture.dataset.of = `${open} ${name}`
      picture.replaceChildren(conversationAvatar(app.client, open))
    }
    const typing = app.typists(open).map((id) => userName(app.client, id, type === wire.GROUP ? target() : null))
    const members = type === wire.GROUP && app.client.store.members(target())?.list.filter((member) => member.status === 0)
    setText(subtitle, typing.length ? t('isTyping', { name: typing.join(t('listComma')) }) : members ? t('memberCount', { n: members.length }) : '')
  }

  /** Lines for days and for the first unread message, messages, and what is being sent. */
  function items(rows) {
    const all = []
    let before = null
    let isMarked = unreadFrom === null
    for (const row of rows) {
      if (!before || !isSameDay(before.sendTime, row.sendTime)) {
        const day = dayName(row.sendTime)
        all.push({ key: `day${new Date(row.sendTime).toDateString()}`, version: day, render: () => h('li', { class: 'line' }, h('span', {}, day)) })
        before = null
      }
      if (!isMarked && row.id > unreadFrom && row.senderId !== app.client.me && wire.isSentByUsers(row.type)) {
        isMarked = true
        all.push({ key: 'unread', version: '', render: () => h('li', { class: 'line unread' }, h('span', {}, t('newMessages'))) })
        before = null
      }
      const isFirst = !before || isTip(before) || before.senderId !== row.senderId || row.sendTime - before.sendTime > TOGETHER_MS
      const version = messageVersion(app.client, open, row, isFirst)
      all.push({ key: row.id, version, render: () => messageElement(app.client, open, row, isFirst, actions) })
      before = row
    }
    for (const draft of app.client.store.drafts(open)) {
      all.push({ key: draft.clientMessageId, version: JSON.stringify(draft.error ?? null), render: () => draftElement(app.client, draft) })
    }
    return all
  }

  function readTo(rows) {
    const last = rows.findLast((row) => row.senderId !== app.client.me)
    if (last) app.client.markRead(open, last.id)
  }

  async function showOlder() {
    const conversation = open
    const fromEnd = scroll.scrollHeight - scroll.scrollTop
    older.disabled = true
    try {
      limit += PAGE
      if (app.client.store.messages(open).filter(isShown).length < limit) {
        const more = await app.client.loadOlder(open)
        hasOlder.set(conversation, more)
      }
    } catch (error) {
      app.notify(errorText(error))
    }
    older.disabled = false
    if (conversation !== open) return
    update()
    scroll.scrollTop = scroll.scrollHeight - fromEnd
  }

  function jumpTo(id) {
    const item = list.querySelector(`li[data-key="${Number(id)}"]`)
    if (!item) return app.notify(t('notLoaded'))
    item.scrollIntoView({ block: 'center' })
    item.focus({ preventScroll: true })
  }

  function isAtEnd() {
    return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < STICKY_PX
  }

  function toEnd() {
    scroll.scrollTop = scroll.scrollHeight
  }

  /** Arrow keys go from message to message; the controls of only that one are in the tab order. */
  function move(event) {
    const item = event.target.closest('li')
    const next = { ArrowUp: item?.previousElementSibling, ArrowDown: item?.nextElementSibling, Home: list.firstElementChild, End: list.lastElementChild }[event.key]
    if (!next || event.target.closest('button, a, audio, video')) return
    event.preventDefault()
    activate(next)
    next.focus()
  }

  function activate(item) {
    if (!item || item.parentElement !== list) return
    for (const other of list.querySelectorAll('li[tabindex="0"]')) setTabIndex(other, -1)
    setTabIndex(item, 0)
  }

  return { element, update, refresh, focusComposer: () => writer.focus(), focusTitle: () => title.focus() }
}

function setTabIndex(item, value) {
  item.tabIndex = value
  for (const control of item.querySelectorAll('button, a')) control.tabIndex = value
}
