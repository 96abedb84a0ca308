// The life of a connection: open, watched, lost, opened again after a wait. It knows nothing of what frames mean.

import { CLOSED_ELSEWHERE, SIGNED_OUT } from './protocol.js'

const PING_INTERVAL_MS = 20_000
/** After a ping so long without any frame the connection counts as lost. */
const SILENCE_MS = 25_000
const CONNECT_TIMEOUT_MS = 10_000
const BACKOFF_BASE_MS = 1_000
const BACKOFF_MAX_MS = 30_000
const JITTER_MS = 1_000

/** The wait before try `attempt` (from 0): 1, 2, 4 … 30 s, and up to a second at random. */
export function backoff(attempt, random = Math.random()) {
  return Math.min(BACKOFF_BASE_MS * 2 ** Math.min(attempt, 20), BACKOFF_MAX_MS) + random * JITTER_MS
}

/**
 * States: `connecting`, `open`, `waiting` (until `retryAt`), `held` (cut on purpose, until `retryAt`), and `closed` for
 * good, with the `code` that said so (0: by {@link Socket#close}).
 */
export class Socket {
  state = 'closed'
  code = 0
  /** When the next try comes, or when a cut ends: milliseconds since 1970. */
  retryAt = 0
  /** When the present state began. */
  since = Date.now()
  /** Sockets that were opened. */
  opened = 0

  #socket = null
  #attempt = 0
  #timer = null
  #pings = null
  #unanswered = 0
  #options

  /**
   * `url()` is asked before each try. `onText(text)`, `onOpen()` and `onState()` are told what happens; `checkLogin()`
   * is asked after a refused handshake, of which a browser does not tell the reason, and says whether to go on.
   */
  constructor(options) {
    this.#options = { WebSocket: globalThis.WebSocket, backoff, ...options }
  }

  /** Connects now, also in the middle of a wait. Nothing happens while a socket is there or held. */
  connect() {
    if (this.state === 'open' || this.state === 'connecting' || this.state === 'held') return
    this.#open()
  }

  /** Closes for good. */
  close() {
    this.#drop()
    this.#enter('closed', 0)
  }

  /** Cuts the socket and stays away for so long, or until {@link release}. */
  cut(ms) {
    this.#drop()
    this.retryAt = Date.now() + ms
    this.#timer = setTimeout(() => this.release(), ms)
    this.#enter('held')
  }

  /** The end of a cut. */
  release() {
    if (this.state !== 'held') return
    this.#attempt = 0
    this.#open()
  }

  #open() {
    this.#drop()
    let socket
    try {
      socket = new this.#options.WebSocket(this.#options.url())
    } catch {
      return this.#wait()
    }
    this.#socket = socket
    this.#enter('connecting')
    this.#timer = setTimeout(() => this.#lost(socket, 0), CONNECT_TIMEOUT_MS)
    socket.onopen = () => {
      if (this.#socket !== socket) return
      clearTimeout(this.#timer)
      this.#attempt = 0
      this.opened += 1
      this.#unanswered = 0
      this.#pings = setInterval(() => this.#ping(socket), PING_INTERVAL_MS)
      this.#enter('open')
      this.#options.onOpen()
    }
    socket.onmessage = (event) => {
      if (this.#socket !== socket) return
      this.#unanswered = 0
      if (typeof event.data === 'string') this.#options.onText(event.data)
    }
    socket.onclose = (event) => this.#lost(socket, event.code)
  }

  #ping(socket) {
    // Timers of hidden pages come late, frames do not: only a ping without an answer says something.
    if (this.#unanswered && Date.now() - this.#unanswered > SILENCE_MS) return this.#lost(socket, 0)
    this.#unanswered ||= Date.now()
    socket.send('ping')
  }

  async #lost(socket, code) {
    if (this.#socket !== socket) return
    const wasOpen = this.state === 'open'
    this.#drop()
    if (code === CLOSED_ELSEWHERE || code === SIGNED_OUT) return this.#enter('closed', code)
    this.#wait()
    if (wasOpen) return
    const mayGoOn = await this.#options.checkLogin()
    if (!mayGoOn && this.state !== 'closed') {
      this.#drop()
      this.#enter('closed', SIGNED_OUT)
    }
  }

  #wait() {
    const wait = this.#options.backoff(this.#attempt)
    this.#attempt += 1
    this.retryAt = Date.now() + wait
    this.#timer = setTimeout(() => this.#open(), wait)
    this.#enter('waiting')
  }

  /** Lets go of the present socket: whatever it still says is not heard. */
  #drop() {
    clearTimeout(this.#timer)
    clearInterval(this.#pings)
    const socket = this.#socket
    this.#socket = null
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    socket.close()
  }

  #enter(state, code = 0) {
    this.state = state
    this.code = code
    this.since = Date.now()
    this.#options.onState()
  }
}
