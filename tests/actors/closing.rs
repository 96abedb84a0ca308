//! How sessions end, and which.

use std::time::{Duration, Instant};

use nudge::config::WebSocketConfig;
use nudge::domain::ids::{LoginId, UserId};
use nudge::protocol::close::CloseReason;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{TestServer, closes, frame, within};

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
}

#[actix_web::test]
async fn the_sessions_of_some_logins_close_and_the_others_stay() {
    let server = TestServer::start(config()).await;
    let mut first = server.try_connect("user=1&login=1").await.unwrap();
    let mut second = server.try_connect("user=1&login=2").await.unwrap();
    let mut stranger = server.try_connect("user=2&login=1").await.unwrap();
    server.registry.close_logins(UserId(1), Some(vec![LoginId(1)]), CloseReason::SignedOut);
    assert_eq!(first.close_code().await, 4002);
    server.push(1, 1, 10);
    server.push(2, 2, 10);
    assert_eq!(second.next_id().await, Ok(1));
    assert_eq!(stranger.next_id().await, Ok(2));
    server.registry.close_logins(UserId(1), None, CloseReason::SignedOut);
    assert_eq!(second.close_code().await, 4002);
    server.push(2, 3, 10);
    assert_eq!(stranger.next_id().await, Ok(3));
}

#[actix_web::test]
async fn a_device_that_closes_leaves_the_others_connected() {
    let server = TestServer::start(config()).await;
    let first = server.connect(1).await;
    let mut second = server.connect(1).await;
    let before = closes("client");
    first.close().await;
    server.wait_for_sessions(1).await;
    assert!(closes("client") > before);
    server.push(1, 1, 10);
    assert_eq!(second.next_id().await, Ok(1));
}

#[actix_web::test]
async fn a_close_that_is_followed_by_the_end_of_the_stream_counts_as_the_clients() {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    let before = closes("client");
    raw.send(&frame(8, true, &1000u16.to_be_bytes())).await.unwrap();
    within(tokio::io::AsyncWriteExt::shutdown(&mut raw.stream)).await.unwrap();
    assert_eq!(raw.close_code().await, 1000);
    server.wait_for_sessions(0).await;
    assert!(closes("client") > before);
}

#[actix_web::test]
async fn a_resync_closes_everybody_with_its_code() {
    let server = TestServer::start(config()).await;
    let mut clients = [server.connect(1).await, server.connect(2).await];
    server.registry.resync_all();
    for client in &mut clients {
        assert_eq!(client.close_code().await, 4010);
    }
    server.wait_for_sessions(0).await;
}

#[actix_web::test]
async fn a_session_ends_with_its_token() {
    let server = TestServer::start(config()).await;
    let began = Instant::now();
    let mut client = server.try_connect("user=1&expires_in_ms=400").await.unwrap();
    assert_eq!(client.close_code().await, 4002);
    let lived = began.elapsed();
    assert!((300..10_000).contains(&lived.as_millis()), "{lived:?}");
}

#[actix_web::test]
async fn a_token_that_expired_before_the_first_write_ends_the_session_too() {
    let server = TestServer::start(config()).await;
    let mut client = server.try_connect("user=1&expires_in_ms=-1000").await.unwrap();
    assert_eq!(client.close_code().await, 4002);
}

#[actix_web::test]
async fn a_token_revoked_during_the_handshake_ends_the_session() {
    let server = TestServer::start(config()).await;
    let mut client = server.try_connect("user=1&then=revoke").await.unwrap();
    assert_eq!(client.close_code().await, 4002);
    server.wait_for_sessions(0).await;
}

#[actix_web::test]
async fn a_silent_peer_is_dropped_and_a_talking_one_kept() {
    let config = WebSocketConfig { ping_interval_ms: 600, ..config() };
    let server = TestServer::start(config).await;
    let began = Instant::now();
    let mut silent = server.connect_raw(1).await;
    let mut talking = server.connect(2).await;
    let watch_silent = async {
        let (opcode, _) = silent.frame().await.unwrap();
        assert_eq!(opcode, 9, "a protocol ping comes first");
        assert_eq!(silent.close_code().await, 4000);
        began.elapsed()
    };
    let (lived, _) = tokio::join!(watch_silent, async {
        // Reading answers the pings.
        let _ = tokio::time::timeout(Duration::from_millis(2_400), talking.next()).await;
    });
    assert!(lived >= Duration::from_millis(1_200), "closed after {lived:?}, before two intervals were over");
    server.push(2, 1, 10);
    assert_eq!(talking.next_id().await, Ok(1));
}

#[actix_web::test]
async fn a_stop_spreads_its_closes_over_the_window_and_refuses_newcomers() {
    let server = TestServer::start(config()).await;
    let mut clients = Vec::new();
    for user in 0..20 {
        clients.push(server.connect(user).await);
    }
    let window = Duration::from_secs(3);
    let began = Instant::now();
    let watch = clients.into_iter().map(async |mut client| {
        assert_eq!(client.close_code().await, 1001);
        began.elapsed()
    });
    let (mut ends, ()) = tokio::join!(futures_util::future::join_all(watch), server.registry.stop(window));
    ends.sort();
    assert!(ends[0] < window / 2, "the first close came after {:?}", ends[0]);
    assert!(ends[19] > window / 2, "the last close came after {:?}", ends[19]);
    assert!(ends[10] - ends[0] > window / 6 && ends[19] - ends[10] > window / 6, "{ends:?}");
    assert!(began.elapsed() < window + Duration::from_secs(2), "stop took {:?}", began.elapsed());
    assert_eq!(server.sessions().await, 0);
    assert_eq!(server.try_connect("user=1").await.err(), Some(503));
}

#[actix_web::test]
async fn a_session_that_panics_ends_alone_and_is_forgotten() {
    let server = TestServer::start(WebSocketConfig::default()).await;
    // On the same worker as the one that panics, and one of them of the same user.
    let mut others = [server.connect(1).await, server.connect(2).await];
    let mut doomed = server.try_connect("user=1&login=1&then=panic").await.unwrap();
    assert_eq!(doomed.close_code().await, 1006);
    server.wait_for_sessions(2).await;
    others[1].send(Message::text("ping")).await;
    assert_eq!(others[1].next().await.unwrap(), "pong");
    let mut again = server.connect(1).await;
    server.push(1, 7, 10);
    assert_eq!((others[0].next_id().await, again.next_id().await), (Ok(7), Ok(7)));
    drop((others, again));
    server.wait_for_sessions(0).await;
}
