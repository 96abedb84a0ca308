// What this device knows: messages merged by id, states, cursors, the outbox. All of it is in memory; what changed is
// collected for the database and taken from here by `takeChanges`.
//
// Messages come from pulls, pushes, lists and the answers to sends, in any order and more than once. Only pulls move a
// cursor: a push or an answer says nothing about the rows before it.

import {
  GROUP,
  PRIVATE,
  conversationKey,
  conversationOf,
  isRecalled,
  isSentByUsers,
  recall,
  recalledId
} from './protocol.js'

/** How far a scan of state rows goes back before its cursor. */
const OVERLAP_MS = 5_000
/** Pulled messages of each table that are kept. What is older can be listed again. */
const CAPACITY = 10_000
/** Counting unread messages of one conversation stops here. */
const MAX_UNREAD = 100

const STATE_STREAMS = ['friend', 'friendRequest', 'groupRequest', 'read']

/** The key of a state row among those of its kind. */
const KEY_OF = {
  friend: (row) => row.friendUserId,
  friendRequest: (row) => row.id,
  groupRequest: (row) => row.id,
  read: (row) => conversationKey(row.conversationType, row.targetId)
}

function newCursors() {
  return { private: 0, group: 0, groupListTime: 0, friend: null, friendRequest: null, groupRequest: null, read: null }
}

export class Store {
  me
  cursors = newCursors()
  /** Rows by key: friends by user, requests by id, read positions by conversation, groups by id. */
  friend = new Map()
  friendRequest = new Map()
  groupRequest = new Map()
  read = new Map()
  group = new Map()
  /** Sends without an answer, by client id: `{clientMessageId, conversation, type, content, …, createdAt, error}`. */
  outbox = new Map()
  /** Counts what may have changed members of groups. */
  memberEvents = 0

  #rows = { [PRIVATE]: new Map(), [GROUP]: new Map() }
  /** Ids that were recalled and are not here (yet). */
  #recalled = { [PRIVATE]: new Set(), [GROUP]: new Set() }
  /** Ids of each conversation, ascending. */
  #ids = new Map()
  #members = new Map()
  #peerReads = new Map()
  #changes = newChanges()
  #capacity

  constructor(me, capacity = CAPACITY) {
    this.me = me
    this.#capacity = capacity
  }

  /** Takes in what the database holds. */
  restore({ messages, states, outbox, meta }) {
    for (const { key, value } of meta) if (key === 'cursors') this.cursors = { ...newCursors(), ...value }
    for (const { table, row } of messages) this.#insert(table, row)
    for (const { kind, key, row } of states) this[kind]?.set(key, row)
    for (const draft of outbox) this.outbox.set(draft.clientMessageId, draft)
    // The database has all of this.
    this.#changes = newChanges()
    this.#forgetOld()
  }

  /** What the database does not have yet; the caller stores it in one transaction. Null when there is nothing. */
  takeChanges() {
    const changes = this.#changes
    this.#changes = newChanges()
    const isEmpty = Object.values(changes).every((table) => table.size === 0)
    return isEmpty ? null : changes
  }

  // -- messages

  /** A pushed message, or the answer to a send. The cursor stays. Whether it was new. */
  mergeMessage(table, row) {
    const isNew = this.#insert(table, row)
    this.#forgetOld()
    return isNew
  }

  /** Rows of a history list, which the cursor has nothing to do with. */
  mergeHistory(table, rows) {
    for (const row of rows) this.#insert(table, row)
  }

  message(table, id) {
    return this.#rows[table].get(id)
  }

  /** Messages of a conversation, ascending. */
  messages(conversation) {
    const rows = this.#rows[tableOf(conversation)]
    return (this.#ids.get(conversation) ?? []).map((id) => rows.get(id))
  }

  lastMessage(conversation, isShown = () => true) {
    const rows = this.#rows[tableOf(conversation)]
    const id = (this.#ids.get(conversation) ?? []).findLast((candidate) => isShown(rows.get(candidate)))
    return id === undefined ? undefined : rows.get(id)
  }

  conversations() {
    const drafts = Array.from(this.outbox.values(), (draft) => draft.conversation)
    return [...new Set([...this.#ids.keys(), ...drafts])]
  }

  /** Messages of others above my read position, at most {@link MAX_UNREAD}. */
  unread(conversation) {
    const position = this.readPosition(conversation)
    const rows = this.#rows[tableOf(conversation)]
    const ids = this.#ids.get(conversation) ?? []
    let count = 0
    for (let index = ids.length - 1; index >= 0 && ids[index] > position && count < MAX_UNREAD; index--) {
      const row = rows.get(ids[index])
      if (row.senderId !== this.me && isSentByUsers(row.type) && !isRecalled(row)) count += 1
    }
    return count
  }

  // -- pulls

  /** Body of the next `/im/sync`; `size` rows of each stream. */
  syncRequest(size) {
    const cursors = this.cursors
    const request = { privateMinId: cursors.private, groupMinId: cursors.group, groupListTime: cursors.groupListTime, size }
    for (const stream of STATE_STREAMS) {
      const cursor = cursors[stream]
      if (cursor) request[stream] = { lastUpdateTime: Math.max(0, cursor.lastUpdateTime - OVERLAP_MS), lastId: 0 }
    }
    return request
  }

  /** Takes in an answer of `/im/sync`, rows and cursors in one step. The new messages: `[{table, row}]`. */
  mergeAnswer(answer) {
    const fresh = []
    for (const [stream, table] of [['private', PRIVATE], ['group', GROUP]]) {
      this.#leaveNoHole(stream, table, answer[stream])
      for (const row of answer[stream].list) {
        if (this.#insert(table, row)) fresh.push({ table, row: this.message(table, row.id) })
        this.cursors[stream] = Math.max(this.cursors[stream], row.id)
      }
      this.cursors[stream] = Math.max(this.cursors[stream], answer[stream].minId)
    }
    for (const stream of STATE_STREAMS) this.#mergeStates(stream, answer[stream])
    if (answer.groupList) this.#mergeGroups(answer.groupList)
    this.#changes.meta.set('cursors', { key: 'cursors', value: { ...this.cursors } })
    this.#forgetOld()
    return fresh
  }

  // -- states

  readPosition(conversation) {
    return this.read.get(conversation)?.messageId ?? 0
  }

  /** I have read up to there, here or elsewhere. Positions only rise. */
  raiseRead(conversation, messageId) {
    if (messageId <= this.readPosition(conversation)) return false
    this.#setState('read', conversation, { ...this.read.get(conversation), messageId })
    return true
  }

  /** A friend row that was fetched by itself; the cursor stays. */
  mergeFriend(row) {
    this.#mergeState('friend', row)
  }

  /** How far the other side has read; undefined: not known on this connection. */
  peerRead(peer) {
    return this.#peerReads.get(peer)
  }

  raisePeerRead(peer, messageId) {
    this.#peerReads.set(peer, Math.max(this.#peerReads.get(peer) ?? 0, messageId ?? 0))
  }

  /** What a receipt says about a group message of mine. */
  mergeReceipt(groupId, id, readCount, receiptStatus) {
    const row = this.message(GROUP, id)
    if (row?.groupId === groupId) this.#insert(GROUP, { ...row, readCount, receiptStatus })
  }

  /** Whether I am in the group now, and it exists. */
  isMember(groupId) {
    const group = this.group.get(groupId)
    return Boolean(group && group.joinStatus === 0 && group.status === 0)
  }

  /** Members of a group as last fetched: `{list, stale}`, or undefined. */
  members(groupId) {
    return this.#members.get(groupId)
  }

  /** `events` is {@link memberEvents} before the call: what happened since makes the answer stale. */
  setMembers(groupId, list, events) {
    this.#members.set(groupId, { list, stale: events !== this.memberEvents })
  }

  markMembersStale(groupId) {
    this.memberEvents += 1
    const members = this.#members.get(groupId)
    if (members) members.stale = true
  }

  /** What no pull keeps up between two connections. */
  startConnection() {
    this.memberEvents += 1
    this.#peerReads.clear()
    for (const members of this.#members.values()) members.stale = true
  }

  // -- outbox

  setDraft(draft) {
    this.outbox.set(draft.clientMessageId, draft)
    this.#changes.outbox.set(draft.clientMessageId, draft)
  }

  removeDraft(clientMessageId) {
    if (this.outbox.delete(clientMessageId)) this.#changes.outbox.set(clientMessageId, null)
  }

  drafts(conversation) {
    return [...this.outbox.values()].filter((draft) => draft.conversation === conversation)
  }

  // -- inside

  /** Stores a message and what it means for others. Whether it was not known. */
  #insert(table, incoming) {
    let row = incoming
    const rows = this.#rows[table]
    const taken = recalledId(row)
    if (taken !== null) this.#markRecalled(table, taken)
    const known = rows.get(row.id)
    // A copy that was made before the recall, or before the receipt, can come after it.
    if (this.#recalled[table].delete(row.id) || (known && isRecalled(known))) row = recall(row)
    if (known) row = { ...row, ...newerReceipt(known, row) }
    if (row.senderId === this.me && row.clientMessageId) this.removeDraft(row.clientMessageId)
    rows.set(row.id, row)
    this.#changes.messages.set(messageKey(table, row.id), { table, row })
    if (!known) this.#addId(conversationOf(table, row, this.me), row.id)
    return !known
  }

  #addId(conversation, id) {
    const ids = this.#ids.get(conversation)
    if (!ids) return this.#ids.set(conversation, [id])
    const before = ids.findLastIndex((other) => other < id)
    ids.splice(before + 1, 0, id)
  }

  #markRecalled(table, id) {
    const row = this.#rows[table].get(id)
    if (!row) return this.#recalled[table].add(id)
    if (!isRecalled(row)) this.#insert(table, recall(row))
  }

  /**
   * A device that was away for longer than pulls reach back: between what it knows and the page there are rows that no
   * page brings. It lets go of what it knows, as if it were new; lists bring it again.
   */
  #leaveNoHole(stream, table, { list, truncated }) {
    if (!truncated || list.length === 0) return
    for (const id of [...this.#rows[table].keys()]) if (id <= this.cursors[stream]) this.#forget(table, id)
  }

  #mergeStates(kind, page) {
    for (const row of page.list) {
      if (kind === 'read') {
        this.raiseRead(KEY_OF.read(row), row.messageId)
      } else {
        this.#mergeState(kind, row)
      }
    }
    const { lastUpdateTime, lastId } = page
    if (typeof lastUpdateTime === 'number' && isAfter({ lastUpdateTime, lastId }, this.cursors[kind])) {
      this.cursors[kind] = { lastUpdateTime, lastId }
    }
  }

  #mergeState(kind, row) {
    const key = KEY_OF[kind](row)
    const known = this[kind].get(key)
    if (!known || known.updateTime <= row.updateTime) this.#setState(kind, key, row)
  }

  #mergeGroups({ list, time }) {
    for (const id of this.group.keys()) this.#changes.states.set(`group:${id}`, null)
    this.group.clear()
    for (const group of list) this.#setState('group', group.id, group)
    this.cursors.groupListTime = time
  }

  #setState(kind, key, row) {
    this[kind].set(key, row)
    this.#changes.states.set(`${kind}:${key}`, { kind, key, row })
  }

  /** Forgets the oldest messages over the capacity, but only pulled ones: below others there may be rows unseen. */
  #forgetOld() {
    for (const [stream, table] of [['private', PRIVATE], ['group', GROUP]]) {
      const rows = this.#rows[table]
      // In one go, and not for every message that is one too many.
      if (rows.size <= this.#capacity * 1.1) continue
      const ids = [...rows.keys()].sort((a, b) => a - b)
      for (const id of ids.slice(0, ids.length - this.#capacity)) {
        if (id > this.cursors[stream]) break
        this.#forget(table, id)
      }
    }
  }

  #forget(table, id) {
    const conversation = conversationOf(table, this.#rows[table].get(id), this.me)
    this.#rows[table].delete(id)
    this.#changes.messages.set(messageKey(table, id), null)
    const ids = this.#ids.get(conversation)
    ids.splice(ids.indexOf(id), 1)
    if (ids.length === 0) this.#ids.delete(conversation)
  }
}

function newChanges() {
  return { messages: new Map(), states: new Map(), outbox: new Map(), meta: new Map() }
}

function tableOf(conversation) {
  return conversation[0] === 'g' ? GROUP : PRIVATE
}

function messageKey(table, id) {
  return `${table}:${id}`
}

function isAfter(cursor, known) {
  if (!known) return true
  if (cursor.lastUpdateTime !== known.lastUpdateTime) return cursor.lastUpdateTime > known.lastUpdateTime
  return cursor.lastId > known.lastId
}

function newerReceipt(known, row) {
  const receipt = { receiptStatus: Math.max(known.receiptStatus ?? 0, row.receiptStatus ?? 0) }
  if ('readCount' in row) receipt.readCount = Math.max(known.readCount ?? 0, row.readCount ?? 0)
  return receipt
}
