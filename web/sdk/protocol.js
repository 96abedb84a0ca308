// Numbers and small rules of the wire (docs/protocol.md, "Content types" and "Close codes").

/** Types of conversations. */
export const PRIVATE = 1
export const GROUP = 2

/** Types of messages that people send. They count as unread and can be recalled. */
export const TEXT = 101
export const IMAGE = 102
export const VOICE = 103
export const VIDEO = 104
export const FILE = 105
export const MERGE = 107
export const CARD = 108
export const FACE = 115
export const MATERIAL = 125
export const RECALL = 2101

const SENT_BY_USERS = new Set([TEXT, IMAGE, VOICE, VIDEO, FILE, MERGE, CARD, FACE, MATERIAL])
const STATUS_RECALLED = 2

const CHAT_FRAME = 'im-notification'
export const FRIEND_INFO = 1209
export const RECEIPT = 2200
export const READ = 2201
export const TYPING = 2301

/** Members, names or roles of a group have changed: its member list is stale. */
export const MEMBER_EVENTS = new Set([1501, 1504, 1507, 1508, 1509, 1510, 1511, 1512, 1513, 1516, 1517, 1518])

/** Closed from another device; signed out. After all other codes a client comes back. */
export const CLOSED_ELSEWHERE = 4001
export const SIGNED_OUT = 4002

/** `p7` is the conversation with user 7, `g5` that of group 5. */
export function conversationKey(type, target) {
  return (type === GROUP ? 'g' : 'p') + target
}

const NAMES = {
  [TEXT]: 'TEXT',
  [IMAGE]: 'IMAGE',
  [VOICE]: 'VOICE',
  [VIDEO]: 'VIDEO',
  [FILE]: 'FILE',
  [MERGE]: 'MERGE',
  [CARD]: 'CARD',
  [FACE]: 'FACE',
  [MATERIAL]: 'MATERIAL',
  [RECALL]: 'RECALL',
  [RECEIPT]: 'RECEIPT',
  [READ]: 'READ',
  [TYPING]: 'TYPING'
}

/** What the documentation calls a type, for people who read logs. */
export function typeName(type) {
  return NAMES[type] ?? (type < 1500 ? `FRIEND ${type}` : type < 1600 ? `GROUP ${type}` : String(type))
}

/** The opposite of {@link conversationKey}. */
export function parseConversation(key) {
  return { type: key[0] === 'g' ? GROUP : PRIVATE, target: Number(key.slice(1)) }
}

/** The conversation of a row of a message table, as `me` sees it. */
export function conversationOf(table, row, me) {
  if (table === GROUP) return conversationKey(GROUP, row.groupId)
  return conversationKey(PRIVATE, row.senderId === me ? row.receiverId : row.senderId)
}

export function isSentByUsers(type) {
  return SENT_BY_USERS.has(type)
}

/** The message is shown as recalled: it lost its text. */
export function isRecalled(row) {
  return row.status === STATUS_RECALLED
}

/** Takes the text out of a row. */
export function recall(row) {
  return { ...row, status: STATUS_RECALLED, content: '{}' }
}

/** The id that a RECALL row takes back, else null. Lists show recalled messages as type 2101 too, but name no id. */
export function recalledId(row) {
  if (row.type !== RECALL) return null
  const id = parseContent(row).messageId
  return typeof id === 'number' ? id : null
}

/** The content of a row as an object; `{}` where it is none. */
export function parseContent(row) {
  try {
    const content = JSON.parse(row.content)
    return content && typeof content === 'object' && !Array.isArray(content) ? content : {}
  } catch {
    return {}
  }
}

/** A text frame as `{conversationType, contentType, payload}`; null where it is a pong or not for us. */
export function parseFrame(text) {
  try {
    const frame = JSON.parse(text)
    if (frame?.type !== CHAT_FRAME) return null
    const envelope = typeof frame.content === 'string' ? JSON.parse(frame.content) : frame.content
    return envelope && typeof envelope.payload === 'object' && envelope.payload ? envelope : null
  } catch {
    return null
  }
}

/** An id for a message: unique, printable, at most 64 characters. Works on pages without TLS too. */
export function newClientId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
