// The list of conversations, the newest first.

import { GROUP, isRecalled, parseConversation } from '../sdk/nudge.js'
import { t } from '../texts.js'
import { h, reconcile } from './dom.js'
import { conversationAvatar, conversationName, shortTime, userName } from './names.js'
import { contentText, isShown, isTip, summary } from './tips.js'

export function chatList(app) {
  const list = h('ul', { class: 'list', 'aria-label': t('chats') })
  const empty = h('p', { class: 'empty' }, t('noChats'))
  const element = h('div', { class: 'scroll' }, empty, list)

  function update() {
    const wanted = app.filter.trim().toLowerCase()
    const items = app.client.store
      .conversations()
      .map((key) => describe(app, key))
      .filter((item) => item && item.name.toLowerCase().includes(wanted))
      .sort((a, b) => b.time - a.time)
    empty.hidden = items.length > 0
    reconcile(list, items, (item) => chatItem(app, item))
  }

  return { element, update }
}

/** How many unread messages the list shows, without those of silent conversations. */
export function totalUnread(client) {
  const loud = client.store.conversations().filter((key) => !isSilent(client, key))
  return loud.reduce((total, key) => total + client.store.unread(key), 0)
}

export function isSilent(client, key) {
  const { type, target } = parseConversation(key)
  return Boolean((type === GROUP ? client.store.group : client.store.friend).get(target)?.silent)
}

function describe(app, key) {
  const { client } = app
  const row = client.store.lastMessage(key, isShown)
  const draft = client.store.drafts(key).at(-1)
  if (!row && !draft) return null
  const name = conversationName(client, key)
  const time = draft ? draft.createdAt : row.sendTime
  const text = app.isTyping(key) ? t('typing') : draft ? draftText(draft) : rowText(client, row)
  const unread = client.store.unread(key)
  const item = { key, name, time, text, unread, isOpen: app.open === key, isSilent: isSilent(client, key), hasFailed: Boolean(draft?.error) }
  return { ...item, version: JSON.stringify([item, shortTime(time)]) }
}

function draftText(draft) {
  return contentText(draft.type, JSON.parse(draft.content))
}

function rowText(client, row) {
  const text = summary(client, row)
  if (isTip(row) || isRecalled(row)) return text
  if (row.senderId === client.me) return t('youSaid', { text })
  return row.groupId ? t('someoneSaid', { name: userName(client, row.senderId, row.groupId), text }) : text
}

function chatItem(app, item) {
  const count = item.unread > 99 ? '99+' : String(item.unread)
  const badge = item.unread
    ? h('span', { class: `badge${item.isSilent ? ' quiet' : ''}` }, h('span', { 'aria-hidden': 'true' }, count), h('span', { class: 'unseen' }, t('unread', { n: item.unread })))
    : null
  return h('li', {},
    h('button', { type: 'button', class: 'item', 'data-control': 'open', 'aria-current': item.isOpen ? 'true' : null, onclick: () => app.openConversation(item.key) },
      conversationAvatar(app.client, item.key),
      h('span', { class: 'item-text' },
        h('span', { class: 'item-head' }, h('span', { class: 'item-name' }, item.name), h('time', {}, shortTime(item.time))),
        h('span', { class: 'item-foot' }, h('span', { class: `item-last${item.hasFailed ? ' failed' : ''}`, dir: 'auto' }, item.text), badge))))
}
