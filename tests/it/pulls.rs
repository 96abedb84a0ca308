//! Pulling by cursor: whatever the page size, the numbers or the moment, every row comes once and in order
//! (`design.md` section 7; field tests A4, A5, A7, A8).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use nudge::actors::db_writer::DbWriter;
use nudge::db::StatementHook;
use nudge::db::conversation_reads::{Advance, PositionKey};
use nudge::db::sequence::Counter;
use nudge::domain::ids::{MAX_ID, MessageId, UserId};
use rand::seq::SliceRandom;
use serde_json::{Value, json};

use crate::support::app::{Setup, TestApp, id_of, ids_of, start_server};
use crate::support::cursors::{MessageCursor, PositionCursor};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{DirectWriter, text_draft};
use crate::support::stored::Tables;

on_every_database! {
    a_commit_between_any_two_statements_of_a_pull_loses_no_row,
    every_page_size_gives_the_same_rows_in_the_same_order,
    five_thousand_positions_of_one_stamp_are_pulled_once_each,
    cursors_survive_as_javascript_numbers,
    a_cursor_above_everything_is_answered_and_harms_nothing,
    a_restart_never_makes_ids_smaller,
}

const PRIVATE: i32 = 1;

/// Commits two messages before every statement of a read: one in each direction, because a pull reads what was sent
/// and what was received by two statements.
#[derive(Default)]
pub struct Between {
    pub server: OnceLock<(DbWriter, i64, i64)>,
    pub left: AtomicUsize,
}

impl Between {
    async fn commit(&self) {
        let is_armed = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_armed).is_err() {
            return;
        }
        let (writer, alice, bob) = self.server.get().unwrap();
        writer.send_private(text_draft(*alice, *bob, "between")).await.unwrap();
        writer.send_private(text_draft(*bob, *alice, "between")).await.unwrap();
    }

    pub fn hook(self: &Arc<Self>) -> StatementHook {
        let between = self.clone();
        Arc::new(move || {
            let between = between.clone();
            async move { between.commit().await }.boxed()
        })
    }
}

async fn a_commit_between_any_two_statements_of_a_pull_loses_no_row(backend: Backend) {
    let between = Arc::new(Between::default());
    let setup = Setup { read_hook: Some(between.hook()), ..Setup::default() };
    let app = TestApp::start_with(backend, setup).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    assert!(between.server.set((app.server.state().writer.clone(), alice.id, bob.id)).is_ok());
    for size in [1, 2, 3, 7, 100] {
        let mut of_alice = MessageCursor::new(&alice, size);
        let mut of_bob = MessageCursor::new(&bob, size);
        between.left.store(30, Ordering::SeqCst);
        while between.left.load(Ordering::SeqCst) > 0 {
            of_alice.page().await;
            of_bob.page().await;
        }
        of_alice.finish().await;
        of_bob.finish().await;
        let ids = Tables::open(&app.database.url).await.message_ids().await;
        assert_eq!(ids_of(&of_alice.rows), ids, "pages of {size}");
        assert_eq!(ids_of(&of_bob.rows), ids, "pages of {size}");
    }
}

async fn every_page_size_gives_the_same_rows_in_the_same_order(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    // Mine, his, and others' between them.
    let pairs: Vec<_> =
        (0..303).map(|number| [(alice.id, bob.id), (bob.id, alice.id), (bob.id, 1_000_000)][number % 3]).collect();
    DirectWriter::connect(&app.database.url).await.store_messages(&pairs).await;
    let expected = Tables::open(&app.database.url).await.message_ids_of(alice.id).await;
    assert_eq!(expected.len(), 203);
    let all = alice.pull_all(1_000).await;
    assert_eq!(ids_of(&all), expected);
    for size in [1, 2, 99, 100, 101, 202, 203, 204] {
        let mut cursor = MessageCursor::new(&alice, size);
        cursor.finish().await;
        assert_eq!(cursor.rows, all, "pages of {size}");
    }
}

async fn five_thousand_positions_of_one_stamp_are_pulled_once_each(backend: Backend) {
    let app = TestApp::start(backend).await;
    let bob = app.user("bob").await;
    let mut peers: Vec<i64> = (1_000_000..1_005_000).collect();
    peers.shuffle(&mut rand::rng());
    let mut writer = DirectWriter::connect(&app.database.url).await;
    writer.store_positions(&advances(bob.id, &[7]), 1_799_999_999_999).await;
    writer.store_positions(&advances(bob.id, &peers), 1_800_000_000_000).await;
    writer.store_positions(&advances(bob.id, &[8]), 1_800_000_000_001).await;

    let mut cursor = PositionCursor::new(&bob, 100);
    let mut pages = 0;
    while cursor.page().await > 0 {
        pages += 1;
    }
    assert_eq!((pages, cursor.count), (51, 5_002));
    let mut pulled: Vec<i64> = cursor.rows.values().map(|(peer, _, _)| *peer).collect();
    pulled.sort_unstable();
    peers.extend([7, 8]);
    peers.sort_unstable();
    assert_eq!(pulled, peers);
}

fn advances(reader: i64, peers: &[i64]) -> Vec<Advance> {
    let key = |peer| PositionKey { user: UserId(reader), conversation_type: PRIVATE, target: peer };
    peers.iter().map(|peer| Advance { key: key(*peer), message: MessageId(1) }).collect()
}

/// What JavaScript writes for a number that it read from JSON.
fn as_javascript(number: &Value) -> String {
    format!("{}", number.as_f64().unwrap())
}

async fn cursors_survive_as_javascript_numbers(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut direct = DirectWriter::connect(&app.database.url).await;
    direct.set_counter(Counter::Private, MAX_ID - 10).await;
    direct.set_counter(Counter::Clock, MAX_ID - 10).await;
    let mut sent = Vec::new();
    for number in 0..5 {
        let message = alice.send(&bob, &format!("number {number}")).await;
        bob.read(&alice, id_of(&message)).await;
        sent.push(message);
    }
    assert_eq!(id_of(&sent[0]), MAX_ID - 9);
    for (number, message) in sent.iter().enumerate() {
        let cursor = as_javascript(&message["id"]);
        let page = bob.get(&format!("/im/message/private/pull?minId={cursor}&size=100")).await;
        assert_eq!(ids_of(page.as_array().unwrap()), ids_of(&sent[number + 1..]), "after {cursor}");
        let found = bob.get(&format!("/im/message/private/list?receiverId={}&maxId={cursor}&limit=1", alice.id)).await;
        assert!(id_of(&found[0]) < id_of(message) && (number == 0 || found[0]["id"] == sent[number - 1]["id"]));
    }
    let position = bob.get("/im/conversation-read/pull?limit=10").await[0].clone();
    assert_eq!((position["messageId"].clone(), position["updateTime"].clone()), (json!(MAX_ID - 5), json!(MAX_ID - 5)));
    let (time, id) = (as_javascript(&position["updateTime"]), as_javascript(&position["id"]));
    let at_it = format!("/im/conversation-read/pull?lastUpdateTime={time}&lastId={id}&limit=10");
    assert_eq!(bob.get(&at_it).await, json!([]));
    // The next change is found from there.
    let message = alice.send(&bob, "the next").await;
    bob.read(&alice, id_of(&message)).await;
    assert_eq!(bob.get(&at_it).await[0]["updateTime"], MAX_ID - 4);
}

async fn a_cursor_above_everything_is_answered_and_harms_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let first = alice.send(&bob, "the first").await;
    bob.read(&alice, id_of(&first)).await;
    for cursor in [id_of(&first) + 1, MAX_ID, MAX_ID + 1, i64::MAX] {
        assert_eq!(bob.pull_from(cursor, 100).await, Vec::<Value>::new(), "after {cursor}");
        for id in [0, cursor] {
            let path = format!("/im/conversation-read/pull?lastUpdateTime={cursor}&lastId={id}&limit=10");
            let expected = if cursor > 4_000_000_000_000 { 0 } else { 1 };
            assert_eq!(bob.get(&path).await.as_array().unwrap().len(), expected, "{path}");
        }
    }
    // Others, and the same device with its right cursor, find everything.
    let second = alice.send(&bob, "the second").await;
    assert_eq!(bob.pull_from(id_of(&first), 100).await, std::slice::from_ref(&second));
    bob.read(&alice, id_of(&second)).await;
    assert_eq!(bob.get("/im/conversation-read/pull?limit=10").await[0]["messageId"], second["id"]);
}

async fn a_restart_never_makes_ids_smaller(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let last = alice.send(&bob, "the last").await;
    bob.read(&alice, id_of(&last)).await;
    let stamp = bob.get("/im/conversation-read/pull?limit=10").await[0]["updateTime"].clone();
    let mut socket = bob.connect().await;
    let TestApp { server, database, .. } = app;
    server.stop().await;
    assert_eq!(socket.closed().await, Some(1001));
    // As if the counters came from an older backup than the messages, and the machine's clock were behind too.
    let mut direct = DirectWriter::connect(&database.url).await;
    direct.set_counter(Counter::Private, 0).await;
    direct.set_counter(Counter::Clock, 0).await;
    let clock = nudge::clock::Clock::from_fn(|| 1_500_000_000_000);
    let server = start_server(&database.url, Setup { clock: Some(clock), ..Setup::default() }).await;

    let base = format!("http://{}", server.address());
    let (alice, bob) = (alice.on(&base).sign_in_again().await, bob.on(&base).sign_in_again().await);
    let next = alice.send(&bob, "the next").await;
    assert!(id_of(&next) > id_of(&last) && next["sendTime"].as_i64() >= last["sendTime"].as_i64(), "{next}");
    assert_eq!(bob.pull_from(id_of(&last), 100).await, std::slice::from_ref(&next));
    bob.read(&alice, id_of(&next)).await;
    let path = format!("/im/conversation-read/pull?lastUpdateTime={stamp}&lastId={MAX_ID}&limit=10");
    assert_eq!(bob.get(&path).await[0]["messageId"], next["id"]);
    server.stop().await;
}
