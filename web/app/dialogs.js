// Dialogs: a new group, what is known of a group, who has read a message.

import { errorText, t } from '../texts.js'
import { h, iconButton } from './dom.js'
import { avatar, groupName, userName } from './names.js'

const OWNER = 1
const ADMIN = 2

/** Shows a modal dialog; it is gone when it is closed. `fill(close)` makes its content. */
function showDialog(title, fill) {
  const error = h('p', { class: 'form-error', role: 'alert' })
  const dialog = h('dialog', { 'aria-labelledby': 'dialog-title', onclose: () => dialog.remove() })
  const close = () => dialog.close()
  const fail = (failure) => (error.textContent = errorText(failure))
  dialog.append(
    h('header', { class: 'bar' }, h('h2', { id: 'dialog-title' }, title), iconButton('close', t('close'), close)),
    h('div', { class: 'dialog-body' }, error, fill(close, fail)))
  document.body.append(dialog)
  dialog.showModal()
}

/** Makes a group of friends and opens it. */
export function showNewGroup(app) {
  showDialog(t('newGroup'), (close, fail) => {
    const name = h('input', { id: 'group-name', required: true, maxlength: 64, autocomplete: 'off' })
    const people = friendBoxes(app, () => true)
    const make = async (event) => {
      event.preventDefault()
      try {
        const body = { name: name.value.trim(), memberUserIds: people.chosen() }
        const group = await app.client.act((api) => api.post('/im/group/create', body))
        close()
        app.openConversation(`g${group.id}`)
      } catch (error) {
        fail(error)
      }
    }
    return h('form', { class: 'stack', onsubmit: make },
      h('label', { for: 'group-name' }, h('span', {}, t('groupName')), name),
      people.element,
      h('button', { type: 'submit', class: 'primary wide' }, t('create')))
  })
}

/** Members of a group, and what may be done with it. */
export function showGroup(app, groupId) {
  const group = app.client.store.group.get(groupId)
  const members = (app.client.store.members(groupId)?.list ?? []).filter((member) => member.status === 0)
  const me = members.find((member) => member.userId === app.client.me)
  const isOwner = me?.role === OWNER
  showDialog(groupName(group, groupId), (close, fail) => {
    const run = (call) => async () => {
      try {
        await app.client.act(call)
        close()
      } catch (error) {
        fail(error)
      }
    }
    const present = new Set(members.map((member) => member.userId))
    const people = friendBoxes(app, (id) => !present.has(id))
    const invite = run((api) => api.post('/im/group/invite', { groupId, memberUserIds: people.chosen() }))
    return h('div', { class: 'stack' },
      group?.notice ? h('p', { class: 'notice' }, group.notice) : null,
      isOwner ? renameForm(group, run) : null,
      h('h3', {}, t('memberCount', { n: members.length })),
      h('ul', { class: 'list' }, members.sort((a, b) => a.role - b.role).map((member) => memberItem(app, groupId, member, me, run))),
      people.count ? [people.element, h('button', { type: 'button', class: 'wide', onclick: () => people.chosen().length && invite() }, t('invite'))] : null,
      isOwner
        ? h('button', { type: 'button', class: 'danger wide', onclick: run((api) => api.delete('/im/group/dissolve', { id: groupId })) }, t('dissolve'))
        : h('button', { type: 'button', class: 'danger wide', onclick: run((api) => api.delete('/im/group/quit', { groupId })) }, t('quit')))
  })
}

/** Who has read a message of mine: fetched because somebody looks. */
export function showReaders(app, row) {
  showDialog(t('readers'), (_, fail) => {
    const list = h('ul', { class: 'list' })
    const empty = h('p', { class: 'hint' }, t('loading'))
    const show = (ids) => {
      empty.textContent = ids.length ? '' : t('nobody')
      list.replaceChildren(...ids.map((id) => h('li', { class: 'item still' }, avatar(userName(app.client, id, row.groupId), id), h('span', { class: 'item-name' }, userName(app.client, id, row.groupId)))))
    }
    app.client.readers(row.groupId, row.id).then(show, fail)
    return h('div', { class: 'stack' }, empty, list)
  })
}

function renameForm(group, run) {
  const name = h('input', { id: 'new-name', required: true, maxlength: 64, value: group.name, autocomplete: 'off' })
  const rename = (event) => {
    event.preventDefault()
    run((api) => api.put('/im/group/update', null, { id: group.id, name: name.value.trim() }))()
  }
  return h('form', { class: 'one-line', onsubmit: rename },
    h('label', { for: 'new-name' }, h('span', {}, t('groupName')), name),
    h('button', { type: 'submit' }, t('save')))
}

function memberItem(app, groupId, member, me, run) {
  const name = userName(app.client, member.userId, groupId)
  const role = { [OWNER]: t('owner'), [ADMIN]: t('admin') }[member.role]
  const mayRemove = me && member.userId !== me.userId && me.role < member.role
  const remove = run((api) => api.delete('/im/group/kicking', null, { groupId, memberUserIds: [member.userId] }))
  return h('li', { class: 'item still' },
    avatar(member.nickname ?? name, member.userId, member.avatar),
    h('span', { class: 'item-text' }, h('span', { class: 'item-name' }, name), role ? h('span', { class: 'item-last' }, role) : null),
    mayRemove ? h('button', { type: 'button', class: 'small', 'aria-label': t('removeOf', { name }), onclick: remove }, t('remove')) : null)
}

/** Boxes to choose friends. */
function friendBoxes(app, isWanted) {
  const friends = [...app.client.store.friend.values()].filter((row) => row.status === 0 && isWanted(row.friendUserId))
  const boxes = friends.map((row) => h('input', { type: 'checkbox', value: row.friendUserId }))
  const labels = friends.map((row, index) => {
    const name = userName(app.client, row.friendUserId)
    return h('label', { class: 'item box' }, boxes[index], avatar(name, row.friendUserId, row.avatar), h('span', { class: 'item-name' }, name))
  })
  const element = h('fieldset', {}, h('legend', {}, t('chooseFriends')), labels.length ? labels : h('p', { class: 'hint' }, t('noFriends')))
  return { element, count: boxes.length, chosen: () => boxes.filter((box) => box.checked).map((box) => Number(box.value)) }
}
