//! A server whose clients only say that they are alive: CPU time with protocol pings from the server every 30 seconds,
//! and with a text "ping" of every device every 5 seconds, as the web client sends it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::child::ServerChild;
use crate::people::create_users;
use crate::sockets::open;
use crate::{databases, machine};

const USERS: i64 = 5_000;
const DEVICES_EACH: usize = 2;
const SETTLE: Duration = Duration::from_secs(2);
/// The server's own heartbeat comes twice in it.
const QUIET: Duration = Duration::from_secs(60);
const PINGING: Duration = Duration::from_secs(20);
const PINGS_PER_SECOND: u64 = 2_000;
const CLIENT_CORE: usize = 1;

/// The text frame "ping", with a mask of zeros.
const TEXT_PING: [u8; 10] = [0x81, 0x84, 0, 0, 0, 0, b'p', b'i', b'n', b'g'];
/// The answer to a protocol ping without payload, with a mask of zeros.
const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

pub async fn measure() -> anyhow::Result<()> {
    let database = databases::create_sqlite().await?;
    create_users(&database, USERS).await?;
    let server = ServerChild::start(&["beating", &database.url])?;
    let is_pinned = machine::pin(std::process::id(), CLIENT_CORE);
    tokio::time::sleep(SETTLE).await;
    let before = machine::rss_kb(server.id())?;
    let answers = Rc::new(Cell::new(0));
    let mut devices = Vec::new();
    for user in 1..=USERS {
        for _ in 0..DEVICES_EACH {
            let (read, write) = open(server.address, user).await?.into_split();
            let write = Rc::new(RefCell::new(Some(write)));
            actix_web::rt::spawn(answer_pings(read, write.clone(), answers.clone()));
            devices.push(write);
        }
    }
    tokio::time::sleep(SETTLE).await;
    let count = devices.len();
    let each = machine::rss_kb(server.id())?.saturating_sub(before) as f64 / count as f64;
    println!("{count} devices of {USERS} users; pinned: {is_pinned}; {each:.1} KiB of resident memory for each");

    let cpu = machine::cpu(server.id())?;
    tokio::time::sleep(QUIET).await;
    let quiet = machine::cpu(server.id())?.saturating_sub(cpu);
    println!("heartbeats alone: {:.2} % of a core", quiet.as_secs_f64() / QUIET.as_secs_f64() * 100.0);

    answers.set(0);
    let cpu = machine::cpu(server.id())?;
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < PINGING {
        let due = began.elapsed().as_millis() as u64 * PINGS_PER_SECOND / 1_000;
        while sent < due {
            send(&devices[sent as usize % count], &TEXT_PING).await?;
            sent += 1;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let busy = machine::cpu(server.id())?.saturating_sub(cpu).as_secs_f64();
    ensure!(answers.get() >= sent, "{} of {sent} pings were answered", answers.get());
    println!(
        "{sent} text pings, {PINGS_PER_SECOND} a second: {:.2} % of a core, {:.1} us for each; load {}",
        busy / began.elapsed().as_secs_f64() * 100.0,
        busy * 1e6 / sent as f64,
        machine::load()
    );
    Ok(())
}

type Writer = Rc<RefCell<Option<tokio::net::tcp::OwnedWriteHalf>>>;

/// Writes a frame as a whole; a socket that somebody else is writing to is left out, which cannot happen to small frames.
async fn send(device: &Writer, frame: &[u8]) -> anyhow::Result<()> {
    let mut writer = device.borrow_mut().take().ok_or_else(|| anyhow::anyhow!("busy"))?;
    writer.write_all(frame).await?;
    *device.borrow_mut() = Some(writer);
    Ok(())
}

/// Answers the server's pings and counts its text frames until the connection ends.
async fn answer_pings(mut read: tokio::net::tcp::OwnedReadHalf, write: Writer, answers: Rc<Cell<u64>>) {
    let mut head = [0; 2];
    let mut payload = [0; 125];
    while read.read_exact(&mut head).await.is_ok() {
        let length = usize::from(head[1]).min(payload.len());
        if read.read_exact(&mut payload[..length]).await.is_err() {
            return;
        }
        match head[0] {
            0x89 if send(&write, &PONG).await.is_err() => return,
            0x81 => answers.set(answers.get() + 1),
            _ => {}
        }
    }
}
