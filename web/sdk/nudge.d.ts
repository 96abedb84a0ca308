// Types of nudge.js: a client of Nudge that loses no message and shows none twice.

/** `p7` is the conversation with user 7, `g5` that of group 5. */
export type ConversationKey = string

/** Milliseconds since 1970. */
export type Time = number

export interface Login {
  userId: number
  accessToken: string
  refreshToken: string
}

/** Where a login is kept; all tabs that share it must see what one of them sets. */
export interface TokenStore {
  get(): Login | null
  set(login: Login): void
}

/** A row of a message table. */
export interface Message {
  id: number
  clientMessageId: string | null
  senderId: number
  /** Private messages only. */
  receiverId?: number
  /** Group messages only. */
  groupId?: number
  /** A content type, such as {@link TEXT}. */
  type: number
  /** A JSON object as text; see {@link parseContent}. */
  content: string
  /** 0 as sent, 2 recalled. */
  status: number
  /** 0 no receipt asked for, 1 asked for, 2 read (in a group: by all). */
  receiptStatus: number
  readCount?: number | null
  atUserIds?: number[] | null
  sendTime: Time
}

/** A send without an answer yet, or with a refusal. */
export interface Draft {
  clientMessageId: string
  conversation: ConversationKey
  type: number
  content: string
  receipt?: boolean
  atUserIds?: number[]
  createdAt: Time
  /** Set once the server has refused it: {@link NudgeClient.resend} or {@link NudgeClient.discard}. */
  error?: { code: number; text: string } | null
}

export interface Friend {
  id: number
  friendUserId: number
  nickname: string | null
  displayName: string
  avatar: string | null
  silent: boolean
  pinned: boolean
  blocked: boolean
  /** 0 friends, 1 deleted. */
  status: number
  updateTime: Time
}

export interface FriendRequest {
  id: number
  fromUserId: number
  toUserId: number
  /** 0 unhandled, 1 agreed, 2 refused. */
  handleResult: number
  applyContent: string | null
  fromNickname: string | null
  toNickname: string | null
  updateTime: Time
}

export interface Group {
  id: number
  name: string
  ownerUserId: number
  avatar: string | null
  notice: string | null
  /** 0 present, 1 dissolved. */
  status: number
  /** 0 I am a member, 1 I was one. */
  joinStatus: number
  groupRemark: string | null
  silent: boolean | null
}

export interface Member {
  userId: number
  nickname: string | null
  displayUserName: string
  avatar: string | null
  /** 1 owner, 2 admin, 3 member. */
  role: number
  /** 0 in the group, 1 left. */
  status: number
}

export interface StateCursor {
  lastUpdateTime: Time
  lastId: number
}

export interface Cursors {
  private: number
  group: number
  groupListTime: Time
  friend: StateCursor | null
  friendRequest: StateCursor | null
  groupRequest: StateCursor | null
  read: StateCursor | null
}

/** Records of the database by table. `null` in a change: the record goes. */
export interface Changes {
  messages: Map<string, { table: number; row: Message } | null>
  states: Map<string, { kind: string; key: number | string; row: unknown } | null>
  outbox: Map<string, Draft | null>
  meta: Map<string, { key: string; value: unknown } | null>
}

/** Where a device keeps what it knows. Each device needs one of its own. */
export interface Persistence {
  load(): Promise<{
    messages: { table: number; row: Message }[]
    states: { kind: string; key: number | string; row: unknown }[]
    outbox: Draft[]
    meta: { key: string; value: unknown }[]
  }>
  /** Stores all of it in one transaction, or nothing: a cursor must never be saved ahead of its rows. */
  commit(changes: Changes): Promise<void>
  close(): void
  destroy(): Promise<void>
}

export class IndexedDbPersistence implements Persistence {
  constructor(databaseName: string)
  load: Persistence['load']
  commit: Persistence['commit']
  close(): void
  destroy(): Promise<void>
}

/** Keeps nothing: after a reload everything is pulled again. */
export class MemoryPersistence implements Persistence {
  load: Persistence['load']
  commit: Persistence['commit']
  close(): void
  destroy(): Promise<void>
}

export interface ApiOptions {
  /** The server, without a slash at its end; '' or absent: where the page came from. */
  base?: string
  tokens?: TokenStore
  fetch?: typeof fetch
}

export interface ClientOptions extends ApiOptions {
  tokens: TokenStore
  /** The device's name, shown in the list of sessions. Absent: `web`. */
  device?: string
  /** Absent: {@link MemoryPersistence}. */
  persistence?: Persistence
  WebSocket?: typeof WebSocket
  /** 0–1, for waits. */
  random?: () => number
  /** Waits before a reconnect and before a failed pull is tried again, in milliseconds. Absent: {@link backoff}. */
  backoff?: (attempt: number, random: number) => number
}

/** Why a call failed. `code` is the server's, 0 when there was no answer. `temporary`: repeat it later. */
export class NudgeError extends Error {
  readonly code: number
  readonly temporary: boolean
  constructor(code: number, text: string, temporary: boolean)
}

export function signIn(options: ApiOptions, username: string, password: string): Promise<Login>
export function register(options: ApiOptions, username: string, nickname: string, password: string): Promise<Login>

type Query = Record<string, string | number | boolean | null | undefined> | null

/** The plain calls; paths without `/admin-api`. They throw {@link NudgeError}. */
export class Api {
  constructor(options: ApiOptions)
  get<T>(path: string, query?: Query): Promise<T>
  post<T>(path: string, body?: unknown): Promise<T>
  put<T>(path: string, query?: Query, body?: unknown): Promise<T>
  delete<T>(path: string, query?: Query, body?: unknown): Promise<T>
  /** The URL of the stored file. */
  upload(file: Blob, name: string): Promise<string>
  canUpload(): Promise<boolean>
  /** Ends the login and every socket of it. */
  signOut(): Promise<void>
}

/** What this device knows. Read it on every `change`; change it through the client. */
export class Store {
  readonly me: number
  readonly cursors: Cursors
  readonly friend: ReadonlyMap<number, Friend>
  readonly friendRequest: ReadonlyMap<number, FriendRequest>
  readonly group: ReadonlyMap<number, Group>
  readonly outbox: ReadonlyMap<string, Draft>
  conversations(): ConversationKey[]
  /** Ascending. */
  messages(conversation: ConversationKey): Message[]
  message(table: number, id: number): Message | undefined
  lastMessage(conversation: ConversationKey, isShown?: (row: Message) => boolean): Message | undefined
  /** Counts up to 100. */
  unread(conversation: ConversationKey): number
  drafts(conversation: ConversationKey): Draft[]
  readPosition(conversation: ConversationKey): number
  /** Undefined until {@link NudgeClient.loadPeerRead} has been called on this connection. */
  peerRead(peer: number): number | undefined
  members(groupId: number): { list: Member[]; stale: boolean } | undefined
  isMember(groupId: number): boolean
}

export interface Socket {
  readonly state: 'connecting' | 'open' | 'waiting' | 'held' | 'closed'
  /** The close code that ended it for good. */
  readonly code: number
  /** When the next try comes. */
  readonly retryAt: Time
  readonly since: Time
  readonly opened: number
  /** Connects now: in the middle of a wait, or after the session was closed from another device. */
  connect(): void
  /** Cuts the socket and stays away for so long, for demonstrations and tests. */
  cut(ms: number): void
  release(): void
}

export interface ClientEvents {
  /** Something to show is different. */
  change: null
  /** Somebody else's new message. */
  message: { conversation: ConversationKey; row: Message; pushed: boolean }
  typing: { conversation: ConversationKey; senderId: number }
  connection: null
  /** Every frame of the server. */
  push: { conversationType: number; contentType: number; payload: Record<string, unknown> }
  /** A pull has ended: `rows` were new, `healed` of them after the first pull. Or it failed and goes on. */
  pull: { reason: string; rows?: number; healed?: number; error?: NudgeError }
  /** The login has ended; the client has stopped. */
  signedout: null
  /** The database failed: from now on nothing is stored, and the next start pulls again. */
  storagefailed: { error: unknown }
}

/** One device of one signed-in user. */
export class NudgeClient extends EventTarget {
  readonly api: Api
  readonly store: Store
  readonly socket: Socket
  readonly me: number
  /** Messages that only a pull brought. */
  readonly healed: number
  readonly stats: {
    pushes: number
    lastPush: { at: Time; type: number; id: number | null } | null
    pulls: number
    lastPull: { at: Time; reason: string; rows: number; healed: number } | null
    pulledRows: number
    resends: number
  }
  constructor(options: ClientOptions)
  /** Loads what the device knows, connects, and stays connected. */
  start(): Promise<void>
  stop(): Promise<void>
  /** Call it when the page becomes visible and when the network is back. */
  comeBack(reason: string): void
  /** Resolves when everything committed before this call is here. */
  pull(reason: string): Promise<void>
  /** Stores the message in the outbox and sends it until it is answered. Its client id. */
  send(conversation: ConversationKey, type: number, content: object, options?: { receipt?: boolean; atUserIds?: number[] }): string
  resend(clientMessageId: string): void
  discard(clientMessageId: string): void
  recall(conversation: ConversationKey, id: number): Promise<void>
  typing(conversation: ConversationKey): void
  /** I have read up to this message; reported until answered. */
  markRead(conversation: ConversationKey, id: number): void
  /** For a private conversation that is open: how far the peer has read. */
  loadPeerRead(peer: number): Promise<void>
  /** For a private conversation that is being opened: the friend's present nickname. */
  loadFriend(userId: number): Promise<void>
  /** For a group that is open. */
  loadMembers(groupId: number): Promise<Member[]>
  /** For a receipt that is open: who has read a group message of mine. */
  readers(groupId: number, messageId: number): Promise<number[]>
  /** The page of history before what is known. Whether there is more. */
  loadOlder(conversation: ConversationKey, limit?: number): Promise<boolean>
  /** A call that changes something, and a pull that brings what it changed. */
  act<T>(call: (api: Api) => Promise<T>): Promise<T>
  addEventListener<K extends keyof ClientEvents>(type: K, listener: (event: CustomEvent<ClientEvents[K]>) => void): void
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null, options?: AddEventListenerOptions | boolean): void
}

export const PRIVATE: 1
export const GROUP: 2
export const TEXT: 101
export const IMAGE: 102
export const VOICE: 103
export const VIDEO: 104
export const FILE: 105
export const MERGE: 107
export const CARD: 108
export const FACE: 115
export const MATERIAL: 125
export const RECALL: 2101
export const RECEIPT: 2200
export const READ: 2201
export const TYPING: 2301
export const FRIEND_INFO: 1209
/** Group events after which the member list is stale. */
export const MEMBER_EVENTS: ReadonlySet<number>
/** Close codes after which a client stays away. */
export const CLOSED_ELSEWHERE: 4001
export const SIGNED_OUT: 4002

export function conversationKey(type: number, target: number): ConversationKey
export function parseConversation(key: ConversationKey): { type: number; target: number }
export function conversationOf(table: number, row: Message, me: number): ConversationKey
export function isSentByUsers(type: number): boolean
export function isRecalled(row: Message): boolean
/** The row without its text. */
export function recall(row: Message): Message
/** The id that a RECALL row takes back, else null. */
export function recalledId(row: Message): number | null
/** The content as an object; `{}` where it is none. */
export function parseContent(row: { content: string }): Record<string, any>
export function parseFrame(text: string): ClientEvents['push'] | null
export function typeName(type: number): string
export function newClientId(): string
/** The wait before try `attempt` (from 0), milliseconds. */
export function backoff(attempt: number, random?: number): number
