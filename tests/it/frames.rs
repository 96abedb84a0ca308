//! Bytes that no client sends on purpose, on an open socket: the server closes the connection or ignores them, and goes
//! on. (What each kind of frame leads to is tested beside the actors.)
//!
//! `TEST_LONG=1` opens many more sockets.

use std::time::Duration;

use nudge::protocol::close::CloseReason;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::app::{API_KEY, PATIENCE, Person, TestApp, befriend, eventually, http_client};
use crate::support::databases::Backend;
use crate::support::process::ServerProcess;

/// A socket whose handshake is done.
async fn open_raw(base: &str, person: &Person) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
    let url = format!("{}/infra/ws?token={}", base.replacen("http", "ws", 1), person.refresh_token);
    connect_async(url).await.unwrap().0
}

/// The connection below it, on which anything can be written.
fn plain(socket: &mut WebSocketStream<MaybeTlsStream<TcpStream>>) -> &mut TcpStream {
    match socket.get_mut() {
        MaybeTlsStream::Plain(stream) => stream,
        _ => panic!("not a plain connection"),
    }
}

/// A frame as RFC 6455 has it, with every part at random and lengths that need not be true.
fn random_frame(random: &mut StdRng) -> Vec<u8> {
    let mut frame = vec![random.random()];
    if random.random_bool(0.7) {
        // An opcode that exists, final or not, without reserved bits.
        let opcodes = [0, 1, 2, 8, 9, 10];
        frame[0] = opcodes[random.random_range(0..opcodes.len())] | if random.random() { 0x80 } else { 0 };
    }
    let payload = random_bytes(random, 300);
    let mask_bit = if random.random_bool(0.9) { 0x80 } else { 0 };
    match random.random_range(0..10) {
        0 => frame.extend([mask_bit | 127].into_iter().chain(random.random::<u64>().to_be_bytes())),
        1 => frame.extend([mask_bit | 126].into_iter().chain(random.random::<u16>().to_be_bytes())),
        _ if payload.len() < 126 => frame.push(mask_bit | u8::try_from(payload.len()).unwrap()),
        _ => frame.extend([mask_bit | 126].into_iter().chain(u16::try_from(payload.len()).unwrap().to_be_bytes())),
    }
    frame.extend(random.random::<u32>().to_be_bytes());
    frame.extend(payload);
    frame
}

fn random_bytes(random: &mut StdRng, at_most: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.random_range(0..at_most)];
    random.fill_bytes(&mut bytes);
    bytes
}

/// Writes what the seed says, ends the sending side, and gives back everything that the server sent until its end.
async fn torment(stream: &mut TcpStream, random: &mut StdRng) -> Vec<u8> {
    let (mut reader, mut writer) = stream.split();
    let writes = async {
        for _ in 0..random.random_range(1..8) {
            let bytes = if random.random_bool(0.8) { random_frame(random) } else { random_bytes(random, 2_000) };
            // The server may have closed it, which is one of the two good ends.
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
            if random.random() {
                tokio::task::yield_now().await;
            }
        }
        let _ = writer.shutdown().await;
    };
    let mut received = Vec::new();
    let reads = async {
        let mut buffer = [0; 4_096];
        // An error is a connection that was reset because bytes of ours were still on their way.
        while let Ok(length @ 1..) = reader.read(&mut buffer).await {
            received.extend_from_slice(&buffer[..length]);
        }
    };
    tokio::join!(writes, reads);
    received
}

/// Checks that the server sent whole frames of its own kinds, and nothing after a close frame.
fn check_frames(mut bytes: &[u8]) -> Result<(), String> {
    let known: Vec<u16> = CloseReason::ALL.iter().map(|reason| reason.code()).collect();
    while let [head, length, rest @ ..] = bytes {
        let length = usize::from(*length);
        if length > 125 || rest.len() < length {
            return Err(format!("an unexpected or broken frame: {head:#x} {length}"));
        }
        let (payload, after) = rest.split_at(length);
        match (head, payload) {
            (0x81, b"pong") | (0x89 | 0x8a, _) => {}
            // Our reason, or an echo of the client's own code.
            (0x88, []) if after.is_empty() => {}
            (0x88, [high, low, text @ ..]) if after.is_empty() => {
                let code = u16::from_be_bytes([*high, *low]);
                if !text.is_empty() && !known.contains(&code) {
                    return Err(format!("close code {code}"));
                }
            }
            _ => return Err(format!("an unexpected frame: {head:#x} {payload:?}")),
        }
        bytes = after;
    }
    Ok(())
}

#[actix_web::test]
async fn random_bytes_on_a_socket_end_in_a_close_or_nothing() {
    let rounds = if std::env::var_os("TEST_LONG").is_some() { 20_000 } else { 300 };
    let seed: u64 = rand::rng().random();
    let folder = tempfile::TempDir::new().unwrap();
    let mut process = ServerProcess::start(folder.path(), &[("NUDGE_API_KEY", API_KEY)]).await.unwrap();
    let (http, base) = (http_client(), process.url());
    let (alice, bob) = (Person::create(&http, &base, "a", "A").await, Person::create(&http, &base, "b", "B").await);
    befriend(&alice, &bob).await;
    let mut bystander = bob.connect().await;
    for round in 0..rounds {
        let mut random = StdRng::seed_from_u64(seed.wrapping_add(round));
        let mut socket = open_raw(&base, &alice).await;
        let received = tokio::time::timeout(PATIENCE, torment(plain(&mut socket), &mut random)).await;
        let received = received.unwrap_or_else(|_| panic!("the socket stays open, seed {seed}, round {round}"));
        check_frames(&received).unwrap_or_else(|what| panic!("{what}, seed {seed}, round {round}"));
    }
    // Nobody else noticed anything, and nothing is left.
    let sent = alice.send(&bob, "still here").await;
    assert_eq!(bystander.next_of(101).await.payload, sent, "seed {seed}");
    eventually("the sessions are gone", async || alice.get("/im/session/list").await.as_array().unwrap().is_empty())
        .await;
    process.sigterm();
    assert!(process.wait_for_exit(Duration::from_secs(20)).await.unwrap().success(), "seed {seed}");
    assert_eq!(process.panics(), Vec::<String>::new(), "seed {seed}");
}

#[actix_web::test]
async fn what_a_client_says_besides_ping_is_ignored() {
    let app = TestApp::start(Backend::Sqlite).await;
    let mut socket = app.user("alice").await.connect().await;
    for text in
        ["", "pong", "PING", "ping ", r#"{"type":"demo-message-send","content":"{}"}"#, "{", "\0", "\u{feff}ping"]
    {
        socket.send(Message::text(text)).await;
        // The answer to the `ping` that `drain` sends is the next thing that arrives.
        assert_eq!(socket.drain().await, vec![], "{text:?}");
    }
}
