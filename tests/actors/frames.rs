//! What comes in, what goes out, and in which order.

use std::time::Duration;

use nudge::config::WebSocketConfig;
use rstest::rstest;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{TestServer, frame, notification, stored, wait_until};

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
}

#[actix_web::test]
async fn frames_arrive_in_order_and_without_gaps_on_every_session() {
    let server = TestServer::start(config()).await;
    let mut clients = Vec::new();
    for user in [1, 1, 2] {
        clients.push(server.connect(user).await);
    }
    let (batches, per_batch) = (100, 50);
    let readers = clients.iter_mut().map(async |client| {
        for expected in 0..batches * per_batch {
            assert_eq!(client.next_id().await, Ok(expected));
        }
    });
    let writer = async {
        for batch in 0..batches {
            let ids = batch * per_batch..(batch + 1) * per_batch;
            server.registry.notify(ids.map(|id| notification(&[1, 2, 3], id, 300)).collect()).unwrap();
            tokio::task::yield_now().await;
        }
    };
    futures_util::future::join(futures_util::future::join_all(readers), writer).await;
    drop(clients);
    server.wait_for_sessions(0).await;
}

#[actix_web::test]
async fn a_broadcast_reaches_every_session() {
    let server = TestServer::start(config()).await;
    let mut clients = [server.connect(1).await, server.connect(2).await];
    server.registry.broadcast(stored(7, 10));
    for client in &mut clients {
        assert_eq!(client.next_id().await, Ok(7));
    }
}

#[actix_web::test]
async fn text_and_protocol_pings_are_answered_and_other_texts_ignored() {
    let server = TestServer::start(config()).await;
    let mut client = server.connect(1).await;
    client.send(Message::text("{\"type\":\"x\"}")).await;
    client.send(Message::text("")).await;
    client.send(Message::text("ping")).await;
    assert_eq!(client.next_raw().await, Message::text("pong"));
    client.send(Message::Ping("abc".into())).await;
    assert_eq!(client.next_raw().await, Message::Pong("abc".into()));
}

#[actix_web::test]
async fn more_pings_than_one_turn_handles_are_all_answered() {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    raw.send(&frame(9, true, b"x").repeat(500)).await.unwrap();
    for _ in 0..500 {
        assert_eq!(raw.frame().await.unwrap(), (10, b"x".to_vec()));
    }
}

#[actix_web::test]
async fn a_fragmented_ping_with_a_control_frame_between_is_one_ping() {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    raw.send(&[frame(1, false, b"pi"), frame(9, true, b""), frame(0, false, b""), frame(0, true, b"ng")].concat())
        .await
        .unwrap();
    assert_eq!(raw.frame().await.unwrap(), (10, Vec::new()));
    assert_eq!(raw.frame().await.unwrap(), (1, b"pong".to_vec()));
}

#[rstest]
#[case::unmasked(vec![0x81, 0x01, b'x'], 1002)]
#[case::reserved_opcode(vec![0x83, 0x80, 0, 0, 0, 0], 1002)]
#[case::reserved_bit(vec![0xc1, 0x80, 0, 0, 0, 0], 1002)]
#[case::continuation_of_nothing(frame(0, true, b"x"), 1002)]
#[case::binary(frame(2, true, b"x"), 1002)]
#[case::fragmented_binary(frame(2, false, b"x"), 1002)]
#[case::half_a_close_code(frame(8, true, b"x"), 1002)]
#[case::bad_utf8(frame(1, true, b"\xff\xfe"), 1007)]
#[case::bad_utf8_in_fragments([frame(1, false, b"\xc3"), frame(0, true, b"x")].concat(), 1007)]
#[case::frame_over_the_limit(frame(1, true, &[b'x'; (64 << 10) + 1]), 1009)]
#[case::fragments_over_the_limit([frame(1, false, &[b'x'; 40 << 10]), frame(0, true, &[b'x'; 40 << 10])].concat(), 1009)]
#[actix_web::test]
async fn a_broken_protocol_ends_the_session_with_its_code(#[case] bytes: Vec<u8>, #[case] code: u16) {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    raw.send(&bytes).await.unwrap();
    assert_eq!(raw.close_code().await, code);
    server.wait_for_sessions(0).await;
}

#[rstest]
#[case::whole(frame(1, true, &[b'x'; 64 << 10]))]
#[case::in_fragments([frame(1, false, &[b'x'; 32 << 10]), frame(0, true, &[b'x'; 32 << 10])].concat())]
#[case::utf8_split_between_fragments([frame(1, false, b"\xc3"), frame(0, true, b"\xa4")].concat())]
#[actix_web::test]
async fn what_keeps_the_limits_is_ignored_in_peace(#[case] bytes: Vec<u8>) {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    raw.send(&[bytes, frame(1, true, b"ping")].concat()).await.unwrap();
    assert_eq!(raw.frame().await.unwrap(), (1, b"pong".to_vec()));
}

#[actix_web::test]
async fn a_declared_gigabyte_is_refused_before_it_is_buffered() {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    raw.send(&[0x81, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0]).await.unwrap();
    assert_eq!(raw.close_code().await, 1009);
    // The connection lingers for a moment and then refuses what else comes.
    let chunk = vec![0; 64 << 10];
    let mut sent = 0;
    while raw.send(&chunk).await.is_ok() {
        sent += chunk.len();
        assert!(sent < 1 << 30, "the server took a gigabyte");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.wait_for_sessions(0).await;
}

#[actix_web::test]
async fn a_list_of_sessions_shows_what_is_open() {
    let server = TestServer::start(config()).await;
    let mut first = server.connect(1).await;
    let _second = server.try_connect("user=1&login=2").await.unwrap();
    let user = nudge::domain::ids::UserId(1);
    let sessions = server.registry.list_sessions(user).await;
    assert_eq!(sessions.iter().map(|session| session.login.0).collect::<Vec<_>>(), [1, 2]);
    assert!(sessions[0].address.unwrap().is_loopback() && sessions[0].connected_at_ms > 1_600_000_000_000);
    assert_eq!(sessions[0].device.as_deref(), Some("test"));
    let reason = nudge::protocol::close::CloseReason::ClosedByUser;
    assert!(server.registry.close_session(user, sessions[0].id, reason).await);
    assert_eq!(first.close_code().await, 4001);
    assert!(!server.registry.close_session(user, sessions[0].id, reason).await);
    wait_until("the closed session", async || server.sessions().await == 1).await;
    let others = server.registry.list_sessions(nudge::domain::ids::UserId(2)).await;
    assert!(others.is_empty());
}
