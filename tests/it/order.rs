//! Order: ids rise with the order of sending, on sockets, over clock jumps and restarts (`design.md` I3, I4, I5; field
//! tests C1 to C4). `TEST_LONG=1` runs longer.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use rand::Rng;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::app::{
    API_KEY, ManualClock, Person, Push, SCHEMA, Setup, TestApp, befriend, eventually, http_client, id_of, ids_of,
    random_id, text_message,
};
use crate::support::cursors::{MessageCursor, PositionCursor};
use crate::support::databases::{Backend, TestDatabase, on_every_database};
use crate::support::direct::is_long;
use crate::support::process::ServerProcess;
use crate::support::stored::Tables;

on_every_database! {
    messages_sent_in_sequence_have_ids_in_sequence,
    ids_only_rise_on_a_socket,
    a_clock_that_jumps_changes_no_order,
    ids_rise_over_restarts_and_none_is_issued_twice,
}

const TEXT: i64 = 101;
const MINUTE: i64 = 60_000;

async fn messages_sent_in_sequence_have_ids_in_sequence(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut sent = Vec::new();
    for number in 0..if is_long() { 1_000 } else { 200 } {
        sent.push(alice.send(&bob, &format!("number {number}")).await);
    }
    assert!(ids_of(&sent).is_sorted_by(|a, b| a < b), "{:?}", ids_of(&sent));
    assert_eq!(bob.pull_all(100).await[1..], sent);
}

async fn ids_only_rise_on_a_socket(backend: Backend) {
    let app = TestApp::start(backend).await;
    let bob = app.user("bob").await;
    let mut senders = Vec::new();
    for name in ["alice", "carol", "dave", "erin"] {
        let sender = app.user(name).await;
        befriend(&sender, &bob).await;
        senders.push(sender);
    }
    let (mut receiving, mut sending) = (bob.connect().await, senders[0].connect().await);
    let count = if is_long() { 250 } else { 40 };
    // Each has two requests under way at a time, as two devices of one person would.
    let sends = senders.iter().chain(&senders).map(async |sender| {
        let mut ids = Vec::new();
        for number in 0..count {
            ids.push((sender.id, id_of(&sender.send(&bob, &format!("number {number}")).await)));
        }
        ids
    });
    let sent: Vec<(i64, i64)> = join_all(sends).await.concat();

    let mut expected: Vec<i64> = sent.iter().map(|(_, id)| *id).collect();
    expected.sort_unstable();
    assert_eq!(pushed_ids(receiving.drain().await), expected);
    let mut own: Vec<i64> = sent.iter().filter(|(sender, _)| *sender == senders[0].id).map(|(_, id)| *id).collect();
    own.sort_unstable();
    assert_eq!(pushed_ids(sending.drain().await), own);
    assert_eq!(Tables::open(&app.database.url).await.message_ids_of(bob.id).await[senders.len()..], expected);
}

/// The ids of pushed texts, in the order of arrival.
fn pushed_ids(pushes: Vec<Push>) -> Vec<i64> {
    pushes.iter().filter(|push| push.content_type == TEXT).map(|push| id_of(&push.payload)).collect()
}

async fn a_clock_that_jumps_changes_no_order(backend: Backend) {
    let clock = ManualClock::at(1_800_000_000_000);
    let app = TestApp::start_with(backend, Setup { clock: Some(clock.clock()), ..Setup::default() }).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut messages = MessageCursor::new(&bob, 100);
    let mut positions = PositionCursor::new(&bob, 100);
    messages.finish().await;
    for (number, jump) in [0, -5, 0, 11, -1, -5, 20, -15].into_iter().enumerate() {
        clock.jump(jump * MINUTE);
        let sent = alice.send(&bob, &format!("number {number}")).await;
        bob.read(&alice, id_of(&sent)).await;
        // A device that has pulled everything so far finds just this, whatever the clock says now.
        assert_eq!((messages.page().await, positions.page().await), (1, 1), "after {jump} minutes");
        assert_eq!(id_of(messages.rows.last().unwrap()), id_of(&sent));
        assert!(positions.rows.values().all(|(_, message, _)| *message == id_of(&sent)), "{:?}", positions.rows);
    }
    let times: Vec<i64> = messages.rows.iter().map(|row| row["sendTime"].as_i64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

async fn ids_rise_over_restarts_and_none_is_issued_twice(backend: Backend) {
    let database = TestDatabase::create(backend, SCHEMA).await;
    let folder = TempDir::new().unwrap();
    let environment = [("DATABASE_URL", &*database.url), ("NUDGE_API_KEY", API_KEY), ("NUDGE_WORKERS", "1")];
    let mut process = ServerProcess::start(folder.path(), &environment).await.unwrap();
    let base = process.url();
    let alice = Person::create(&http_client(), &base, "alice", "alice").await;
    let bob = Person::create(&http_client(), &base, "bob", "bob").await;
    befriend(&alice, &bob).await;
    let mut seen: BTreeMap<i64, String> = BTreeMap::new();
    for round in 0..if is_long() { 20 } else { 3 } {
        // Fresh clients: no connection of the process that has ended.
        let alice = Person::sign_in(&http_client(), &base, "alice").await;
        let bob = Person::sign_in(&http_client(), &base, "bob").await;
        // What was committed and not answered when the last process ended is there too.
        note(&mut seen, keys(&bob.pull_all(1_000).await));
        let newest = seen.keys().next_back().copied();
        let mut new = BTreeMap::new();
        let senders = (0..4).map(|_| actix_web::rt::spawn(send_until_it_fails(alice.clone(), bob.clone())));
        let senders: Vec<_> = senders.collect();
        let wanted = seen.len() + rand::rng().random_range(1..100);
        eventually("enough messages are there", async || {
            let pulled = keys(&bob.pull_all(1_000).await);
            let is_enough = pulled.len() >= wanted;
            note(&mut new, pulled);
            is_enough
        })
        .await;
        if round % 2 == 0 {
            process.kill9();
        } else {
            process.sigterm();
        }
        for sender in senders {
            note(&mut new, sender.await.unwrap());
        }
        let lowest = new.keys().find(|id| !seen.contains_key(id)).copied();
        assert!(lowest > newest, "{lowest:?} was issued after {newest:?}");
        note(&mut seen, new.into_iter().collect());
        process.wait_for_exit(Duration::from_secs(30)).await.unwrap();
        process.restart().await.unwrap();
    }
    let bob = Person::sign_in(&http_client(), &base, "bob").await;
    let stored = keys(&bob.pull_all(1_000).await);
    let missing: Vec<_> = seen.iter().filter(|(id, key)| !stored.contains(&(**id, (*key).clone()))).collect();
    assert!(missing.is_empty(), "seen and gone: {missing:?}");
}

/// Id and client id of messages.
fn keys(rows: &[Value]) -> Vec<(i64, String)> {
    rows.iter().map(|row| (id_of(row), row["clientMessageId"].as_str().unwrap().to_owned())).collect()
}

/// Remembers what was seen; an id that names another message than before was issued twice.
fn note(seen: &mut BTreeMap<i64, String>, keys: Vec<(i64, String)>) {
    for (id, key) in keys {
        let known = seen.entry(id).or_insert_with(|| key.clone());
        assert_eq!(*known, key, "id {id} was issued twice");
    }
}

/// Sends until the server is gone; ids and client ids of what was answered.
async fn send_until_it_fails(from: Person, to: Person) -> Vec<(i64, String)> {
    let mut answered = Vec::new();
    loop {
        let key = random_id();
        let body = text_message(to.id, &key, "a text");
        match from.try_call("POST", "/im/message/private/send", Some(body)).await {
            Ok(answer) if answer["code"] == 0 => answered.push((id_of(&answer["data"]), key)),
            _ => return answered,
        }
    }
}
