// One message: a bubble with what it holds, who wrote it, its state, and what can be done with it.

import * as wire from '../sdk/nudge.js'
import { errorText, t } from '../texts.js'
import { h, icon, iconButton } from './dom.js'
import { avatar, clockTime, exactTime, openable, sameOrigin, userName } from './names.js'
import { contentText, isTip, summary } from './tips.js'

/** How long a message can be taken back: the server's default. It decides; this only hides the button. */
const RECALL_MS = 5 * 60 * 1000

/**
 * The element of a stored row. `actions` has `reply(row)`, `recall(row)`, `showReaders(row)`, `jumpTo(id)`; `isFirst`
 * says that the row before is of somebody else.
 */
export function messageElement(client, conversation, row, isFirst, actions) {
  if (isTip(row)) return h('li', { class: 'tip', tabindex: -1 }, summary(client, row))
  const mine = row.senderId === client.me
  const name = userName(client, row.senderId, row.groupId)
  const text = t(mine ? 'messageOfMine' : 'messageOf', { name, time: clockTime(row.sendTime) })
  return h(
    'li',
    { class: `message${mine ? ' mine' : ''}${isFirst ? ' first' : ''}`, tabindex: -1 },
    mine ? null : h('div', { class: 'face' }, isFirst ? avatar(name, row.senderId, client.store.friend.get(row.senderId)?.avatar) : null),
    h('div', { class: 'column' },
      h('span', { class: 'unseen' }, text),
      isFirst && !mine && row.groupId ? h('span', { class: 'sender', 'aria-hidden': 'true' }, name) : null,
      h('div', { class: 'bubble' },
        quoteElement(client, row, actions),
        body(row.type, wire.parseContent(row)),
        h('span', { class: 'foot' },
          h('time', { datetime: new Date(row.sendTime).toISOString(), title: exactTime(row.sendTime) }, clockTime(row.sendTime)),
          mine ? stateElement(client, conversation, row, actions) : null)),
      toolbar(row, mine, conversation, client, actions))
  )
}

/** Everything that changes how a row looks. */
export function messageVersion(client, conversation, row, isFirst) {
  const names = [row.senderId, wire.parseContent(row).quote?.senderId].map((id) => id && userName(client, id, row.groupId))
  const isTemporary = isTip(row) ? summary(client, row) : mayRecall(client, conversation, row)
  return JSON.stringify([row.status, row.type, isFirst, receiptOf(client, conversation, row), names, isTemporary])
}

/** The element of a send that has no answer yet, or a refusal. */
export function draftElement(client, draft) {
  const content = wire.parseContent(draft)
  const state = draft.error
    ? h('span', { class: 'state failed', role: 'alert' }, icon('warning'), draft.error.text ? errorText(draft.error) : t('notSent'))
    : h('span', { class: 'state', title: t('sending') }, icon('clock'), h('span', { class: 'unseen' }, t('sending')))
  const buttons = draft.error
    ? h('div', { class: 'draft-actions' },
        h('button', { type: 'button', class: 'link', 'data-control': 'again', onclick: () => client.resend(draft.clientMessageId) }, t('tryAgain')),
        h('button', { type: 'button', class: 'link', 'data-control': 'discard', onclick: () => client.discard(draft.clientMessageId) }, t('discard')))
    : null
  return h('li', { class: 'message mine pending', tabindex: -1 },
    h('div', { class: 'column' },
      h('div', { class: 'bubble' }, body(draft.type, content), h('span', { class: 'foot' }, state)),
      buttons))
}

function body(type, content) {
  const address = openable(content.url)
  const own = sameOrigin(content.url)
  if (type === wire.TEXT) return h('p', { class: 'text', dir: 'auto' }, withLinks(String(content.content ?? '')))
  if ((type === wire.IMAGE || type === wire.FACE) && own) {
    const picture = h('img', { src: own, alt: String(content.name ?? '') || t('kindImage'), loading: 'lazy', class: 'picture' })
    return h('a', { href: own, target: '_blank', rel: 'noopener noreferrer', tabindex: -1 }, picture)
  }
  if (type === wire.VOICE && own) return h('audio', { src: own, controls: true, preload: 'none' })
  if (type === wire.VIDEO && own) return h('video', { src: own, controls: true, preload: 'none', class: 'picture' })
  const label = contentText(type, content)
  if (address && type !== wire.CARD) {
    const size = type === wire.FILE && content.size ? ` · ${fileSize(content.size)}` : ''
    return h('a', { href: address, target: '_blank', rel: 'noopener noreferrer', class: 'file', tabindex: -1 }, icon('file'), `${label}${size}`)
  }
  return h('p', { class: contentIsKnown(type) ? 'text' : 'text unknown' }, label)
}

/** The text, its addresses as links. */
function withLinks(text) {
  return text.split(/(https?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]])/).map((part, index) => {
    const address = index % 2 ? openable(part) : null
    return address ? h('a', { href: address, target: '_blank', rel: 'noopener noreferrer', tabindex: -1 }, part) : part
  })
}

function contentIsKnown(type) {
  return wire.isSentByUsers(type)
}

function quoteElement(client, row, actions) {
  const quote = wire.parseContent(row).quote
  if (!quote?.messageId) return null
  const content = wire.parseContent(quote)
  const name = userName(client, quote.senderId, row.groupId)
  const label = t('inReplyTo', { name })
  return h('button', { type: 'button', class: 'quote', tabindex: -1, 'data-control': 'quote', 'aria-label': `${label} ${contentText(quote.type, content)}`, onclick: () => actions.jumpTo(quote.messageId) },
    h('strong', {}, name), h('span', {}, contentText(quote.type, content)))
}

/** 'sent', 'read', or for a group receipt how many have read. */
function receiptOf(client, conversation, row) {
  if (row.senderId !== client.me) return null
  const { type, target } = wire.parseConversation(conversation)
  if (type === wire.PRIVATE) return row.receiptStatus === 2 || row.id <= (client.store.peerRead(target) ?? 0) ? 'read' : 'sent'
  if (!row.receiptStatus) return 'sent'
  return row.receiptStatus === 2 ? 'all' : `${row.readCount ?? 0}`
}

function stateElement(client, conversation, row, actions) {
  const receipt = receiptOf(client, conversation, row)
  const { type } = wire.parseConversation(conversation)
  if (type === wire.PRIVATE || !row.receiptStatus) {
    const label = t(receipt === 'read' ? 'read' : 'sent')
    return h('span', { class: `state ${receipt}`, title: label }, icon(receipt === 'read' ? 'receipt' : 'check'), h('span', { class: 'unseen' }, label))
  }
  const label = receipt === 'all' ? t('readByAll') : t('readBy', { n: Number(receipt) })
  return h('button', { type: 'button', class: 'state receipt', tabindex: -1, 'data-control': 'readers', onclick: () => actions.showReaders(row) }, icon('receipt'), label)
}

function mayRecall(client, conversation, row) {
  const { type, target } = wire.parseConversation(conversation)
  if (type === wire.GROUP) {
    const me = client.store.members(target)?.list.find((member) => member.userId === client.me)
    if (me && me.role < 3 && me.status === 0) return true
  }
  return row.senderId === client.me && Date.now() - row.sendTime < RECALL_MS
}

function toolbar(row, mine, conversation, client, actions) {
  return h('div', { class: 'tools', role: 'group', 'aria-label': t('messageActions') },
    iconButton('reply', t('reply'), () => actions.reply(row), { tabindex: -1, 'data-control': 'reply' }),
    mayRecall(client, conversation, row)
      ? iconButton('recall', t('recall'), () => actions.recall(row), { tabindex: -1, 'data-control': 'recall' })
      : null)
}

function fileSize(bytes) {
  return bytes < 1024 * 1024 ? `${Math.max(1, Math.round(bytes / 1024))} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`
}
