// What a message says in one line: for lists, quotes, announcements, and the events that stand between bubbles.

import * as wire from '../sdk/nudge.js'
import { t } from '../texts.js'
import { userName } from './names.js'

const LABELS = {
  [wire.IMAGE]: 'kindImage',
  [wire.VOICE]: 'kindVoice',
  [wire.VIDEO]: 'kindVideo',
  [wire.MERGE]: 'kindMerge',
  [wire.FACE]: 'kindFace',
  [wire.MATERIAL]: 'kindMaterial'
}

/** Rows that announce a recall are shown by the message that they take back. */
export function isShown(row) {
  return row.type !== wire.RECALL || wire.isRecalled(row)
}

/** Whether the row is a line between bubbles: an event, not something that somebody said. */
export function isTip(row) {
  return wire.isRecalled(row) || (row.type >= 1200 && row.type < 1700)
}

/** One line for a row, without the sender. */
export function summary(client, row) {
  if (wire.isRecalled(row)) return t('recalledBy', { name: userName(client, row.senderId, row.groupId) })
  if (row.type >= 1200 && row.type < 1700) return eventText(client, row)
  return contentText(row.type, wire.parseContent(row))
}

/** One line for what users send. */
export function contentText(type, content) {
  if (type === wire.TEXT) return String(content.content ?? '')
  if (type === wire.FILE) return t('kindFile', { name: String(content.name ?? '') })
  if (type === wire.CARD) return t('kindCard', { name: String(content.name ?? '') })
  return LABELS[type] ? t(LABELS[type]) : t('kindUnknown', { type })
}

function eventText(client, row) {
  const content = wire.parseContent(row)
  const name = (id) => userName(client, id, row.groupId)
  const names = (ids) => (Array.isArray(ids) ? ids : []).map(name).join(t('listComma'))
  const who = name(content.operatorUserId ?? row.senderId)
  switch (row.type) {
    case 1204:
      return t('eventFriends')
    case 1501:
      return t('eventCreated', { who })
    case 1502:
      return t('eventUpdated', { who })
    case 1504:
      return t('eventQuit', { who })
    case 1507:
      return t('eventOwner', { who: name(content.newOwnerUserId) })
    case 1508:
      return t('eventKicked', { who, names: names(content.memberUserIds) })
    case 1509:
      return t('eventInvited', { who, names: names(content.memberUserIds) })
    case 1510:
      return t('eventEntered', { who: name(content.entrantUserId) })
    case 1511:
      return t('eventDissolved', { who })
    case 1512:
      return t('eventMuted', { who, name: name(content.mutedUserId) })
    case 1513:
      return t('eventUnmuted', { who, name: name(content.mutedUserId) })
    case 1514:
      return t('eventAllMuted', { who })
    case 1515:
      return t('eventAllUnmuted', { who })
    case 1517:
      return t('eventAdmins', { names: names(content.memberUserIds) })
    case 1518:
      return t('eventNoAdmins', { names: names(content.memberUserIds) })
    case 1519:
      return t('eventNotice', { who, notice: String(content.newNotice ?? '') })
    case 1520:
      return t('eventName', { who, name: String(content.newName ?? '') })
    case 1531:
      return t('eventPinned', { who })
    case 1532:
      return t('eventUnpinned', { who })
    default:
      return t('kindUnknown', { type: row.type })
  }
}
