// Runs in a page: what the SDK's store makes of rows. Returns what was not as it should be.

const { PRIVATE, GROUP, TEXT, RECALL, Store, parseFrame, backoff } = await import('/assets/sdk/nudge.js')

const failures = []
const equal = (what, actual, expected) => {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (a !== b) failures.push(`${what}: ${a} instead of ${b}`)
}

const ME = 1
const row = (id, fields = {}) => ({
  id, clientMessageId: `c${id}`, senderId: 2, receiverId: ME, type: TEXT, content: '{"content":"x"}', status: 0, receiptStatus: 0, sendTime: id, ...fields
})
const recallOf = (id, by) => row(id, { type: RECALL, content: JSON.stringify({ messageId: by }) })
const page = (list, minId) => ({ list, minId, more: false, truncated: false })
const states = (list = [], lastUpdateTime = null, lastId = null) => ({ list, lastUpdateTime, lastId, more: false })
const answer = (rows, fields = {}) => ({
  private: page(rows, rows.at(-1)?.id ?? 0), group: page([], 0), friend: states(), friendRequest: states(), groupRequest: states(), read: states(), groupList: null, ...fields
})
const ids = (store) => store.messages('p2').map((message) => message.id)

// Order and repetition.
const merged = new Store(ME)
equal('new', merged.mergeMessage(PRIVATE, row(7)), true)
equal('known', merged.mergeMessage(PRIVATE, row(7)), false)
merged.mergeMessage(PRIVATE, row(3))
merged.mergeMessage(PRIVATE, row(9))
equal('ascending', ids(merged), [3, 7, 9])

// Only pulls move cursors.
equal('a push leaves the cursor', merged.cursors.private, 0)
equal('a pull brings what is new', merged.mergeAnswer(answer([row(5), row(7)])).map(({ row: fresh }) => fresh.id), [5])
equal('a pull moves the cursor', merged.cursors.private, 7)
equal('and asks from there', merged.syncRequest(100).privateMinId, 7)
merged.mergeAnswer(answer([]))
equal('never back', merged.cursors.private, 7)

// State cursors overlap, and only go forward.
const friend = (id, updateTime, fields = {}) => ({ id, friendUserId: id, updateTime, status: 0, ...fields })
merged.mergeAnswer(answer([], { friend: states([friend(4, 10_000, { nickname: 'new' })], 10_000, 4) }))
equal('overlap', merged.syncRequest(100).friend, { lastUpdateTime: 5_000, lastId: 0 })
merged.mergeAnswer(answer([], { friend: states([friend(4, 9_000, { nickname: 'old' })], 9_000, 4) }))
equal('state cursor', merged.cursors.friend, { lastUpdateTime: 10_000, lastId: 4 })
equal('the newer row stays', merged.friend.get(4).nickname, 'new')

// Recalls, in both orders.
const recalled = new Store(ME)
recalled.mergeMessage(PRIVATE, recallOf(11, 10))
recalled.mergeMessage(PRIVATE, row(10))
recalled.mergeMessage(PRIVATE, row(12))
recalled.mergeMessage(PRIVATE, recallOf(13, 12))
recalled.mergeMessage(PRIVATE, row(12))
for (const id of [10, 12]) equal(`recalled ${id}`, [recalled.message(PRIVATE, id).status, recalled.message(PRIVATE, id).content], [2, '{}'])

// Read positions only rise; unread counts follow them.
const unread = new Store(ME)
for (const id of [1, 2, 3]) unread.mergeMessage(PRIVATE, row(id))
unread.mergeMessage(PRIVATE, row(4, { senderId: ME, receiverId: 2 }))
unread.mergeMessage(PRIVATE, row(5, { type: 1204 }))
equal('unread', unread.unread('p2'), 3)
unread.raiseRead('p2', 2)
unread.raiseRead('p2', 1)
equal('unread after reading', unread.unread('p2'), 1)
unread.mergeMessage(PRIVATE, recallOf(6, 3))
equal('recalled is not unread', unread.unread('p2'), 0)

// A receipt does not go away with an older copy.
const receipts = new Store(ME)
receipts.mergeMessage(GROUP, { ...row(1), senderId: ME, groupId: 5, receiptStatus: 1, readCount: 0 })
receipts.mergeReceipt(5, 1, 2, 2)
receipts.mergeMessage(GROUP, { ...row(1), senderId: ME, groupId: 5, receiptStatus: 1, readCount: 0 })
equal('receipt', [receipts.message(GROUP, 1).receiptStatus, receipts.message(GROUP, 1).readCount], [2, 2])

// The answer, the push or the pull of a send ends its draft; the rows and the draft's end are one change.
const sent = new Store(ME)
sent.setDraft({ clientMessageId: 'mine', conversation: 'p2', type: TEXT, content: '{}', createdAt: 1 })
sent.takeChanges()
sent.mergeMessage(PRIVATE, row(8, { senderId: ME, receiverId: 2, clientMessageId: 'mine' }))
const change = sent.takeChanges()
equal('draft is gone', [sent.outbox.size, change.outbox.get('mine'), change.messages.size], [0, null, 1])
equal('nothing is left to store', sent.takeChanges(), null)

// A cursor is stored together with the rows that it passed.
const stored = new Store(ME)
stored.mergeAnswer(answer([row(20), row(21)]))
const saved = stored.takeChanges()
equal('rows and cursor', [saved.messages.size, saved.meta.get('cursors').value.private], [2, 21])
const again = new Store(ME)
again.restore({ messages: [...saved.messages.values()], states: [], outbox: [], meta: [...saved.meta.values()] })
equal('restored', [ids(again), again.cursors.private, again.takeChanges()], [[20, 21], 21, null])

// Bounded: old pulled messages are forgotten, others are not.
const small = new Store(ME, 10)
for (let id = 1; id <= 30; id++) small.mergeMessage(PRIVATE, row(id))
equal('not pulled, not forgotten', ids(small).length, 30)
small.mergeAnswer(answer([row(31)]))
equal('forgotten', [ids(small).length, ids(small)[0]], [10, 22])

// Away for longer than pulls reach back: no hole between old and new.
const away = new Store(ME)
away.mergeAnswer(answer([row(1), row(2)]))
away.mergeAnswer(answer([], { private: { ...page([], 2), truncated: true } }))
equal('nothing new, nothing lost', ids(away), [1, 2])
away.mergeMessage(PRIVATE, row(9))
away.mergeAnswer(answer([], { private: { ...page([row(8), row(9)], 9), truncated: true } }))
equal('no hole', ids(away), [8, 9])

// Frames of other kinds, and no frames at all.
const frame = { type: 'im-notification', content: JSON.stringify({ conversationType: 1, contentType: 101, payload: { id: 1 } }) }
equal('frame', parseFrame(JSON.stringify(frame)).payload.id, 1)
for (const text of ['pong', '', '{}', '[]', 'null', '{"type":"im-notification","content":"x"}', '{"type":"im-notification","content":"{}"}', '{"type":"other","content":"{}"}']) {
  equal(`no frame: ${text}`, parseFrame(text), null)
}
equal('backoff', [0, 1, 4, 5, 99].map((attempt) => backoff(attempt, 0)), [1_000, 2_000, 16_000, 30_000, 30_000])
equal('jitter', backoff(0, 0.5), 1_500)

// What the SDK exports is typed.
const types = await (await fetch('/assets/sdk/nudge.d.ts')).text()
for (const name of Object.keys(await import('/assets/sdk/nudge.js'))) {
  equal(`typed: ${name}`, new RegExp(`^export (class|const|function) ${name}\\b`, 'm').test(types), true)
}

return failures
