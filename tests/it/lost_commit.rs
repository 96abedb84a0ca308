//! The answer to a COMMIT is lost: what became of the batch is found out, and every caller gets the right answer
//! (`design.md` section 4, "unknown outcome"). SQLite has no connection to lose.

use nudge::config::Config;
use serde_json::{Value, json};

use crate::support::app::{Person, SCHEMA, Setup, TestApp, data, id_of, random_id, start_server};
use crate::support::background::answers;
use crate::support::databases::{Backend, TestDatabase};
use crate::support::relay::{Fate, Relay};
use crate::support::second_connection::SecondConnection;

/// Two tests of each function, one a database server.
macro_rules! on_both_servers {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use super::Backend;

            #[actix_web::test]
            async fn postgres() {
                super::$name(Backend::Postgres).await;
            }

            #[actix_web::test]
            async fn mysql() {
                super::$name(Backend::Mysql).await;
            }
        }
    )+};
}

on_both_servers! {
    a_batch_whose_answer_is_lost_is_answered_as_committed,
    a_batch_whose_commit_is_lost_runs_again,
    a_node_with_a_name_does_not_take_old_batches_for_its_own,
}

async fn a_batch_whose_answer_is_lost_is_answered_as_committed(backend: Backend) {
    every_caller_gets_the_right_answer(backend, Fate::LoseAnswer).await;
}

async fn a_batch_whose_commit_is_lost_runs_again(backend: Backend) {
    every_caller_gets_the_right_answer(backend, Fate::LoseCommit).await;
}

async fn every_caller_gets_the_right_answer(backend: Backend, fate: Fate) {
    let mut app = TestApp::start(backend).await;
    let mut relay = Relay::start(&app.database.url).await;
    app.server = start_server(&relay.url, Setup::default()).await;
    app.base = format!("http://{}", app.server.address());
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    let request = carol.post("/im/friend-request/apply", json!({"toUserId": bob.id})).await;
    let recalled = alice.send(&bob, "to be recalled").await;
    let mut socket = bob.connect().await;

    // Nothing commits until all of them wait: a first batch of one command, and a second with the rest.
    let mut other = SecondConnection::open(&app.database.url).await;
    other.hold_counter("clock").await;
    other.lock_counter("private").await;
    let mut calls = vec![alice.start_send(&bob, "alone", "hello")];
    app.commands_waiting(1).await;
    calls.extend((0..10).map(|_| alice.start_send(&bob, &random_id(), "hello")));
    calls.push(alice.start_call("DELETE", &format!("/im/message/private/recall?id={}", id_of(&recalled)), None));
    calls.push(bob.start_call("PUT", &format!("/im/friend-request/agree?id={request}"), None));
    calls.push(carol.start_send(&alice, &random_id(), "we are strangers"));
    app.commands_waiting(calls.len()).await;
    relay.stop_next_commit();
    other.release().await;
    relay.stopped_commit().await.send(fate).unwrap();
    let first = calls.remove(0).await.unwrap();
    // The second batch begins as soon as the first is answered, so its COMMIT may be on its way already; then one
    // of the next commands alone is struck.
    relay.stop_next_commit();
    calls.push(alice.start_send(&bob, "the-last", "hello"));
    relay.stopped_commit().await.send(fate).unwrap();
    let answers = answers(calls).await;

    let codes: Vec<i64> = answers.iter().map(|answer| answer["code"].as_i64().unwrap()).collect();
    let mut expected = vec![0; 12];
    expected.extend([1_040_600_001, 0]);
    assert_eq!(codes, expected, "{answers:?}");
    let mut answered = vec![data(first)];
    answered.extend(answers.iter().filter(|answer| answer["data"].is_object()).map(|answer| answer["data"].clone()));
    answered.sort_by_key(id_of);

    // Stored once and pushed once, under the ids of the answers; the agreement's line has no answer with an id.
    let is_line = |row: &Value| row["type"] == 1204;
    let mut pushed = socket.stored_rows(&alice, &bob).await;
    assert_eq!(pushed.iter().filter(|row| is_line(row)).count(), 1);
    pushed.retain(|row| !is_line(row));
    assert_eq!(pushed, answered);
    let mut stored = bob.pull_from(id_of(&recalled), 100).await;
    stored.pop();
    assert_eq!(stored.iter().filter(|row| is_line(row)).count(), 1);
    stored.retain(|row| !is_line(row));
    assert_eq!(stored, answered);
}

/// A restarted node finds its row with the number of its last batch; that number says nothing about a new one.
async fn a_node_with_a_name_does_not_take_old_batches_for_its_own(backend: Backend) {
    let database = TestDatabase::create(backend, SCHEMA).await;
    let setup = || Setup { config: Config { node: Some("one".to_owned()), ..Config::default() }, ..Setup::default() };
    let http = crate::support::app::http_client();
    let server = start_server(&database.url, setup()).await;
    let base = format!("http://{}", server.address());
    let alice = Person::create(&http, &base, "alice", "alice").await;
    let bob = Person::create(&http, &base, "bob", "bob").await;
    crate::support::app::befriend(&alice, &bob).await;
    server.stop().await;

    let mut relay = Relay::start(&database.url).await;
    let server = start_server(&relay.url, setup()).await;
    let base = format!("http://{}", server.address());
    let (alice, bob) = (alice.on(&base), bob.on(&base));
    relay.stop_next_commit();
    let send = alice.start_send(&bob, "first-of-the-new-life", "hello");
    relay.stopped_commit().await.send(Fate::LoseCommit).unwrap();
    let sent = data(send.await.unwrap());
    assert_eq!(bob.pull_from(id_of(&sent) - 1, 100).await, vec![sent]);
}
