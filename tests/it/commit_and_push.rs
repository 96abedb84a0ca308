//! A push leaves after its commit and never without one (`design.md` I1), and whoever loses it finds the row by a pull
//! (field tests D3, D4).

use rand::Rng;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::support::app::{Person, Setup, TestApp, befriend, data, id_of, random_id, start_server};
use crate::support::background::{answers, codes_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::relay::{Fate, Relay};
use crate::support::second_connection::SecondConnection;

on_every_database! {
    whoever_gets_a_push_can_pull_its_row,
    refused_commands_push_nothing_and_harm_no_neighbour,
    a_socket_cut_within_a_frame_loses_nothing,
    a_goodbye_while_messages_come_loses_nothing,
    typing_claims_nothing_when_nobody_is_there,
}

const TEXT: i64 = 101;

async fn whoever_gets_a_push_can_pull_its_row(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut socket = bob.connect().await;
    for round in 0..30 {
        // Some alone and some in company, so that batches have all sizes.
        let count = 1 + round % 7;
        let sends: Vec<_> = (0..count).map(|_| alice.start_send(&bob, &random_id(), "hello")).collect();
        for _ in 0..count {
            let row = socket.next_of(TEXT).await.payload;
            let page = bob.get(&format!("/im/message/private/pull?minId={}&size=1", id_of(&row) - 1)).await;
            assert_eq!(page, json!([row]));
        }
        for send in sends {
            assert_eq!(send.await.unwrap()["code"], 0);
        }
    }
}

async fn refused_commands_push_nothing_and_harm_no_neighbour(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("stranger").await;
    let mut sockets = [bob.connect().await, alice.connect().await, stranger.connect().await];
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let mut random: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(seed);
    let mut expected = Vec::new();
    let answers = app
        .in_one_batch(async || {
            // A refused send locks nothing and would not wait, so this one goes first.
            let mut calls = vec![alice.start_send(&bob, "the-first", "hello")];
            expected.push(0);
            app.commands_waiting(1).await;
            for number in 0..40 {
                let (call, code) = match random.random_range(0..5) {
                    0 => (alice.start_send(&stranger, &random_id(), "hello"), 1_040_600_001),
                    1 => (alice.start_call("DELETE", "/im/message/private/recall?id=7", None), 1_040_300_000),
                    2 => (bob.start_call("PUT", "/im/friend-request/agree?id=999999", None), 1_040_610_001),
                    _ => (alice.start_send(&bob, &format!("valid-{number}"), "hello"), 0),
                };
                calls.push(call);
                expected.push(code);
            }
            calls
        })
        .await;
    let codes: Vec<i64> = answers.iter().map(|answer| answer["code"].as_i64().unwrap()).collect();
    assert_eq!(codes, expected, "seed {seed}");

    let mut sent: Vec<_> =
        answers.into_iter().filter(|answer| answer["code"] == 0).map(|it| it["data"].clone()).collect();
    sent.sort_by_key(id_of);
    for socket in &mut sockets[..2] {
        assert_eq!(socket.stored_rows(&alice, &bob).await, sent, "seed {seed}");
        // Seen by the second socket too, and stored.
        sent.push(bob.pull_all(100).await.pop().unwrap());
    }
    assert_eq!(sockets[2].drain().await, vec![]);
    assert_eq!(bob.pull_from(id_of(&sent[0]) - 1, 100).await, sent, "seed {seed}");
}

/// The COMMIT is stopped on its way: until it has happened nobody hears of the message, and if it never happens nobody
/// ever does.
async fn no_push_before_the_commit(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut relay = Relay::start(&app.database.url).await;
    let behind_relay = start_server(&relay.url, Setup::default()).await;
    let base = format!("http://{}", behind_relay.address());
    let (alice, bob) = (alice.on(&base), bob.on(&base));
    let mut socket = bob.connect().await;
    for fate in [Fate::Deliver, Fate::LoseCommit, Fate::LoseAnswer] {
        let newest = id_of(&alice.send(&bob, "before").await);
        socket.until(newest).await;
        relay.stop_next_commit();
        let send = alice.start_send(&bob, &random_id(), "hello");
        let commit = relay.stopped_commit().await;
        assert_eq!(socket.drain().await, vec![], "{fate:?}");
        assert_eq!(bob.pull_from(newest, 100).await, Vec::<Value>::new(), "{fate:?}");
        commit.send(fate).unwrap();
        let row = data(send.await.unwrap());
        // Once, under the id of the row that is there.
        assert_eq!(socket.stored_rows(&alice, &bob).await, vec![row.clone()], "{fate:?}");
        assert_eq!(bob.pull_from(newest, 1).await[0], row, "{fate:?}");
    }
}

mod no_push_before_the_commit_of {
    use super::Backend;

    #[actix_web::test]
    async fn postgres() {
        super::no_push_before_the_commit(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::no_push_before_the_commit(Backend::Mysql).await;
    }
}

/// Opens a socket by hand, calls `meanwhile`, takes `bytes` of what is pushed and drops the connection.
async fn cut_after(person: &Person, base: &str, bytes: usize, meanwhile: impl Future<Output = ()>) {
    let mut stream = TcpStream::connect(base.trim_start_matches("http://")).await.unwrap();
    let request = format!(
        "GET /infra/ws?token={}&resume=0 HTTP/1.1\r\nHost: nudge\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        person.refresh_token
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    meanwhile.await;
    let mut taken = vec![0; bytes];
    stream.read_exact(&mut taken).await.unwrap();
    // With bytes that were not read: a reset instead of a goodbye.
    drop(stream);
}

async fn a_socket_cut_within_a_frame_loses_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut steady = bob.connect().await;
    let mut cursor = bob.pull_all(100).await.last().map_or(0, id_of);
    // Inside the header of the first frame, inside its text, and inside a later frame.
    for bytes in [1, 3, 100, 5_000, 8_000] {
        let mut sent = Vec::new();
        let long_text = "x".repeat(4_000);
        cut_after(&bob, &app.base, bytes, async {
            for _ in 0..3 {
                sent.push(alice.send(&bob, &long_text).await);
            }
        })
        .await;
        sent.push(alice.send(&bob, "while nobody was there").await);
        // A device connects first and pulls then: what comes after its pull, its socket has. (It wants no replay.)
        let mut again = bob.try_connect("&resume=0").await.unwrap();
        assert_eq!(bob.pull_from(cursor, 2).await, sent, "cut after {bytes} bytes");
        let next = alice.send(&bob, "live again").await;
        assert_eq!(again.next_of(TEXT).await.payload, next);
        again.close().await;
        cursor = id_of(&next);
        sent.push(next);
        // Nobody else's socket is harmed.
        let pushed: Vec<_> = steady.until(cursor).await.into_iter().map(|push| push.payload).collect();
        assert_eq!(pushed, sent, "cut after {bytes} bytes");
    }
}

async fn a_goodbye_while_messages_come_loses_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let cursor = bob.pull_all(100).await.last().map_or(0, id_of);
    let mut leaving = bob.connect().await;
    let sends: Vec<_> = (0..10).map(|_| alice.start_send(&bob, &random_id(), "hello")).collect();
    leaving.next_of(TEXT).await;
    leaving.send(Message::Close(None)).await;
    leaving.closed().await;
    let mut sent: Vec<Value> = answers(sends).await.into_iter().map(data).collect();
    sent.sort_by_key(id_of);
    assert_eq!(bob.pull_from(cursor, 100).await, sent);
}

async fn typing_claims_nothing_when_nobody_is_there(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let before = bob.pull_all(100).await;
    let path = format!("/im/message/private/typing?receiverId={}", bob.id);
    assert_eq!(alice.put(&path).await, true);
    // Who comes later is not told either: it was a signal, not a message.
    let mut socket = bob.connect().await;
    assert_eq!(socket.stored_rows(&alice, &bob).await, Vec::<Value>::new());
    assert_eq!(bob.pull_all(100).await.len(), before.len() + 1);
    let stranger = app.user("stranger").await;
    let refused = stranger.call("PUT", &path, None).await;
    assert_eq!(codes_of(&[refused]), vec![1_040_600_001]);
    befriend(&stranger, &bob).await;
    let mut tables = SecondConnection::open(&app.database.url).await;
    assert_eq!(tables.count("im_private_message", "type = 2301").await, 0);
}
