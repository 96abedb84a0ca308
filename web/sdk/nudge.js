// A client of Nudge that loses no message and shows none twice. No DOM, no dependencies; copy the folder `sdk` into
// your app. Types: nudge.d.ts. The rules, and why: docs/clients.md.
//
// 1. A push is a hint. Only pulls move a cursor; rows and the cursors that passed them are stored in one transaction.
// 2. It pulls when the socket opens, whenever it comes back, when the page is looked at again and when the network is
//    back: by /im/sync, until no stream has more. Messages are merged by id.
// 3. State cursors go back five seconds before a scan, and only forward afterwards.
// 4. A send is stored first, and repeated under its first client id until it is answered.
// 5. A peer's read position is fetched when the conversation is opened, once per connection; receipts keep it up.
// 6. Members of a group are fetched when it is opened, and again after an event of the group or a reconnect.
// 7. It reconnects after min(1000·2ⁿ, 30000) ms plus up to a second, but not after 4001 and 4002.

import { Api, NudgeError } from './api.js'
import { MemoryPersistence } from './persistence.js'
import * as wire from './protocol.js'
import { Socket, backoff } from './socket.js'
import { Store } from './store.js'

export { Api, NudgeError, register, signIn } from './api.js'
export { IndexedDbPersistence, MemoryPersistence } from './persistence.js'
export * from './protocol.js'
export { backoff } from './socket.js'
export { Store } from './store.js'

const PULL_SIZE = 100
/** Waits between the tries of one send: a person is looking at the message. */
const RESEND_BASE_MS = 200
const RESEND_MAX_MS = 5_000
/** A draft of an older day is not sent without being asked for. */
const DRAFT_LIFE_MS = 24 * 3600 * 1000
/** An event that a pull must explain waits so long for more of them, and at random, for all members get it at once. */
const EVENT_DELAY_MS = 100
const EVENT_JITTER_MS = 300
const TYPING_INTERVAL_MS = 2_000
const MAX_HEALED = 100_000

/**
 * One device of one signed-in user.
 *
 * Events (`addEventListener`): `change` (something to show is different), `message` (`detail: {conversation, row,
 * pushed}`, somebody else's new message), `typing` (`{conversation, senderId}`), `connection` (see `socket.state`),
 * `push` (every frame), `pull` (`{reason, rows, healed}` when one has ended, or `{reason, error}`), `signedout`,
 * `storagefailed`.
 */
export class NudgeClient extends EventTarget {
  api
  store
  socket
  /** For people who want to see how it works: what came how. */
  stats = { pushes: 0, lastPush: null, pulls: 0, lastPull: null, pulledRows: 0, resends: 0 }

  #persistence
  #options
  #saving = Promise.resolve()
  #isStorageBroken = false
  #isRunning = false
  /** The pull that runs, and the one that follows it. */
  #pulling = null
  #nextPull = null
  #isFirstPull = true
  #eventTimer = null
  #healed = new Set()
  /** Conversations whose drafts are being sent; wakers of sends and pulls that wait to try again. */
  #sending = new Set()
  #sleepers = new Set()
  #wantedReads = new Map()
  #peerReadCalls = new Map()
  #memberCalls = new Map()
  #lastTyping = new Map()

  constructor(options) {
    super()
    this.#options = { device: 'web', base: '', random: Math.random, backoff, ...options }
    this.api = new Api(this.#options)
    this.store = new Store(this.#options.tokens.get().userId)
    this.#persistence = this.#options.persistence ?? new MemoryPersistence()
    this.socket = new Socket({
      ...(this.#options.WebSocket && { WebSocket: this.#options.WebSocket }),
      backoff: (attempt) => this.#options.backoff(attempt, this.#options.random()),
      url: () => this.api.socketUrl(this.#options.device),
      onOpen: () => this.#opened(),
      onText: (text) => this.#takeIn(text),
      onState: () => this.#stateChanged(),
      checkLogin: () => this.#checkLogin()
    })
  }

  get me() {
    return this.store.me
  }

  /** Messages that only a pull brought: the socket was away when they were pushed. */
  get healed() {
    return this.#healed.size
  }

  /** Loads what the device knows, then connects and stays connected until {@link stop}. */
  async start() {
    try {
      const stored = await this.#persistence.load()
      this.store.restore(stored)
      this.#isFirstPull = stored.meta.length === 0
    } catch (error) {
      this.#storageFailed(error)
    }
    this.#isRunning = true
    this.socket.connect()
    this.#changed()
    for (const draft of this.store.outbox.values()) {
      if (Date.now() - draft.createdAt > DRAFT_LIFE_MS) this.store.setDraft({ ...draft, error: { code: 0, text: '' } })
      else this.#sendDrafts(draft.conversation)
    }
  }

  /** Closes the socket and lets what runs come to its end. */
  async stop() {
    this.#isRunning = false
    clearTimeout(this.#eventTimer)
    this.socket.close()
    this.#wake()
    await this.#saving
    this.#persistence.close()
  }

  /** The page is visible again, or the network is back: connect now, and pull what was missed. */
  comeBack(reason) {
    const { state } = this.socket
    // A session that was closed from another device stays away until the user asks for it: `socket.connect()`.
    if (!this.#isRunning || state === 'closed' || state === 'held') return
    this.#wake()
    this.socket.connect()
    // Also where the socket looks open: it may be dead and not know it yet.
    this.pull(reason)
  }

  // -- pull

  /**
   * Pulls everything that is new. One pull at a time; one that began before this call may have passed already what is
   * asked for now, so another follows it.
   */
  pull(reason) {
    if (!this.#pulling) {
      this.#pulling = this.#pullAll(reason).finally(() => (this.#pulling = null))
      return this.#pulling
    }
    this.#nextPull ??= this.#pulling.then(() => {
      this.#nextPull = null
      return this.pull(reason)
    })
    return this.#nextPull
  }

  async #pullAll(reason) {
    for (let attempt = 0; this.#isRunning; attempt++) {
      try {
        const result = await this.#pullPages()
        this.stats.pulls += 1
        this.stats.lastPull = { at: Date.now(), reason, ...result }
        this.#emit('pull', { reason, ...result })
        this.#reportReads()
        return
      } catch (error) {
        this.#emit('pull', { reason, error })
        if (!error.temporary) return this.#failed(error)
        await this.#sleep(this.#options.backoff(attempt, this.#options.random()))
      }
    }
  }

  async #pullPages() {
    const isFirst = this.#isFirstPull
    let rows = 0
    let healed = 0
    let request = this.store.syncRequest(PULL_SIZE)
    for (;;) {
      const answer = await this.api.post('/im/sync', request)
      const fresh = this.store.mergeAnswer(answer)
      await this.#save()
      rows += fresh.length
      for (const { table, row } of fresh) {
        if (!isFirst && this.#healed.size < MAX_HEALED) {
          this.#healed.add(`${table}:${row.id}`)
          healed += 1
        }
        this.#announce(table, row, false, isFirst)
      }
      this.#changed()
      if (!hasMore(answer)) break
      const next = requestAfter(request, answer)
      if (JSON.stringify(next) === JSON.stringify(request)) throw new NudgeError(0, 'a page that goes nowhere', false)
      request = next
    }
    this.#isFirstPull = false
    this.stats.pulledRows += rows
    return { rows, healed }
  }

  // -- push

  #takeIn(text) {
    const frame = wire.parseFrame(text)
    if (!frame) return
    this.stats.pushes += 1
    this.stats.lastPush = { at: Date.now(), type: frame.contentType, id: frame.payload.id ?? null }
    this.#merge(frame)
    this.#emit('push', frame)
    this.#save()
    this.#changed()
  }

  #merge({ conversationType, contentType, payload }) {
    const isStored = conversationType === wire.PRIVATE || conversationType === wire.GROUP
    if (contentType === wire.READ) return this.#mergeRead(conversationType, payload)
    if (contentType === wire.RECEIPT) return this.#mergeReceipt(conversationType, payload)
    if (contentType === wire.TYPING) return this.#mergeTyping(payload)
    if (conversationType === wire.GROUP && wire.MEMBER_EVENTS.has(contentType)) {
      this.store.markMembersStale(payload.groupId)
    }
    if (isStored && typeof payload.id === 'number') this.#mergePushed(conversationType, { ...payload, type: contentType })
    // A friend's nickname is not part of my row, so no pull brings it.
    if (contentType === wire.FRIEND_INFO) return void this.loadFriend(payload.friendUserId).catch(() => {})
    if (contentType >= 1200 && contentType < 1600) this.#pullSoon()
  }

  #mergePushed(table, row) {
    const isNew = this.store.mergeMessage(table, row)
    // A push that comes late is no missed one.
    this.#healed.delete(`${table}:${row.id}`)
    if (isNew) this.#announce(table, row, true, false)
    const isKnown = table === wire.GROUP ? this.store.group.has(row.groupId) : this.store.friend.has(this.#peerOf(row))
    if (!isKnown) this.#pullSoon()
  }

  #mergeRead(conversationType, payload) {
    const target = conversationType === wire.GROUP ? payload.groupId : payload.receiverId
    this.store.raiseRead(wire.conversationKey(conversationType, target), payload.readId ?? payload.id)
  }

  #mergeReceipt(conversationType, payload) {
    if (conversationType === wire.PRIVATE) return this.store.raisePeerRead(payload.senderId, payload.id)
    this.store.mergeReceipt(payload.groupId, payload.id, payload.readCount, payload.receiptStatus)
  }

  #mergeTyping({ senderId, groupId }) {
    const conversation = groupId ? wire.conversationKey(wire.GROUP, groupId) : wire.conversationKey(wire.PRIVATE, senderId)
    this.#emit('typing', { conversation, senderId })
  }

  /** An event says that something is different; what it is now, a pull says. */
  #pullSoon() {
    if (this.#eventTimer) return
    const delay = EVENT_DELAY_MS + this.#options.random() * EVENT_JITTER_MS
    this.#eventTimer = setTimeout(() => {
      this.#eventTimer = null
      this.pull('event')
    }, delay)
  }

  // -- send

  /**
   * Sends a message: it is in the outbox at once, and repeated under its one client id until it is answered. `content`
   * is an object; `options` may hold `receipt` and `atUserIds`. The result is the client id.
   */
  send(conversation, type, content, options = {}) {
    const clientMessageId = wire.newClientId()
    const text = JSON.stringify(content)
    this.store.setDraft({ clientMessageId, conversation, type, content: text, ...options, createdAt: Date.now() })
    this.#changed()
    this.#sendDrafts(conversation)
    return clientMessageId
  }

  /** Tries a refused draft again, under its client id. */
  resend(clientMessageId) {
    const draft = this.store.outbox.get(clientMessageId)
    if (!draft) return
    this.store.setDraft({ ...draft, error: null, createdAt: Date.now() })
    this.#changed()
    this.#sendDrafts(draft.conversation)
  }

  /** Gives a refused draft up. */
  discard(clientMessageId) {
    this.store.removeDraft(clientMessageId)
    this.#save()
    this.#changed()
  }

  /** One after the other, so that a conversation gets them in the order in which they were written. */
  async #sendDrafts(conversation) {
    await this.#save()
    if (this.#sending.has(conversation)) return
    this.#sending.add(conversation)
    for (;;) {
      const draft = this.store.drafts(conversation).find((candidate) => !candidate.error)
      if (!draft || !this.#isRunning) break
      await this.#sendOne(draft)
      await this.#save()
      this.#changed()
    }
    this.#sending.delete(conversation)
  }

  async #sendOne(draft) {
    const { type: table, target } = wire.parseConversation(draft.conversation)
    const { clientMessageId, type, content, receipt, atUserIds } = draft
    const receiver = table === wire.GROUP ? { groupId: target, atUserIds } : { receiverId: target }
    const path = `/im/message/${table === wire.GROUP ? 'group' : 'private'}/send`
    for (let attempt = 0; this.#isRunning; attempt++) {
      try {
        const row = await this.api.post(path, { clientMessageId, type, content, receipt, ...receiver })
        this.store.mergeMessage(table, row)
        this.store.removeDraft(clientMessageId)
        return
      } catch (error) {
        // Its own push may have been faster than the answer that was lost.
        if (!this.store.outbox.has(clientMessageId)) return
        if (!error.temporary) {
          this.store.setDraft({ ...draft, error: { code: error.code, text: error.message } })
          return this.#failed(error)
        }
        this.stats.resends += 1
        const wait = Math.min(RESEND_BASE_MS * 2 ** Math.min(attempt, 10), RESEND_MAX_MS)
        await this.#sleep(wait + this.#options.random() * RESEND_BASE_MS)
      }
    }
  }

  /** Takes back a message of mine, or in a group that I manage anybody's. */
  async recall(conversation, id) {
    const { type: table } = wire.parseConversation(conversation)
    const row = await this.api.delete(`/im/message/${table === wire.GROUP ? 'group' : 'private'}/recall`, { id })
    this.store.mergeMessage(table, row)
    await this.#save()
    this.#changed()
  }

  /** Tells the other side that I am writing; at most one call in two seconds, and none is repeated. */
  typing(conversation) {
    const now = Date.now()
    if (now - (this.#lastTyping.get(conversation) ?? 0) < TYPING_INTERVAL_MS) return
    this.#lastTyping.set(conversation, now)
    const { type, target } = wire.parseConversation(conversation)
    const call =
      type === wire.GROUP
        ? this.api.put('/im/message/group/typing', { groupId: target })
        : this.api.put('/im/message/private/typing', { receiverId: target })
    call.catch(() => {})
  }

  // -- reading

  /** I have read the conversation up to this message. Reported until it is answered, and never below what is known. */
  markRead(conversation, id) {
    if (id <= this.store.readPosition(conversation) || id <= (this.#wantedReads.get(conversation) ?? 0)) return
    this.#wantedReads.set(conversation, id)
    this.#reportReads()
  }

  #reportReads() {
    for (const [conversation, id] of this.#wantedReads) this.#reportRead(conversation, id)
  }

  async #reportRead(conversation, messageId) {
    const { type, target } = wire.parseConversation(conversation)
    try {
      if (type === wire.GROUP) await this.api.put('/im/message/group/read', { groupId: target, messageId })
      else await this.api.put('/im/message/private/read', { receiverId: target, messageId })
    } catch (error) {
      // The next pull tries again.
      if (error.temporary) return
    }
    if (this.#wantedReads.get(conversation) === messageId) this.#wantedReads.delete(conversation)
    this.store.raiseRead(conversation, messageId)
    await this.#save()
    this.#changed()
  }

  /** The friend's present nickname and avatar: for a conversation that is being opened, and when they changed. */
  async loadFriend(userId) {
    const row = await this.api.get('/im/friend/get', { friendUserId: userId })
    if (!row) return
    this.store.mergeFriend(row)
    await this.#save()
    this.#changed()
  }

  /** How far the peer has read: fetched once per connection, for a conversation that is open. */
  async loadPeerRead(peer) {
    if (this.store.peerRead(peer) !== undefined) return
    await once(this.#peerReadCalls, peer, async () => {
      const position = await this.api.get('/im/message/private/max-read-message-id', { peerId: peer })
      this.store.raisePeerRead(peer, position)
      this.#changed()
    })
  }

  /** Members of a group that is open: fetched when they are unknown or stale. */
  async loadMembers(groupId) {
    const known = this.store.members(groupId)
    if (known && !known.stale) return known.list
    return once(this.#memberCalls, groupId, async () => {
      const events = this.store.memberEvents
      const list = await this.api.get('/im/group-member/list', { groupId })
      this.store.setMembers(groupId, list, events)
      this.#changed()
      return list
    })
  }

  /** Who has read a group message of mine: for a receipt that is open. */
  readers(groupId, messageId) {
    return this.api.get('/im/message/group/get-read-user-ids', { groupId, messageId })
  }

  /** The page of history before the oldest known message. Whether there is more. */
  async loadOlder(conversation, limit = 50) {
    const { type: table, target } = wire.parseConversation(conversation)
    const maxId = this.store.messages(conversation)[0]?.id
    const query = table === wire.GROUP ? { groupId: target, limit, maxId } : { receiverId: target, limit, maxId }
    const path = table === wire.GROUP ? '/im/message/group/list' : '/im/message/private/list'
    const rows = await this.api.get(path, query)
    this.store.mergeHistory(table, rows)
    await this.#save()
    this.#changed()
    return rows.length === limit
  }

  /** A call that changes something, followed by a pull that brings what it changed. */
  async act(call) {
    const result = await call(this.api)
    await this.pull('action')
    return result
  }

  // -- inside

  #opened() {
    this.store.startConnection()
    this.#wake()
    this.pull(this.socket.opened === 1 ? 'connect' : 'reconnect')
  }

  #stateChanged() {
    this.#emit('connection')
    this.#changed()
    if (this.socket.state === 'closed' && this.socket.code === wire.SIGNED_OUT) this.#signedOut()
  }

  /** A refused handshake looks like a broken one; a call tells whether the login is still there. */
  async #checkLogin() {
    try {
      await this.api.get('/system/auth/get-permission-info')
      // Something on the way lets calls pass and no sockets: then at least pulls bring what is new.
      this.pull('no socket')
      return true
    } catch (error) {
      return error.code !== 401
    }
  }

  #failed(error) {
    if (error.code === 401) this.#signedOut()
  }

  #signedOut() {
    if (!this.#isRunning) return
    this.#isRunning = false
    this.socket.close()
    this.#wake()
    this.#emit('signedout')
  }

  #announce(table, row, pushed, isOld) {
    if (isOld || row.senderId === this.me || !wire.isSentByUsers(row.type) || wire.isRecalled(row)) return
    this.#emit('message', { conversation: wire.conversationOf(table, row, this.me), row, pushed })
  }

  #peerOf(row) {
    return row.senderId === this.me ? row.receiverId : row.senderId
  }

  /** Stores what changed, in order. After a failure nothing more is stored: the database stays as it was, whole. */
  #save() {
    this.#saving = this.#saving.then(async () => {
      const changes = this.store.takeChanges()
      if (!changes || this.#isStorageBroken) return
      try {
        await this.#persistence.commit(changes)
      } catch (error) {
        this.#storageFailed(error)
      }
    })
    return this.#saving
  }

  #storageFailed(error) {
    this.#isStorageBroken = true
    this.#emit('storagefailed', { error })
  }

  #sleep(ms) {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        this.#sleepers.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      this.#sleepers.add(wake)
    })
  }

  #wake() {
    for (const wake of [...this.#sleepers]) wake()
  }

  #changed() {
    this.#emit('change')
  }

  #emit(type, detail = null) {
    this.dispatchEvent(new CustomEvent(type, { detail }))
  }
}

function hasMore(answer) {
  return ['private', 'group', 'friend', 'friendRequest', 'groupRequest', 'read'].some((stream) => answer[stream].more)
}

/** The request for the pages after an answer's. */
function requestAfter(request, answer) {
  const next = {
    ...request,
    privateMinId: Math.max(request.privateMinId, answer.private.minId),
    groupMinId: Math.max(request.groupMinId, answer.group.minId),
    groupListTime: answer.groupList?.time ?? request.groupListTime
  }
  for (const stream of ['friend', 'friendRequest', 'groupRequest', 'read']) {
    const { lastUpdateTime, lastId } = answer[stream]
    if (typeof lastUpdateTime === 'number') next[stream] = { lastUpdateTime, lastId }
  }
  return next
}

/** Calls that are made while one runs share its result. */
function once(calls, key, call) {
  const running = calls.get(key)
  if (running) return running
  const promise = call().finally(() => calls.delete(key))
  calls.set(key, promise)
  return promise
}
