// How people, groups and times are shown.

import { PRIVATE, parseConversation } from '../sdk/nudge.js'
import { locale, t } from '../texts.js'
import { h } from './dom.js'

const HUES = 8

/** A user's name: the remark of a friend, the name in a group, the nickname; else the number. */
export function userName(client, userId, groupId = null) {
  if (userId === client.me) return t('you')
  const friend = client.store.friend.get(userId)
  if (friend?.displayName) return friend.displayName
  const member = groupId && client.store.members(groupId)?.list.find((candidate) => candidate.userId === userId)
  return member?.displayUserName || member?.nickname || friend?.nickname || foundNames.get(userId) || t('userNumber', { id: userId })
}

/** Names of people who are no friends, as searches and requests brought them. */
const foundNames = new Map()

export function rememberName(userId, nickname) {
  if (userId && nickname) foundNames.set(userId, nickname)
}

export function groupName(group, id) {
  return group?.groupRemark || group?.name || t('groupNumber', { id })
}

export function conversationName(client, key) {
  const { type, target } = parseConversation(key)
  if (type === PRIVATE) return target === client.me ? t('you') : userName(client, target)
  return groupName(client.store.group.get(target), target)
}

/** A round picture: the first letter of the name on a colour of its own, or the user's own picture. */
export function avatar(name, seed, url) {
  const source = sameOrigin(url)
  if (source) return h('img', { class: 'avatar', src: source, alt: '', loading: 'lazy' })
  const letter = Array.from(name.trim())[0] ?? ''
  return h('span', { class: `avatar hue-${seed % HUES}`, 'aria-hidden': 'true' }, letter.toUpperCase())
}

export function conversationAvatar(client, key) {
  const { type, target } = parseConversation(key)
  const url = type === PRIVATE ? client.store.friend.get(target)?.avatar : client.store.group.get(target)?.avatar
  // Another colour than that of the user with the same number.
  const picture = avatar(conversationName(client, key), type === PRIVATE ? target : target + 4, url)
  if (type !== PRIVATE) picture.classList.add('of-group')
  return picture
}

/** The address, if it is of this server: pictures of others would tell them who looks. */
export function sameOrigin(url) {
  if (typeof url !== 'string' || !url) return null
  try {
    const address = new URL(url, location.href)
    return address.origin === location.origin && address.protocol.startsWith('http') ? address.href : null
  } catch {
    return null
  }
}

/** The address, if a browser may open it in a tab of its own. */
export function openable(url) {
  if (typeof url !== 'string' || !url) return null
  try {
    const address = new URL(url, location.href)
    return /^https?:$/.test(address.protocol) ? address.href : null
  } catch {
    return null
  }
}

const timeOfDay = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' })
const weekday = new Intl.DateTimeFormat(locale, { weekday: 'short' })
const date = new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric' })
const fullDate = new Intl.DateTimeFormat(locale, { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' })
const exact = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })

export const clockTime = (ms) => timeOfDay.format(ms)
export const secondTime = (ms) => clock.format(ms)
export const exactTime = (ms) => exact.format(ms)

/** Short, for lists: today a time, this week a day, else a date. */
export function shortTime(ms) {
  const days = daysAgo(ms)
  if (days === 0) return timeOfDay.format(ms)
  return days > 0 && days < 7 ? weekday.format(ms) : date.format(ms)
}

/** The line between the messages of two days. */
export function dayName(ms) {
  const days = daysAgo(ms)
  if (days === 0) return t('today')
  if (days === 1) return t('yesterday')
  return fullDate.format(ms)
}

export function isSameDay(a, b) {
  return new Date(a).toDateString() === new Date(b).toDateString()
}

function daysAgo(ms) {
  const midnight = new Date().setHours(0, 0, 0, 0)
  return Math.ceil((midnight - ms) / 86_400_000)
}
