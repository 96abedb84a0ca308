// HTTP calls of a signed-in user. An access token that has ended is renewed once, and the call repeated.

const CALL_TIMEOUT_MS = 15_000
const UPLOAD_TIMEOUT_MS = 120_000
const UNAUTHENTICATED = 401
const REQUEST_TIMEOUT = 408
/** There is one; some calls must name it. */
const TENANT = { 'tenant-id': '1' }
const WRONG_METHOD = 405

/**
 * Why a call failed. `code` is the server's, or 0 when there was no answer. `temporary`: the same call may succeed
 * later, and repeating it is safe.
 */
export class NudgeError extends Error {
  constructor(code, text, temporary) {
    super(text)
    this.name = 'NudgeError'
    this.code = code
    this.temporary = temporary
  }
}

/** Signs in with name and password. */
export function signIn(options, username, password) {
  return new Api(options).open('/system/auth/login', { username, password })
}

/** Makes an account and signs it in. */
export function register(options, username, nickname, password) {
  return new Api(options).open('/system/auth/register', { username, nickname, password })
}

export class Api {
  #base
  #fetch
  #tokens
  #renewal = null

  /**
   * `base` is the server's address without a slash at its end, '' for the page's own. `tokens` keeps the login where
   * all tabs find it: `{get(), set(login)}` with `{userId, accessToken, refreshToken}`.
   */
  constructor({ base = '', tokens = null, fetch = globalThis.fetch.bind(globalThis) }) {
    this.#base = base
    this.#tokens = tokens
    this.#fetch = fetch
  }

  get(path, query) {
    return this.call('GET', path, query)
  }

  put(path, query, body) {
    return this.call('PUT', path, query, body)
  }

  delete(path, query, body) {
    return this.call('DELETE', path, query, body)
  }

  post(path, body) {
    return this.call('POST', path, null, body ?? {})
  }

  /** The `data` of the answer. Throws a {@link NudgeError}; code 401 means that the login has ended. */
  async call(method, path, query, body) {
    const url = this.#base + '/admin-api' + path + queryString(query)
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const text = body === undefined ? undefined : JSON.stringify(body)
    return this.#authorized({ method, headers, body: text }, url, CALL_TIMEOUT_MS)
  }

  /** Stores a file on the server; the answer is its URL. */
  upload(file, name) {
    const form = new FormData()
    form.append('file', file, name)
    const request = { method: 'POST', headers: {}, body: form }
    return this.#authorized(request, this.#base + '/admin-api/infra/file/upload', UPLOAD_TIMEOUT_MS)
  }

  /** Whether this server stores files: asked with the wrong method, a path that exists says so. */
  async canUpload() {
    try {
      await this.get('/infra/file/upload')
      return false
    } catch (error) {
      return error.code === WRONG_METHOD
    }
  }

  /** Ends the login, and with it every tab and socket that uses it. */
  async signOut() {
    // Only a living access token ends its login; this call renews one that has ended.
    await this.get('/system/auth/get-permission-info')
    await this.post('/system/auth/logout')
  }

  /** The address of the socket, with the token that opens it. */
  socketUrl(device) {
    const base = this.#base || globalThis.location.origin
    const query = { token: this.#tokens.get()?.refreshToken ?? '', device, platform: 'web', resume: 0 }
    return base.replace(/^http/, 'ws') + '/infra/ws' + queryString(query)
  }

  async #authorized(request, url, timeout) {
    const used = this.#tokens?.get()?.accessToken
    if (!used) throw new NudgeError(UNAUTHENTICATED, 'not signed in', false)
    const attempt = (token) => {
      const headers = { ...request.headers, ...TENANT, authorization: `Bearer ${token}` }
      return this.#execute({ ...request, headers }, url, timeout)
    }
    try {
      return await attempt(used)
    } catch (error) {
      if (error.code !== UNAUTHENTICATED) throw error
    }
    return attempt(await this.#renew(used))
  }

  /** An access token other than `stale`. Calls that fail together renew once; another tab may have done it already. */
  #renew(stale) {
    this.#renewal ??= this.#renewNow(stale).finally(() => (this.#renewal = null))
    return this.#renewal
  }

  async #renewNow(stale) {
    const known = this.#tokens.get()
    if (!known) throw new NudgeError(UNAUTHENTICATED, 'not signed in', false)
    if (known.accessToken !== stale) return known.accessToken
    const query = queryString({ refreshToken: known.refreshToken })
    const url = `${this.#base}/admin-api/system/auth/refresh-token${query}`
    try {
      const login = await this.#execute({ method: 'POST', headers: TENANT }, url, CALL_TIMEOUT_MS)
      this.#tokens.set(login)
      return login.accessToken
    } catch (error) {
      if (error.temporary) throw error
      throw new NudgeError(UNAUTHENTICATED, error.message, false)
    }
  }

  /** A call that makes a login. */
  open(path, body) {
    const headers = { 'content-type': 'application/json', ...TENANT }
    const request = { method: 'POST', headers, body: JSON.stringify(body) }
    return this.#execute(request, `${this.#base}/admin-api${path}`, CALL_TIMEOUT_MS)
  }

  async #execute(request, url, timeout) {
    let status = 0
    let answer
    try {
      const signal = AbortSignal.timeout(timeout)
      let response
      // 408: the server did not come to read the request, and has not run it.
      do response = await this.#fetch(url, { ...request, cache: 'no-store', signal })
      while (response.status === REQUEST_TIMEOUT)
      status = response.status
      answer = await response.json()
    } catch {
      throw new NudgeError(0, status ? `HTTP ${status}` : 'no answer', true)
    }
    if (answer?.code === 0) return answer.data
    const code = Number(answer?.code) || 0
    throw new NudgeError(code, String(answer?.msg ?? `HTTP ${status}`), code === 429 || (code < 600 && code >= 500) || !code)
  }
}

function queryString(query) {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null)
  return pairs.length ? '?' + new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])) : ''
}
