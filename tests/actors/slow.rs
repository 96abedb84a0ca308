//! Peers that read slowly or not at all: they are cut, counted and gone, and nobody else notices.

use std::time::{Duration, Instant};

use nudge::config::WebSocketConfig;
use nudge::domain::ids::UserId;
use tokio::io::AsyncReadExt;

use crate::harness::{Raw, TestServer, closes, frame, wait_until, within};

const STALL: Duration = Duration::from_millis(1_000);
const LIMIT: usize = 256 << 10;

fn config() -> WebSocketConfig {
    WebSocketConfig {
        stall_timeout_ms: STALL.as_millis() as u64,
        max_in_flight_bytes: LIMIT,
        max_sessions_per_user: 1,
        ..WebSocketConfig::default()
    }
}

async fn is_open(server: &TestServer, user: i64) -> bool {
    !server.registry.list_sessions(UserId(user)).await.is_empty()
}

/// Pushes until the user's session is cut; the frames in flight stay under the limit all the while.
async fn push_until_cut(server: &TestServer, user: i64) -> i64 {
    let mut pushed = 0;
    while is_open(server, user).await {
        for _ in 0..50 {
            server.push(user, pushed, 1_000);
            pushed += 1;
        }
        server.wait_until_routed().await;
        assert!(server.registry.in_flight_bytes() <= LIMIT);
        assert!(pushed < 20_000, "never cut");
    }
    pushed
}

/// Reads frames as fast as they come. Answers how many there were, in order and without a gap, and the close code.
async fn read_to_the_end(raw: &mut Raw) -> (i64, u16) {
    let mut expected = 0;
    loop {
        match raw.frame().await {
            Ok((1, text)) => {
                assert_eq!(String::from_utf8(text).unwrap().trim_end(), expected.to_string());
                expected += 1;
            }
            Ok((8, payload)) => return (expected, u16::from_be_bytes([payload[0], payload[1]])),
            Ok(_) => {}
            Err(_) => return (expected, 1006),
        }
    }
}

#[actix_web::test]
async fn a_peer_that_never_reads_is_cut_and_counted_and_its_socket_is_gone_in_time() {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    let before = closes("slow_consumer");
    push_until_cut(&server, 1).await;
    let cut = Instant::now();
    assert!(closes("slow_consumer") > before);
    assert_eq!(server.registry.in_flight_bytes(), 0, "a cut frees what was queued");
    server.wait_for_sessions(0).await;
    assert!(cut.elapsed() < STALL + Duration::from_secs(5), "gone after {:?}", cut.elapsed());
    let (_, code) = read_to_the_end(&mut raw).await;
    assert_eq!(code, 1006);
}

#[actix_web::test]
async fn a_slow_reader_that_reads_again_gets_no_gap_and_is_told_why_it_ends() {
    let server = TestServer::start(WebSocketConfig { stall_timeout_ms: 10_000, ..config() }).await;
    let mut raw = server.connect_raw(1).await;
    let pushed = push_until_cut(&server, 1).await;
    let (read, code) = read_to_the_end(&mut raw).await;
    assert_eq!(code, 1013);
    assert!(read < pushed);
    server.wait_for_sessions(0).await;
}

#[actix_web::test]
async fn something_in_flight_without_progress_is_a_stall_even_below_the_byte_limit() {
    let server = TestServer::start(config()).await;
    let _raw = server.connect_raw(1).await;
    let before = closes("slow_consumer");
    let mut id = 0;
    while server.registry.in_flight_bytes() < LIMIT / 4 {
        server.push(1, id, 1_000);
        id += 1;
        server.wait_until_routed().await;
        tokio::task::yield_now().await;
    }
    let began = Instant::now();
    server.wait_for_sessions(0).await;
    assert!(began.elapsed() < STALL + Duration::from_secs(5), "gone after {:?}", began.elapsed());
    assert!(closes("slow_consumer") > before);
}

#[actix_web::test]
async fn a_peer_that_reads_a_byte_now_and_then_is_gone_in_time() {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    push_until_cut(&server, 1).await;
    let cut = Instant::now();
    let drip = async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if raw.stream.read_u8().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = server.wait_for_sessions(0) => {}
        () = drip => {}
    }
    server.wait_for_sessions(0).await;
    assert!(cut.elapsed() < STALL + Duration::from_secs(5), "gone after {:?}", cut.elapsed());
}

/// It reads so much that the kernel sees progress and never drops it: the dangerous case.
#[actix_web::test]
async fn a_dripping_reader_holds_few_bytes_and_counts_against_the_limit_until_its_socket_is_gone() {
    let server = TestServer::start(config()).await;
    let mut raw = server.connect_raw(1).await;
    let pushing = push_until_cut(&server, 1);
    let mut bytes = Vec::new();
    let mut drip = async |bytes: &mut Vec<u8>| {
        let mut buffer = [0; 2_048];
        tokio::time::sleep(Duration::from_millis(20)).await;
        let count = within(raw.stream.read(&mut buffer)).await.unwrap_or(0);
        bytes.extend_from_slice(&buffer[..count]);
        count
    };
    tokio::pin!(pushing);
    loop {
        tokio::select! {
            _ = &mut pushing => break,
            count = drip(&mut bytes) => assert!(count > 0),
        }
    }
    assert_eq!(server.registry.in_flight_bytes(), 0);
    let (cut_at, cut) = (bytes.len(), Instant::now());
    let mut refused_until = None;
    while drip(&mut bytes).await > 0 {
        match server.try_connect("user=1").await {
            Err(status) => {
                assert_eq!(status, 429);
                refused_until = Some((bytes.len() - cut_at, cut.elapsed()));
            }
            Ok(_) => break,
        }
    }
    // The server's end is closed; what the kernel still holds comes out, the close frame last.
    while drip(&mut bytes).await > 0 {}
    // Held outside the queue: two turns' worth of encoding, the send buffer (which the kernel doubles), and the
    // receive buffer of the peer.
    let (held, lasted) = (bytes.len() - cut_at, cut.elapsed());
    println!("after the cut: {held} bytes in {lasted:?}; refused until {refused_until:?}");
    assert!(held < 300 << 10, "{held} bytes were held for a cut session");
    assert!(lasted > STALL, "it was no drip: {lasted:?}");
    assert!(refused_until.is_some_and(|(_, at)| at > STALL / 2), "{refused_until:?}: a zombie does not count");
    assert!(bytes.ends_with(b"client reads too slowly"), "the close frame comes last");
    server.wait_for_sessions(0).await;
}

#[actix_web::test]
async fn one_stuck_connection_delays_nobody_else() {
    let server = TestServer::start(WebSocketConfig { stall_timeout_ms: 30_000, ..config() }).await;
    let _stuck = server.connect_raw(1).await;
    push_until_cut(&server, 1).await;
    let _half_stuck = server.connect_raw(2).await;
    server.push(2, 0, 100_000);
    let began = Instant::now();
    for id in 0..20 {
        let mut client = server.connect(3).await;
        server.registry.notify(vec![crate::harness::notification(&[1, 2, 3], id, 100)]).unwrap();
        assert_eq!(client.next_id().await, Ok(id));
        client.close().await;
        server.wait_for_sessions(2).await;
    }
    println!("20 rounds took {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[actix_web::test]
async fn pings_wait_while_a_peer_does_not_read_and_are_answered_when_it_does() {
    let server = TestServer::start(WebSocketConfig { stall_timeout_ms: 10_000, ..config() }).await;
    let mut raw = server.connect_raw(1).await;
    let mut pushed = 0;
    while server.registry.in_flight_bytes() < LIMIT / 4 {
        server.push(1, pushed, 1_000);
        pushed += 1;
        server.wait_until_routed().await;
        tokio::task::yield_now().await;
    }
    raw.send(&frame(1, true, b"ping")).await.unwrap();
    raw.send(&frame(9, true, b"beat")).await.unwrap();
    let (mut frames, mut answers) = (0, Vec::new());
    while answers.len() < 2 {
        match raw.frame().await.unwrap() {
            (1, text) if text == b"pong" => answers.push(1),
            (10, payload) if payload == b"beat" => answers.push(10),
            (1, _) => frames += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(answers, [1, 10]);
    while frames < pushed {
        assert_eq!(raw.frame().await.unwrap().0, 1);
        frames += 1;
    }
    server.push(1, 1, 10);
    assert_eq!(raw.frame().await.unwrap().0, 1);
}

#[actix_web::test]
async fn over_the_nodes_limit_the_session_with_most_bytes_is_cut_first() {
    let limit = 200 << 10;
    let config = WebSocketConfig { max_node_in_flight_bytes: limit, stall_timeout_ms: 20_000, ..config() };
    let server = TestServer::start(config).await;
    let (_large, _small) = (server.connect_raw(1).await, server.connect_raw(2).await);
    let fill = async |user, up_to: usize| {
        let mut id = 0;
        while server.registry.in_flight_bytes() < up_to {
            server.push(user, id, 1_000);
            id += 1;
            server.wait_until_routed().await;
            tokio::task::yield_now().await;
        }
    };
    fill(1, limit * 3 / 4).await;
    fill(2, limit - 5_000).await;
    assert!(is_open(&server, 1).await && is_open(&server, 2).await);
    let id = 100_000;
    wait_until("the cut", async || {
        server.push(2, id, 1_000);
        !is_open(&server, 1).await
    })
    .await;
    server.push(2, id, 1_000);
    assert!(is_open(&server, 2).await, "the small one stays");
    assert!(server.registry.in_flight_bytes() < limit);
}

#[actix_web::test]
async fn a_stop_waits_for_a_stuck_peer_no_longer_than_its_grace() {
    let server = TestServer::start(WebSocketConfig { stall_timeout_ms: 30_000, ..config() }).await;
    let _stuck = server.connect_raw(1).await;
    push_until_cut(&server, 1).await;
    let began = Instant::now();
    server.registry.stop(Duration::from_millis(100)).await;
    let took = began.elapsed();
    assert!((2_000..10_000).contains(&took.as_millis()), "{took:?}");
}
