// Who is signed in here, and which device this tab is.
//
// All tabs of a browser share the logins; each tab is a device of its own, with its own socket, cursors and database.
// A tab takes the first device whose tab is gone, so a browser has as many databases as it had tabs at one time.

import { IndexedDbPersistence, MemoryPersistence } from '../sdk/nudge.js'

const USER = 'nudge.user'
const DEVICE = 'nudge.device'
const BROWSER = 'nudge.browser'
const MAX_DEVICES = 20
/** A page that was reloaded waits so long for its former self to let go of its device. */
const PATIENCE_MS = 500

/** The user of this tab, else that of the tab which signed in last; null: nobody. */
export function currentUser() {
  const user = Number(sessionStorage.getItem(USER) ?? localStorage.getItem(USER))
  return user && loginsOf(user).get() ? user : null
}

/** The login of one user as the SDK wants it, the same for all tabs. */
export function loginsOf(user) {
  const key = `nudge.login.${user}`
  return {
    get: () => JSON.parse(localStorage.getItem(key) ?? 'null'),
    set: (login) => localStorage.setItem(key, JSON.stringify(login)),
    clear: () => localStorage.removeItem(key)
  }
}

export function signedIn(login) {
  loginsOf(login.userId).set(login)
  sessionStorage.setItem(USER, login.userId)
  localStorage.setItem(USER, login.userId)
}

/** This tab goes back to the sign-in page; the login stays for others. */
export function leave() {
  sessionStorage.setItem(USER, '0')
  sessionStorage.removeItem(DEVICE)
}

/** This tab's device of a user: its name, and where it keeps what it knows. */
export async function takeDevice(user) {
  const number = await takeNumber(user)
  if (!number) return { name: 'web', persistence: new MemoryPersistence(), release() {} }
  sessionStorage.setItem(DEVICE, number.value)
  return {
    name: `web-${browserId()}-${number.value}`,
    persistence: new IndexedDbPersistence(databaseName(user, number.value)),
    release: number.release
  }
}

/** Removes what devices of a user keep that no tab uses any more. */
export async function removeData(user) {
  for (let value = 1; value <= MAX_DEVICES; value++) {
    const release = await tryLock(lockName(user, value))
    if (!release) continue
    await new IndexedDbPersistence(databaseName(user, value)).destroy().catch(() => {})
    release()
  }
}

/** A number that no other tab has; null where the browser cannot tell (a page without TLS on another machine). */
async function takeNumber(user) {
  if (!navigator.locks || !globalThis.indexedDB) return null
  const mine = Number(sessionStorage.getItem(DEVICE))
  if (mine) {
    const release = await lockWithin(lockName(user, mine), PATIENCE_MS)
    if (release) return { value: mine, release }
  }
  for (let value = 1; value <= MAX_DEVICES; value++) {
    const release = await tryLock(lockName(user, value))
    if (release) return { value, release }
  }
  return null
}

/** Takes a lock if it is free. What gives it back, else null. The end of the page gives it back too. */
function tryLock(name) {
  return requestLock(name, { ifAvailable: true })
}

function lockWithin(name, ms) {
  return requestLock(name, { signal: AbortSignal.timeout(ms) })
}

function requestLock(name, options) {
  if (!navigator.locks) return Promise.resolve(null)
  return new Promise((resolve) => {
    const hold = (lock) => (lock ? new Promise((release) => resolve(release)) : resolve(null))
    navigator.locks.request(name, options, hold).catch(() => resolve(null))
  })
}

function lockName(user, number) {
  return `nudge.${user}.${number}`
}

function databaseName(user, number) {
  return `nudge-${user}-${number}`
}

function browserId() {
  const known = localStorage.getItem(BROWSER)
  if (known) return known
  const id = Array.from(crypto.getRandomValues(new Uint8Array(3)), (byte) => byte.toString(16).padStart(2, '0')).join('')
  localStorage.setItem(BROWSER, id)
  return id
}
