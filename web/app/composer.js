// Where messages are written: text, a reply, pictures and files.

import * as wire from '../sdk/nudge.js'
import { errorText, t } from '../texts.js'
import { h, icon, iconButton, setText } from './dom.js'
import { userName } from './names.js'
import { summary } from './tips.js'

const MAX_LENGTH = 4096
const MAX_FILE_BYTES = 16 * 1024 * 1024

export function composer(app) {
  /** What was written and not sent, by conversation. */
  const texts = new Map()
  const replies = new Map()
  let open = null

  const input = h('textarea', { id: 'composer', rows: 1, maxlength: MAX_LENGTH, placeholder: t('writeMessage'), 'aria-label': t('writeMessage'), dir: 'auto', oninput: changed, onkeydown: key, onpaste: paste })
  const quoted = h('span', { class: 'reply-text' })
  const reply = h('div', { class: 'reply', hidden: true }, icon('reply'), quoted, iconButton('close', t('noReply'), () => setReply(null)))
  const picker = h('input', { type: 'file', class: 'unseen', multiple: true, tabindex: -1, 'aria-hidden': 'true', onchange: () => { sendFiles([...picker.files]); picker.value = '' } })
  const attach = iconButton('attach', t('attach'), () => picker.click())
  const receipt = h('button', { type: 'button', class: 'icon-button toggle', 'aria-pressed': 'false', 'aria-label': t('askReceipt'), title: t('askReceipt'), onclick: () => receipt.setAttribute('aria-pressed', String(!wantsReceipt())) }, icon('receipt'))
  const send = h('button', { type: 'submit', class: 'primary round', 'aria-label': t('send'), title: t('send') }, icon('send'))
  const state = h('p', { class: 'hint', role: 'status' })
  const form = h('form', { class: 'composer', onsubmit: submit }, attach, picker, receipt, input, send)
  const closed = h('p', { class: 'closed' })
  const element = h('div', { class: 'writer' }, state, reply, form, closed)

  const wantsReceipt = () => receipt.getAttribute('aria-pressed') === 'true'

  function update() {
    if (open !== app.open) {
      open = app.open
      input.value = texts.get(open) ?? ''
      receipt.setAttribute('aria-pressed', 'false')
      showReply()
      resize()
    }
    const reason = whyClosed(app.client, open)
    form.hidden = Boolean(reason)
    closed.hidden = !reason
    setText(closed, reason ?? '')
    attach.hidden = !app.canUpload
    receipt.hidden = wire.parseConversation(open).type !== wire.GROUP
  }

  function changed() {
    texts.set(open, input.value)
    resize()
    if (input.value.trim()) app.client.typing(open)
  }

  function resize() {
    input.style.height = 'auto'
    input.style.height = `${input.scrollHeight}px`
  }

  function key(event) {
    if (event.key === 'Escape' && replies.has(open)) return setReply(null)
    // While an input method composes, Enter chooses what it offers.
    const isComposing = event.isComposing || event.keyCode === 229
    if (event.key !== 'Enter' || event.shiftKey || isComposing) return
    event.preventDefault()
    form.requestSubmit()
  }

  function submit(event) {
    event.preventDefault()
    const text = input.value.trim()
    if (!text) return
    app.client.send(open, wire.TEXT, { content: text, ...quote() }, options())
    input.value = ''
    texts.delete(open)
    setReply(null)
    resize()
    input.focus()
  }

  function options() {
    return wire.parseConversation(open).type === wire.GROUP ? { receipt: wantsReceipt() } : {}
  }

  function quote() {
    const row = replies.get(open)
    return row ? { quote: { messageId: row.id } } : {}
  }

  function setReply(row) {
    if (row) replies.set(open, row)
    else replies.delete(open)
    showReply()
    input.focus()
  }

  function showReply() {
    const row = replies.get(open)
    reply.hidden = !row
    if (row) setText(quoted, `${userName(app.client, row.senderId, row.groupId)}: ${summary(app.client, row)}`)
  }

  function paste(event) {
    const files = [...event.clipboardData.files]
    if (!files.length || !app.canUpload) return
    event.preventDefault()
    sendFiles(files)
  }

  /** One after the other: first the file goes to the server, then the message that names it. */
  async function sendFiles(files) {
    const conversation = open
    for (const file of files) {
      if (file.size > MAX_FILE_BYTES) {
        app.notify(t('tooLarge', { name: file.name }))
        continue
      }
      setText(state, t('uploading', { name: file.name }))
      try {
        const url = await app.client.api.upload(file, file.name)
        const isPicture = /^image\/(png|jpeg|gif|webp|avif)$/.test(file.type)
        const content = { url, name: file.name, size: file.size }
        app.client.send(conversation, isPicture ? wire.IMAGE : wire.FILE, content)
      } catch (error) {
        app.notify(errorText(error))
      }
    }
    setText(state, '')
  }

  return { element, update, reply: setReply, sendFiles, focus: () => input.focus() }
}

/** Why nothing can be written here; null where something can. */
function whyClosed(client, conversation) {
  const { type, target } = wire.parseConversation(conversation)
  if (type === wire.PRIVATE) return client.store.friend.get(target)?.status === 1 ? t('noFriendNow') : null
  const group = client.store.group.get(target)
  return !group || client.store.isMember(target) ? null : t(group.status === 1 ? 'groupDissolved' : 'groupLeft')
}
