//! State-changing verbs called at once by five clients happen once (field test B6).

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::app::{Setup, TestApp, id_of, start_server};
use crate::support::background::codes_of;
use crate::support::databases::{Backend, on_every_database};
use crate::support::second_connection::SecondConnection;

on_every_database! {
    concurrent_recalls_are_one_recall,
    concurrent_agreements_are_one_friendship,
    concurrent_applications_are_one_request,
}

const RECALL: i64 = 2101;
const ALREADY_RECALLED: i64 = 1_040_300_003;
const FRIEND_ADD: i64 = 1204;
const REQUEST_HANDLED: i64 = 1_040_610_002;

async fn concurrent_recalls_are_one_recall(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut socket = bob.connect().await;
    let sent = alice.send(&bob, "hello").await;
    let path = format!("/im/message/private/recall?id={}", id_of(&sent));
    let answers = app.in_one_batch(async || (0..5).map(|_| alice.start_call("DELETE", &path, None)).collect()).await;

    assert_eq!(codes_of(&answers), vec![0, ALREADY_RECALLED, ALREADY_RECALLED, ALREADY_RECALLED, ALREADY_RECALLED]);
    let recall = answers.iter().find(|answer| answer["code"] == 0).unwrap()["data"].clone();
    assert_eq!(socket.stored_rows(&alice, &bob).await, vec![sent, recall]);
    let rows = bob.pull_all(100).await;
    assert_eq!(rows.iter().filter(|row| row["type"] == RECALL).count(), 1);
}

/// SQLite has one server only.
async fn recalls_by_way_of_two_servers_are_one_recall(backend: Backend) {
    let app = TestApp::start(backend).await;
    let second = start_server(&app.database.url, Setup::default()).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let there = alice.on(&format!("http://{}", second.address()));
    for _ in 0..10 {
        let sent = alice.send(&bob, "hello").await;
        let path = format!("/im/message/private/recall?id={}", id_of(&sent));
        let calls = [&alice, &there, &alice, &there].map(|alice| alice.call("DELETE", &path, None));
        let answers = join_all(calls).await;
        assert_eq!(codes_of(&answers), vec![0, ALREADY_RECALLED, ALREADY_RECALLED, ALREADY_RECALLED]);
    }
    assert_eq!(bob.pull_all(100).await.iter().filter(|row| row["type"] == RECALL).count(), 10);
}

mod two_servers {
    use super::Backend;

    #[actix_web::test]
    async fn postgres() {
        super::recalls_by_way_of_two_servers_are_one_recall(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::recalls_by_way_of_two_servers_are_one_recall(Backend::Mysql).await;
    }
}

async fn concurrent_agreements_are_one_friendship(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let mut socket = bob.connect().await;
    let request = alice.post("/im/friend-request/apply", json!({"toUserId": bob.id})).await;
    let path = format!("/im/friend-request/agree?id={request}");
    let answers = app.in_one_batch(async || (0..5).map(|_| bob.start_call("PUT", &path, None)).collect()).await;

    assert_eq!(codes_of(&answers), vec![0, REQUEST_HANDLED, REQUEST_HANDLED, REQUEST_HANDLED, REQUEST_HANDLED]);
    let bubbles = socket.stored_rows(&alice, &bob).await;
    assert_eq!(bubbles.iter().map(|row| row["type"].as_i64().unwrap()).collect::<Vec<_>>(), vec![FRIEND_ADD]);
    assert_eq!(alice.pull_all(100).await.iter().filter(|row| row["type"] == FRIEND_ADD).count(), 1);
}

async fn concurrent_applications_are_one_request(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let body = json!({"toUserId": bob.id});
    let apply = || alice.start_call("POST", "/im/friend-request/apply", Some(body.clone()));
    let answers = app.in_one_batch(async || (0..5).map(|_| apply()).collect()).await;

    assert_eq!(codes_of(&answers), vec![0; 5]);
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["data"]).collect();
    assert!(ids.iter().all(|id| id.is_i64() && *id == ids[0]), "{ids:?}");
    let mut tables = SecondConnection::open(&app.database.url).await;
    assert_eq!(tables.count("im_friend_request", &format!("from_user_id = {}", alice.id)).await, 1);
}
