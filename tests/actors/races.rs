//! Connects and disconnects in every order: nothing stays behind, and who is connected is reachable.

use nudge::config::WebSocketConfig;
use nudge::domain::ids::UserId;
use rstest::rstest;

use crate::harness::{TestServer, notification, wait_until, within};

#[actix_web::test]
async fn a_session_beyond_the_limit_is_refused_until_one_is_gone() {
    let server = TestServer::start(WebSocketConfig { max_sessions_per_user: 2, ..WebSocketConfig::default() }).await;
    let first = server.connect(1).await;
    let _second = server.connect(1).await;
    assert_eq!(server.try_connect("user=1").await.err(), Some(429));
    let _stranger = server.connect(2).await;
    first.close().await;
    server.wait_for_sessions(2).await;
    let mut third = server.connect(1).await;
    server.push(1, 1, 10);
    assert_eq!(third.next_id().await, Ok(1));
}

#[rstest]
#[case::the_handler_fails_after_the_attach("fail")]
#[case::the_handler_is_dropped_before_the_answer("abandon")]
#[actix_web::test]
async fn a_handshake_that_is_not_finished_leaves_nothing(#[case] then: &str) {
    let server = TestServer::start(WebSocketConfig { max_sessions_per_user: 1, ..WebSocketConfig::default() }).await;
    for _ in 0..20 {
        assert_eq!(server.try_connect(&format!("user=1&then={then}")).await.err(), Some(418));
        server.wait_for_sessions(0).await;
    }
}

#[actix_web::test]
async fn no_handshake_is_no_session() {
    let server = TestServer::start(WebSocketConfig::default()).await;
    let url = format!("http://{}/ws?user=1", server.address);
    let response = within(reqwest::get(url)).await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(server.sessions().await, 0);
}

#[actix_web::test]
async fn ten_parallel_sessions_of_one_user_come_and_go_and_are_reachable_while_they_live() {
    let server = TestServer::start(WebSocketConfig::default()).await;
    let devices = (0..10).map(async |device| {
        for round in 0..60 {
            let mut client = server.connect(1).await;
            let id = device * 1_000 + round;
            server.push(1, id, 10);
            // Pushes for the other devices of the user come along.
            while within(client.next_id()).await.expect("closed") != id {}
            if round % 2 == 0 {
                client.close().await;
            }
        }
    });
    futures_util::future::join_all(devices).await;
    server.wait_for_sessions(0).await;
    assert!(server.registry.list_sessions(UserId(1)).await.is_empty());
}

#[actix_web::test]
async fn two_thousand_abrupt_disconnects_leave_nothing() {
    let server = TestServer::start(WebSocketConfig { max_sessions_per_user: 200, ..WebSocketConfig::default() }).await;
    for wave in 0..20 {
        let opened = futures_util::future::join_all((0..100).map(|user| server.connect_raw(user % 7))).await;
        server.registry.notify(vec![notification(&[0, 1, 2, 3, 4, 5, 6], wave, 2_000)]).unwrap();
        for (number, raw) in opened.into_iter().enumerate() {
            match number % 2 {
                0 => raw.reset(),
                _ => drop(raw),
            }
        }
    }
    server.wait_for_sessions(0).await;
    wait_until("no socket to be left", async || open_sockets(server.address.port()) == 0).await;
}

/// Sockets at a port of 127.0.0.1 that still hold a descriptor: all but those that listen or wait for their time to end.
fn open_sockets(port: u16) -> usize {
    const TIME_WAIT: &str = "06";
    const LISTEN: &str = "0A";
    let local = format!("0100007F:{port:04X}");
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let sockets = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    sockets.filter(|fields| fields[1] == local && ![TIME_WAIT, LISTEN].contains(&fields[3])).count()
}

#[actix_web::test]
async fn a_refused_handover_is_healed_by_a_resync() {
    let server = TestServer::start(WebSocketConfig::default()).await;
    let mut client = server.connect(1).await;
    // Receivers that are not here keep the registry busy for a moment.
    let absent: Vec<i64> = (1_000..1_000_000).collect();
    server.registry.notify(vec![notification(&absent, 0, 1)]).unwrap();
    let refused = (1..10_000).any(|id| server.registry.notify(vec![notification(&[1], id, 10)]).is_err());
    assert!(refused, "the registry takes everything");
    server.registry.resync_all();
    let mut last = 0;
    let code = loop {
        match client.next_id().await {
            Ok(id) => assert_eq!(id, std::mem::replace(&mut last, id) + 1),
            Err(code) => break code,
        }
    };
    assert_eq!(code, 4010);
    server.wait_for_sessions(0).await;
}
