// Where a device keeps what it knows: IndexedDB, or nothing but memory.
//
// One rule matters: rows and the cursors that passed them are written in ONE transaction. A cursor that is saved ahead
// of its rows would skip them for good.

const VERSION = 1
const TABLES = ['messages', 'states', 'outbox', 'meta']

/** Keeps nothing: after a reload the device pulls everything again. For tests, and where there is no IndexedDB. */
export class MemoryPersistence {
  async load() {
    return { messages: [], states: [], outbox: [], meta: [] }
  }

  async commit() {}

  close() {}

  async destroy() {}
}

/** One IndexedDB database, which belongs to one device: two devices must not share one. */
export class IndexedDbPersistence {
  #name
  #database = null

  constructor(name) {
    this.#name = name
  }

  /** Everything that was stored: lists of what {@link commit} was given. */
  async load() {
    this.#database = await open(this.#name)
    const transaction = this.#database.transaction(TABLES)
    const lists = TABLES.map((table) => finished(transaction.objectStore(table).getAll()))
    const [messages, states, outbox, meta] = await Promise.all(lists)
    return { messages, states, outbox, meta }
  }

  /**
   * Stores `{messages, states, outbox, meta}`, each a Map from key to record, or to null where the record goes. All or
   * nothing.
   */
  commit(changes) {
    if (!this.#database) return Promise.reject(new Error('the database is closed'))
    const transaction = this.#database.transaction(TABLES, 'readwrite')
    for (const table of TABLES) {
      const store = transaction.objectStore(table)
      for (const [key, record] of changes[table]) {
        if (record === null) store.delete(key)
        else store.put(record, key)
      }
    }
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve()
      transaction.onerror = transaction.onabort = () => reject(transaction.error ?? new Error('aborted'))
    })
  }

  close() {
    this.#database?.close()
    this.#database = null
  }

  async destroy() {
    this.close()
    await finished(indexedDB.deleteDatabase(this.#name))
  }
}

function open(name) {
  const request = indexedDB.open(name, VERSION)
  request.onupgradeneeded = () => {
    for (const table of TABLES) request.result.createObjectStore(table)
  }
  return finished(request)
}

function finished(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = request.onblocked = () => reject(request.error ?? new Error('blocked'))
  })
}
