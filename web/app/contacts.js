// Contacts: requests that wait for an answer, a search for people, and friends.

import { conversationKey, PRIVATE } from '../sdk/nudge.js'
import { errorText, t } from '../texts.js'
import { h, reconcile, setText } from './dom.js'
import { avatar, rememberName, userName } from './names.js'

const SEARCH_DELAY_MS = 250

/** Requests to me that nobody has answered. */
export function openRequests(client) {
  return [...client.store.friendRequest.values()].filter((row) => row.toUserId === client.me && row.handleResult === 0)
}

export function contactList(app) {
  const requests = h('ul', { class: 'list' })
  const requestSection = section(t('requests'), requests)
  const friends = h('ul', { class: 'list' })
  const noFriends = h('p', { class: 'empty' }, t('noFriends'))
  const search = peopleSearch(app)
  const element = h('div', { class: 'scroll' }, search.element, requestSection, section(t('friends'), friends, noFriends))

  function update() {
    const waiting = openRequests(app.client)
    requestSection.hidden = waiting.length === 0
    reconcile(requests, waiting.map((row) => ({ key: row.id, version: String(row.updateTime), row })), (item) => requestItem(app, item.row))
    const wanted = app.filter.trim().toLowerCase()
    const rows = [...app.client.store.friend.values()]
      .filter((row) => row.status === 0)
      .map((row) => ({ key: row.friendUserId, row, name: userName(app.client, row.friendUserId) }))
      .filter(({ name, row }) => `${name} ${row.nickname} ${row.nicknamePinyin}`.toLowerCase().includes(wanted))
      .sort((a, b) => a.name.localeCompare(b.name))
    noFriends.hidden = rows.length > 0
    reconcile(friends, rows.map((item) => ({ ...item, version: JSON.stringify([item.name, item.row.avatar, item.row.blocked]) })), (item) => friendItem(app, item))
    search.update()
  }

  return { element, update }
}

function section(title, ...content) {
  return h('section', {}, h('h2', { class: 'list-title' }, title), ...content)
}

function friendItem(app, { key, row, name }) {
  const nickname = row.displayName && row.nickname ? row.nickname : null
  return h('li', {},
    h('button', { type: 'button', class: 'item', 'data-control': 'open', onclick: () => app.openConversation(conversationKey(PRIVATE, key)) },
      avatar(name, key, row.avatar),
      h('span', { class: 'item-text' }, h('span', { class: 'item-name' }, name), nickname ? h('span', { class: 'item-last' }, nickname) : null)))
}

function requestItem(app, row) {
  rememberName(row.fromUserId, row.fromNickname)
  const name = row.fromNickname ?? t('userNumber', { id: row.fromUserId })
  const answer = (verb) => () => app.act((api) => api.put(`/im/friend-request/${verb}`, { id: row.id }))
  return h('li', { class: 'item still' },
    avatar(name, row.fromUserId, row.fromAvatar),
    h('span', { class: 'item-text' }, h('span', { class: 'item-name' }, name), h('span', { class: 'item-last' }, row.applyContent || t('wantsToBeFriends'))),
    h('span', { class: 'item-actions' },
      h('button', { type: 'button', class: 'primary small', 'data-control': 'agree', 'aria-label': t('acceptOf', { name }), onclick: answer('agree') }, t('accept')),
      h('button', { type: 'button', class: 'small', 'data-control': 'refuse', 'aria-label': t('refuseOf', { name }), onclick: answer('refuse') }, t('refuse'))))
}

/** Finds people by their nicknames and asks them to be friends. */
function peopleSearch(app) {
  const results = h('ul', { class: 'list', 'aria-label': t('found') })
  const state = h('p', { class: 'hint', role: 'status' })
  const input = h('input', { type: 'search', id: 'find-people', placeholder: t('findPeople'), autocomplete: 'off', oninput: later })
  const element = h('section', { class: 'find' }, h('label', { class: 'unseen', for: 'find-people' }, t('findPeople')), input, state, results)
  let timer = null
  let found = []

  function later() {
    clearTimeout(timer)
    timer = setTimeout(find, SEARCH_DELAY_MS)
  }

  async function find() {
    const nickname = input.value.trim()
    try {
      const users = nickname ? await app.client.api.get('/system/user/list-by-nickname', { nickname }) : []
      if (nickname !== input.value.trim()) return
      found = users.filter((user) => user.id !== app.client.me)
      for (const user of found) rememberName(user.id, user.nickname)
      setText(state, nickname ? t('foundCount', { n: found.length }) : '')
    } catch (error) {
      setText(state, errorText(error))
    }
    update()
  }

  function update() {
    const { friend, friendRequest } = app.client.store
    const asked = new Set([...friendRequest.values()].filter((row) => row.fromUserId === app.client.me && row.handleResult === 0).map((row) => row.toUserId))
    const items = found.map((user) => {
      const relation = friend.get(user.id)?.status === 0 ? 'friend' : asked.has(user.id) ? 'asked' : 'none'
      return { key: user.id, user, relation, version: `${user.nickname} ${relation}` }
    })
    reconcile(results, items, (item) => foundItem(app, item))
  }

  return { element, update }
}

function foundItem(app, { user, relation }) {
  const name = user.nickname
  const ask = () => app.act((api) => api.post('/im/friend-request/apply', { toUserId: user.id, addSource: 1 }))
  const open = () => app.openConversation(conversationKey(PRIVATE, user.id))
  const control = {
    none: () => h('button', { type: 'button', class: 'primary small', 'data-control': 'ask', 'aria-label': t('addOf', { name }), onclick: ask }, t('add')),
    asked: () => h('span', { class: 'hint' }, t('asked')),
    friend: () => h('button', { type: 'button', class: 'small', 'data-control': 'ask', 'aria-label': t('writeTo', { name }), onclick: open }, t('write'))
  }[relation]()
  return h('li', { class: 'item still' }, avatar(name, user.id, user.avatar), h('span', { class: 'item-text' }, h('span', { class: 'item-name' }, name)), h('span', { class: 'item-actions' }, control))
}
