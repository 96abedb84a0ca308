// Runs in a page: two people with two devices each write to each other and to a group, over a network that loses
// requests, answers, frames and sockets, and delays the rest, so that frames overtake each other. In the end the network
// is good, and every device must have every message once, in order. On the way, what the databases hold is looked at:
// at no moment may a cursor be ahead of its rows.

const [logins, groupId, seed, sends] = arguments
const sdk = await import('/assets/sdk/nudge.js')
const { GROUP, IndexedDbPersistence, MemoryPersistence, NudgeClient, PRIVATE, TEXT, isSentByUsers, parseContent } = sdk

let state = seed
// mulberry32
const random = () => {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}
/** A trouble at random, but at the latest the eighth time that it could happen, so that each run has some of each. */
const chances = {}
const chance = (trouble, probability) => {
  if (!isBad) return false
  chances[trouble] = (chances[trouble] ?? 0) + 1
  if (random() >= probability && chances[trouble] < 8) return false
  chances[trouble] = 0
  troubles[trouble] += 1
  return true
}
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const troubles = { lostRequests: 0, lostAnswers: 0, lostFrames: 0, lostSockets: 0, snapshots: 0 }
let isBad = true

async function flakyFetch(url, init) {
  if (isBad) await sleep(random() * 30)
  if (chance('lostRequests', 0.12)) throw new TypeError('lost on its way')
  const response = await fetch(url, init)
  if (isBad) await sleep(random() * 30)
  if (!chance('lostAnswers', 0.12)) return response
  throw new TypeError('lost on its way back')
}

class FlakySocket {
  #inner
  #isGone = false

  constructor(url) {
    this.#inner = new WebSocket(url)
    this.#inner.onopen = () => this.onopen?.()
    this.#inner.onclose = (event) => this.#end(event.code)
    this.#inner.onmessage = (event) => this.#frame(event)
  }

  async #frame(event) {
    if (chance('lostFrames', 0.15)) return
    if (chance('lostSockets', 0.05)) {
      this.#inner.close()
      return this.#end(1006)
    }
    if (isBad) await sleep(random() * 60)
    if (!this.#isGone) this.onmessage?.(event)
  }

  #end(code) {
    if (this.#isGone) return
    this.#isGone = true
    this.onclose?.({ code })
  }

  send(text) {
    if (this.#inner.readyState === WebSocket.OPEN) this.#inner.send(text)
  }

  close() {
    this.#isGone = true
    this.#inner.close()
  }
}

// -- the devices: the first of each person stores in a database, the second nowhere

const devices = logins.flatMap((login, person) =>
  [0, 1].map((number) => {
    let tokens = login
    const name = `flaky-${seed}-${person}`
    const client = new NudgeClient({
      tokens: { get: () => tokens, set: (renewed) => (tokens = renewed) },
      device: `flaky-${number}`,
      persistence: number === 0 ? new IndexedDbPersistence(name) : new MemoryPersistence(),
      fetch: flakyFetch,
      WebSocket: FlakySocket,
      random,
      backoff: (attempt, part) => 30 + part * 60
    })
    return { person, number, name, client }
  })
)
await Promise.all(devices.map(({ client }) => client.start()))

const peerOf = (person) => `p${logins[1 - person].userId}`
const written = []
const snapshots = []

async function write(device) {
  for (let n = 0; n < sends; n++) {
    const text = `${device.person}${device.number}-${n}`
    const conversation = random() < 0.5 ? peerOf(device.person) : `g${groupId}`
    written.push({ person: device.person, conversation, text })
    device.client.send(conversation, TEXT, { content: text })
    await sleep(random() * 120)
  }
}

/** What a device would find if it were started again now. */
async function look(device) {
  const persistence = new IndexedDbPersistence(device.name)
  const { messages, meta } = await persistence.load()
  persistence.close()
  const cursors = meta.find(({ key }) => key === 'cursors')?.value
  if (!cursors) return
  troubles.snapshots += 1
  const ids = (table) => new Set(messages.filter((it) => it.table === table).map((it) => it.row.id))
  snapshots.push({ person: device.person, cursors, ids: { [PRIVATE]: ids(PRIVATE), [GROUP]: ids(GROUP) } })
}

let isWriting = true
const looking = (async () => {
  while (isWriting) {
    for (const device of devices) if (device.number === 0) await look(device)
    await sleep(5)
  }
})()
await Promise.all(devices.map(write))
const waiting = () => devices.reduce((sum, { client }) => sum + client.store.outbox.size, 0)
const until = async (isTrue, ms) => {
  const deadline = Date.now() + ms
  while (!isTrue() && Date.now() < deadline) await sleep(20)
}
// Most of it is sent over the bad network, however slow the machine.
await until(() => waiting() <= 4, 60_000)

// -- the network is good again

isBad = false
for (const { client } of devices) client.comeBack('online')
const isDone = () => devices.every(({ client }) => client.store.outbox.size === 0 && client.socket.state === 'open')
await until(isDone, 60_000)
await Promise.all(devices.map(({ client }) => client.pull('action')))
isWriting = false
await looking
for (const device of devices) if (device.number === 0) await look(device)

// -- what must be

const failures = []
const check = (holds, what) => holds || failures.push(what)
check(isDone(), 'not everything was sent')
const stored = {}
for (const device of devices) {
  const { client, person } = device
  const label = `device ${person}${device.number}`
  for (const conversation of [peerOf(person), `g${groupId}`]) {
    const table = conversation[0] === 'g' ? GROUP : PRIVATE
    const path = table === GROUP ? '/im/message/group/list' : '/im/message/private/list'
    const target = Number(conversation.slice(1))
    const rows = []
    for (let maxId; ; ) {
      const page = await client.api.get(path, { [table === GROUP ? 'groupId' : 'receiverId']: target, limit: 200, maxId })
      rows.unshift(...page.reverse())
      if (page.length < 200) break
      maxId = rows[0].id
    }
    stored[`${person} ${table}`] = rows
    const mine = client.store.messages(conversation)
    check(JSON.stringify(mine.map((row) => row.id)) === JSON.stringify(rows.map((row) => row.id)), `${label} has other messages of ${conversation}: ${mine.length} instead of ${rows.length}`)
    check(client.store.cursors[table === GROUP ? 'group' : 'private'] === rows.at(-1).id, `${label}: the cursor is not at the end of ${conversation}`)
    const texts = mine.filter((row) => isSentByUsers(row.type)).map((row) => parseContent(row).content)
    const expected = written.filter((it) => (table === GROUP ? it.conversation === conversation : it.conversation[0] === 'p')).map((it) => it.text)
    check(JSON.stringify([...texts].sort()) === JSON.stringify([...expected].sort()), `${label}: not every text is in ${conversation} once`)
    for (const other of devices) {
      const own = (list) => list.filter((text) => text.startsWith(`${other.person}${other.number}-`)).join()
      check(own(texts) === own(expected), `${label}: ${conversation} has what ${other.person}${other.number} wrote in another order`)
    }
  }
}
for (const { person, cursors, ids } of snapshots) {
  for (const [stream, table] of [['private', PRIVATE], ['group', GROUP]]) {
    const missing = stored[`${person} ${table}`].filter((row) => row.id <= cursors[stream] && !ids[table].has(row.id))
    check(missing.length === 0, `a database was at cursor ${cursors[stream]} without ${missing.map((row) => row.id)}`)
  }
}
const healed = devices.reduce((sum, { client }) => sum + client.healed, 0)
const resends = devices.reduce((sum, { client }) => sum + client.stats.resends, 0)
for (const { client } of devices) await client.stop()
return { failures: [...new Set(failures)], troubles, healed, resends }
