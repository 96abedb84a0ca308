//! Long replays: pages, each sent after the pong of the page before; live frames wait behind them, within the byte
//! budget of the session.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nudge::protocol::close::CloseReason;

use crate::pulls::Between;
use crate::support::app::{Person, Setup, TestApp, id_of};
use crate::support::bare::{BareFrame, BareSocket, stored_ids};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::DirectWriter;
use crate::support::stored::Tables;

on_every_database! {
    a_commit_between_any_two_statements_of_a_handshake_comes_once,
    a_long_replay_goes_page_by_page_and_live_frames_follow_it,
    both_streams_share_the_pages,
    a_page_of_long_messages_is_short,
    more_live_frames_than_the_budget_holds_cut_the_session,
    a_session_cut_while_replaying_confirms_only_what_was_answered,
}

/// Rows of a page.
const PAGE: usize = 500;
/// Characters of a long text.
const LONG: usize = 4_000;

/// Bob with a device that has been seen, and so many messages of alice since.
async fn with_backlog(app: &TestApp, count: usize) -> (Person, Person, Vec<i64>) {
    let (alice, bob) = app.friends("alice", "bob").await;
    BareSocket::open(&bob, &app.base, "").await;
    let mut table = DirectWriter::connect(&app.database.url).await;
    let ids = table.store_messages(&vec![(alice.id, bob.id); count]).await;
    (alice, bob, ids)
}

/// Before and after the attach, before the counter is read and after it: whatever is committed when, the socket has it.
async fn a_commit_between_any_two_statements_of_a_handshake_comes_once(backend: Backend) {
    let between = Arc::new(Between::default());
    let app = TestApp::start_with(backend, Setup { read_hook: Some(between.hook()), ..Setup::default() }).await;
    let (alice, bob, backlog) = with_backlog(&app, 3).await;
    assert!(between.server.set((app.server.state().writer.clone(), alice.id, bob.id)).is_ok());
    between.left.store(1_000, Ordering::SeqCst);
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let left = between.left.swap(0, Ordering::SeqCst);
    assert!(left < 990, "a handshake with {} statements?", 1_000 - left);
    let mut expected = Tables::open(&app.database.url).await.message_ids().await;
    expected.retain(|id| *id >= backlog[0]);
    assert_eq!(stored_ids(&socket.drain().await), expected);
}

async fn a_long_replay_goes_page_by_page_and_live_frames_follow_it(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob, mut expected) = with_backlog(&app, 3_000).await;
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let mut received = Vec::new();
    for number in 0.. {
        let (pushes, ping) = socket.until_ping().await;
        let ids = stored_ids(&pushes);
        assert!(ids.len() <= PAGE, "a page of {}", ids.len());
        received.extend(ids);
        if received.len() >= 3_000 {
            socket.pong(&ping).await;
            break;
        }
        // Live messages come while the replay runs, and nothing else before the pong.
        expected.push(id_of(&alice.send(&bob, &format!("live {number}")).await));
        assert_eq!(socket.drain().await, vec![], "page {number} was not answered");
        assert!(app.server.state().registry.in_flight_bytes() < 256 << 10);
        socket.pong(&ping).await;
    }
    // The last page reaches the counter, or the next one does; live frames follow.
    expected.push(id_of(&alice.send(&bob, "the last one").await));
    received.extend(socket.take_stored(expected.len() - received.len()).await);
    assert_eq!(received, expected, "each once, in order");
}

async fn both_streams_share_the_pages(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    BareSocket::open(&bob, &app.base, "").await;
    let mut table = DirectWriter::connect(&app.database.url).await;
    let private = table.store_messages(&vec![(alice.id, bob.id); PAGE - 2]).await;
    let mut in_group = Vec::new();
    for _ in 0..4 {
        in_group.push(table.store_group_message(group, alice.id, "hello").await);
    }
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let (pushes, ping) = socket.until_ping().await;
    assert_eq!(stored_ids(&pushes), [&private[..], &in_group[..2]].concat());
    // Private messages are done and flow, those of groups still wait.
    let live = id_of(&alice.send(&bob, "live").await);
    in_group.push(id_of(&alice.say(group, "live").await));
    assert_eq!(stored_ids(&socket.drain().await), [live]);
    socket.pong(&ping).await;
    assert_eq!(socket.take_stored(3).await, in_group[2..]);
}

async fn a_page_of_long_messages_is_short(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    BareSocket::open(&bob, &app.base, "").await;
    let text = "x".repeat(LONG);
    let mut sent = Vec::new();
    for _ in 0..140 {
        sent.push(id_of(&alice.send(&bob, &text).await));
    }
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let (pushes, ping) = socket.until_ping().await;
    let mut received = stored_ids(&pushes);
    let count = received.len();
    assert!((55..=65).contains(&count), "{count} rows are not about 256 KiB");
    socket.pong(&ping).await;
    let (pushes, ping) = socket.until_ping().await;
    received.extend(stored_ids(&pushes));
    assert_eq!(received.len(), 2 * count);
    socket.pong(&ping).await;
    received.extend(socket.take_stored(140 - 2 * count).await);
    assert_eq!(received, sent);
}

async fn more_live_frames_than_the_budget_holds_cut_the_session(backend: Backend) {
    let mut setup = Setup::default();
    setup.config.websocket.max_in_flight_bytes = 300 << 10;
    let app = TestApp::start_with(backend, setup).await;
    let (alice, bob, stored) = with_backlog(&app, PAGE + 1).await;
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let (pushes, _) = socket.until_ping().await;
    assert_eq!(stored_ids(&pushes), stored[..PAGE]);
    // The peer reads, but the pong of the page does not come.
    let text = "x".repeat(LONG);
    let mut missed = stored[PAGE..].to_vec();
    for _ in 0..80 {
        missed.push(id_of(&alice.send(&bob, &text).await));
    }
    assert_eq!(socket.closed().await, Some(CloseReason::SlowConsumer.code()));
    // Nothing of the first page was confirmed, so all of it comes again.
    let mut again = BareSocket::open(&bob, &app.base, "").await;
    assert_eq!(again.take_stored(PAGE + missed.len()).await, [&stored[..PAGE], &missed[..]].concat());
}

async fn a_session_cut_while_replaying_confirms_only_what_was_answered(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (_, bob, stored) = with_backlog(&app, 3 * PAGE).await;
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let (_, ping) = socket.until_ping().await;
    socket.pong(&ping).await;
    // The second page comes and is not answered.
    let (pushes, _) = socket.until_ping().await;
    assert_eq!(stored_ids(&pushes), stored[PAGE..2 * PAGE]);
    drop(socket);
    let mut again = BareSocket::open(&bob, &app.base, "").await;
    let (pushes, _) = again.until_ping().await;
    assert_eq!(stored_ids(&pushes), stored[PAGE..2 * PAGE], "from the first page's end");
}

#[actix_web::test]
async fn a_peer_that_answers_no_ping_gets_one_page_and_is_dropped() {
    let mut setup = Setup::default();
    setup.config.websocket.ping_interval_ms = 1_000;
    let app = TestApp::start_with(Backend::Sqlite, setup).await;
    let (_, bob, stored) = with_backlog(&app, 2 * PAGE).await;
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let (pushes, _) = socket.until_ping().await;
    assert_eq!(stored_ids(&pushes), stored[..PAGE]);
    // Other signs of life keep it no longer than silence would.
    let code = loop {
        match socket.frame().await.unwrap() {
            BareFrame::Text(text) => assert_eq!(text, "pong"),
            BareFrame::Ping(_) => socket.send_text("ping").await,
            BareFrame::Close(code) => break code,
            BareFrame::Pong => panic!("nobody sent a protocol ping"),
        }
    };
    assert_eq!(code, CloseReason::HeartbeatTimeout.code());
}

#[actix_web::test]
async fn pongs_that_nobody_asked_for_move_nothing() {
    let app = TestApp::start(Backend::Sqlite).await;
    let (_, bob, _) = with_backlog(&app, 2 * PAGE).await;
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let (_, ping) = socket.until_ping().await;
    let later = (u64::from_be_bytes(ping.clone().try_into().unwrap()) + 1).to_be_bytes();
    for payload in [&b""[..], b"x", &later, &[0xff; 8], &[0; 8], &[0; 100]] {
        socket.pong(payload).await;
        assert_eq!(socket.drain().await, vec![], "{payload:?}");
    }
    socket.pong(&ping).await;
    assert_eq!(stored_ids(&socket.until_ping().await.0).len(), PAGE);
}
