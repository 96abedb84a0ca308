//! Many at once: everybody connects in one instant, or comes back after a restart and pulls (field tests G7, G8); and a
//! device that cannot take what is pushed to it (A11).

use futures_util::future::join_all;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Error;

use crate::support::app::{API_KEY, Person, SCHEMA, Setup, Socket, TestApp, befriend, eventually, http_client, id_of};
use crate::support::bare::BareSocket;
use crate::support::databases::{Backend, TestDatabase, on_every_database};
use crate::support::process::ServerProcess;

on_every_database! {
    two_thousand_sockets_opened_at_once_are_all_accepted,
    pulls_are_answered_while_everybody_comes_back,
    an_overflowing_device_loses_its_socket_and_nothing_else,
}

/// Over the whole of a storm, not over one connection.
const STORM: std::time::Duration = std::time::Duration::from_secs(240);

/// How long the server lets reads and commands wait in a storm.
const WAIT_MS: u64 = 120_000;

/// Sockets of one person.
const SOCKETS: usize = 40;

async fn two_thousand_sockets_opened_at_once_are_all_accepted(backend: Backend) {
    // However busy the machine: what is accepted may wait.
    let mut setup = Setup::default();
    setup.config.database.read_deadline_ms = WAIT_MS;
    setup.config.writer.deadline_ms = WAIT_MS;
    let app = TestApp::start_with(backend, setup).await;
    let crowd = app.crowd(2_000 / SOCKETS).await;
    let base = app.base.trim_start_matches("http://").to_owned();
    let connects = crowd.iter().flat_map(|person| (0..SOCKETS).map(move |device| (person, device))).map(
        async |(person, device)| {
            // Half of them are devices of which the server has to take note.
            let resume = device % 2;
            let url = format!("ws://{base}/infra/ws?token={}&device={device}&resume={resume}", person.refresh_token);
            loop {
                let stream = TcpStream::connect(&base).await.map_err(|error| error.to_string())?;
                match client_async(&url, stream).await {
                    Ok((socket, _)) => return Ok(socket),
                    // It was this test that took too long to ask.
                    Err(Error::Http(answer)) if answer.status() == 408 => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
        },
    );
    let connected = tokio::time::timeout(STORM, join_all(connects)).await.expect("some are not answered");
    let refused: Vec<_> = connected.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert!(refused.is_empty(), "{} refused, the first with {}", refused.len(), refused[0]);
    let counts = app.server.state().registry.counts().await;
    assert_eq!((counts.sessions, counts.users), (2_000, 2_000 / SOCKETS));
}

async fn pulls_are_answered_while_everybody_comes_back(backend: Backend) {
    let database = TestDatabase::create(backend, SCHEMA).await;
    let folder = TempDir::new().unwrap();
    let environment = [
        ("DATABASE_URL", database.url.as_str()),
        ("NUDGE_API_KEY", API_KEY),
        ("NUDGE_WEBSOCKET__SHUTDOWN_WINDOW_MS", "200"),
        ("NUDGE_DATABASE__READ_DEADLINE_MS", "120000"),
        ("NUDGE_WRITER__DEADLINE_MS", "120000"),
    ];
    let mut server = ServerProcess::start(folder.path(), &environment).await.unwrap();
    let (http, base) = (http_client(), server.url());
    let alice = Person::create(&http, &base, "alice", "alice").await;
    let mut logins = Vec::new();
    for number in 0..5 {
        let friend = Person::create(&http, &base, &format!("friend {number}"), "friend").await;
        befriend(&alice, &friend).await;
        for _ in 0..SOCKETS {
            logins.push(friend.sign_in_again().await);
        }
    }
    let sockets = join_all(logins.iter().map(connect)).await;
    for friend in logins.iter().step_by(SOCKETS) {
        alice.send(friend, "hello").await;
    }
    server.sigterm();
    for mut socket in sockets {
        assert_eq!(socket.closed().await, Some(1001));
    }
    assert!(server.wait_for_exit(STORM).await.unwrap().success());
    server.restart().await.unwrap();
    // All in one instant, each with its pulls: the answers are complete, and so is what the sockets bring again.
    let come_back = logins.iter().map(async |login| {
        let mut socket = connect(login).await;
        assert_eq!(login.get("/im/message/group/pull?minId=0&size=100").await, json!([]));
        let rows = login.get("/im/message/private/pull?minId=0&size=100").await;
        let texts = rows.as_array().unwrap().iter().filter(|row| row["type"] == 101).cloned();
        (texts.collect::<Vec<_>>(), vec![socket.next_of(101).await.payload])
    });
    for (pulled, replayed) in tokio::time::timeout(STORM, join_all(come_back)).await.expect("some are not answered") {
        assert_eq!((pulled.len(), &pulled), (1, &replayed));
    }
}

/// A socket with a replay.
async fn connect(login: &Person) -> Socket {
    loop {
        match login.try_connect("").await {
            Ok(socket) => return socket,
            // It was this test that took too long to ask.
            Err(status) => assert_eq!(status, 408),
        }
    }
}

async fn an_overflowing_device_loses_its_socket_and_nothing_else(backend: Backend) {
    let mut setup = Setup::default();
    setup.config.websocket.max_in_flight_bytes = 200 << 10;
    let app = TestApp::start_with(backend, setup).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut healthy = bob.connect().await;
    let stuck = BareSocket::open(&bob, &app.base, "&device=stuck").await;
    let cuts = async || -> f64 {
        let text = app.http.get(format!("{}/metrics", app.base)).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("nudge_closes_total{reason=\"slow_consumer\"} "));
        line.map_or(0.0, |count| count.parse().unwrap())
    };
    let before = cuts().await;
    let text = "x".repeat(4_000);
    let mut sent = Vec::new();
    let is_listed = async || {
        let list = bob.get("/im/session/list").await;
        list.as_array().unwrap().iter().any(|session| session["device"] == "stuck")
    };
    assert!(is_listed().await);
    while is_listed().await {
        assert!(sent.len() < 1_000, "four megabytes, and it is still connected");
        sent.push(id_of(&alice.send(&bob, &text).await));
        assert_eq!(healthy.next_of(101).await.payload["id"], *sent.last().unwrap());
    }
    eventually("the cut is counted", async || cuts().await > before).await;
    drop(stuck);
    // It comes back and gets everything, in order; nobody else noticed.
    let mut back = BareSocket::open(&bob, &app.base, "&device=stuck").await;
    assert_eq!(back.take_stored(sent.len()).await, sent);
    sent.push(id_of(&alice.send(&bob, "live").await));
    assert_eq!(healthy.next_of(101).await.payload["id"], *sent.last().unwrap());
}
