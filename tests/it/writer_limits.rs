//! What waits for the writer is bounded, per user and in all, and nothing waits for ever (`design.md` section 4).

use nudge::config::Config;

use crate::support::app::{Setup, TestApp, befriend, data, random_id};
use crate::support::background::{answers, codes_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::second_connection::SecondConnection;

on_every_database! {
    one_user_cannot_take_all_places,
    commands_beyond_the_queue_are_refused_at_once,
    a_command_past_its_deadline_is_not_executed,
}

const TOO_MANY: i64 = 429;
const UNAVAILABLE: i64 = 503;

async fn one_user_cannot_take_all_places(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut other = SecondConnection::open(&app.database.url).await;
    other.hold_counter("private").await;

    let mut calls: Vec<_> = (0..64).map(|_| alice.start_send(&bob, &random_id(), "hello")).collect();
    app.commands_waiting(64).await;
    assert_eq!(alice.send_as(&bob, "one-too-many", "hello").await["code"], TOO_MANY);
    calls.push(bob.start_send(&alice, &random_id(), "hello"));
    app.commands_waiting(65).await;
    other.release().await;

    assert_eq!(codes_of(&answers(calls).await), vec![0; 65]);
    // Places come back, and what was refused can be repeated.
    data(alice.send_as(&bob, "one-too-many", "hello").await);
}

async fn commands_beyond_the_queue_are_refused_at_once(backend: Backend) {
    let mut config = Config::default();
    config.writer.max_waiting = 4;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    befriend(&carol, &bob).await;
    let mut other = SecondConnection::open(&app.database.url).await;
    other.hold_counter("private").await;

    let calls = (0..4).map(|_| alice.start_send(&bob, &random_id(), "hello")).collect();
    app.commands_waiting(4).await;
    assert_eq!(carol.send_as(&bob, "refused", "hello").await["code"], TOO_MANY);
    other.release().await;

    assert_eq!(codes_of(&answers(calls).await), vec![0; 4]);
    let rows = bob.pull_all(100).await;
    assert!(rows.iter().all(|row| row["clientMessageId"] != "refused"));
    data(carol.send_as(&bob, "refused", "hello").await);
}

async fn a_command_past_its_deadline_is_not_executed(backend: Backend) {
    let mut config = Config::default();
    config.writer.deadline_ms = 400;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut socket = bob.connect().await;
    let mut other = SecondConnection::open(&app.database.url).await;
    other.hold_counter("private").await;

    let begun = alice.start_send(&bob, "begun", "hello");
    app.commands_waiting(1).await;
    let late = alice.send_as(&bob, "late", "hello").await;
    assert_eq!(late["code"], UNAVAILABLE, "{late}");
    other.release().await;

    // What was begun in time has its outcome, and the queue was passed when the next one is stored.
    let begun = data(begun.await.unwrap());
    assert_eq!(socket.stored_rows(&alice, &bob).await, vec![begun]);
    let mut tables = SecondConnection::open(&app.database.url).await;
    assert_eq!(tables.count("im_private_message", "client_message_id = 'late'").await, 0);
    data(alice.send_as(&bob, "late", "hello").await);
}
