//! A graceful stop of the process (`design.md` section 6): not ready, newcomers refused, sockets closed with 1001 over a
//! window, requests answered, exit 0; a second signal ends it at once (field test G7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::app::{
    API_KEY, Person, SCHEMA, befriend, data, eventually, http_client, id_of, random_id, text_message,
};
use crate::support::bare::{BareFrame, BareSocket};
use crate::support::databases::{Backend, TestDatabase, on_every_database};
use crate::support::process::ServerProcess;

on_every_database! {
    a_stop_under_load_loses_nothing_that_was_acknowledged,
}

/// Longer than a stop may take whatever it waits for.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A server with alice and bob, who are friends. The window of its stop is in milliseconds.
async fn start(url: &str, folder: &TempDir, window: &str) -> (ServerProcess, Person, Person) {
    let environment =
        [("DATABASE_URL", url), ("NUDGE_API_KEY", API_KEY), ("NUDGE_WEBSOCKET__SHUTDOWN_WINDOW_MS", window)];
    let server = ServerProcess::start(folder.path(), &environment).await.unwrap();
    let (http, base) = (http_client(), server.url());
    let alice = Person::create(&http, &base, "alice", "alice").await;
    let bob = Person::create(&http, &base, "bob", "bob").await;
    befriend(&alice, &bob).await;
    (server, alice, bob)
}

async fn a_stop_under_load_loses_nothing_that_was_acknowledged(backend: Backend) {
    let database = TestDatabase::create(backend, SCHEMA).await;
    let folder = TempDir::new().unwrap();
    let (mut server, alice, bob) = start(&database.url, &folder, "1500").await;
    let mut sockets = Vec::new();
    for _ in 0..20 {
        sockets.push(bob.connect().await);
    }
    let stopping = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> =
        (0..10).map(|_| actix_web::rt::spawn(send_until_it_ends(alice.clone(), bob.id, stopping.clone()))).collect();
    sockets[0].next_of(101).await;
    stopping.store(true, Ordering::SeqCst);
    server.sigterm();
    for mut socket in sockets {
        assert_eq!(socket.closed().await, Some(1001));
    }
    let mut acknowledged = Vec::new();
    for answers in join_all(senders).await {
        for answer in answers.unwrap() {
            // A request that was taken is answered: done, or that the server does not do it any more.
            match answer["code"].as_i64() {
                Some(0) => acknowledged.push(id_of(&answer["data"])),
                code => assert_eq!(code, Some(503), "{answer}"),
            }
        }
    }
    assert_eq!(server.wait_for_exit(STOP_LIMIT).await.unwrap().code(), Some(0));
    assert_eq!(server.panics(), Vec::<String>::new());
    server.restart().await.unwrap();
    let stored = bob.pull_all(1_000).await;
    let stored: Vec<i64> = stored.iter().filter(|row| row["type"] == 101).map(id_of).collect();
    acknowledged.sort_unstable();
    assert_eq!(acknowledged, stored, "nothing acknowledged is lost, and nothing stored was left without its answer");
}

/// Sends until the server takes no connection any more; every answer.
async fn send_until_it_ends(sender: Person, receiver: i64, stopping: Arc<AtomicBool>) -> Vec<Value> {
    let mut answers = Vec::new();
    loop {
        let body = text_message(receiver, &random_id(), "hello");
        match sender.try_call("POST", "/im/message/private/send", Some(body)).await {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                assert!(stopping.load(Ordering::SeqCst), "{error}");
                return answers;
            }
        }
    }
}

#[actix_web::test]
async fn while_it_stops_a_server_is_not_ready_takes_no_sockets_and_still_answers() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite://{}/nudge.db", folder.path().display());
    // The test is done long before the window is over.
    let (mut server, alice, bob) = start(&url, &folder, "20000").await;
    let mut sockets = Vec::new();
    for _ in 0..40 {
        sockets.push(BareSocket::open(&bob, &server.url(), "").await);
    }
    server.sigterm();
    let http = http_client();
    let readyz = async || http.get(format!("{}/readyz", server.url())).send().await.unwrap();
    eventually("it is not ready", async || readyz().await.status() == 503).await;
    let body: Value = readyz().await.json().await.unwrap();
    assert_eq!((&body["ready"], &body["stopping"]), (&Value::Bool(false), &Value::Bool(true)));
    assert_eq!(http.get(format!("{}/healthz", server.url())).send().await.unwrap().status(), 200);
    assert_eq!(bob.try_connect("").await.err(), Some(503));
    assert_eq!(bob.try_connect("&resume=0").await.err(), Some(503));
    // Requests go on, and so do the sockets whose turn has not come.
    let sent = data(alice.send_as(&bob, "while-stopping", "hello").await);
    let mut closed = 0;
    let mut pushed = 0;
    for socket in &mut sockets {
        socket.send_text("ping").await;
        loop {
            match socket.frame().await.unwrap() {
                BareFrame::Text(text) if text == "pong" => break,
                BareFrame::Text(text) => pushed += usize::from(text.contains(&id_of(&sent).to_string())),
                BareFrame::Close(code) => {
                    assert_eq!(code, 1001);
                    closed += 1;
                    break;
                }
                _ => {}
            }
        }
    }
    assert!((1..40).contains(&closed), "{closed} of 40 are closed: not spread over the window");
    assert!(pushed > 0);
    // A second signal ends it at once, in the middle of the window.
    server.sigterm();
    let status = server.wait_for_exit(Duration::from_secs(10)).await.unwrap();
    assert_eq!(status.code(), Some(130));
}
