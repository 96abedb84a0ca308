//! Callers that send through HTTP, each over a connection of its own, and each waiting for its answer before it sends
//! again.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::child::{CONTENT, ServerChild};
use crate::pull::quantile;
use crate::{machine, people};

#[derive(Clone, Copy)]
pub enum Kind {
    Private,
    Group,
}

/// One timed stretch.
pub struct Stretch {
    pub per_second: f64,
    pub server_cpu_us: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Lets every sender send to its targets in turn for a while.
pub async fn send_for(
    server: &ServerChild,
    kind: Kind,
    senders: impl Iterator<Item = (i64, Vec<i64>)>,
    time: Duration,
) -> anyhow::Result<Stretch> {
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let cpu_before = machine::cpu(server.id())?;
    let began = Instant::now();
    let senders: Vec<_> = senders
        .map(|(sender, targets)| {
            actix_web::rt::spawn(send_until(server.address, kind, sender, targets, began + time, latencies.clone()))
        })
        .collect();
    for sender in senders {
        sender.await??;
    }
    let elapsed = began.elapsed();
    let cpu = machine::cpu(server.id())?.saturating_sub(cpu_before);
    let mut latencies = latencies.take();
    let count = latencies.len() as f64;
    Ok(Stretch {
        per_second: count / elapsed.as_secs_f64(),
        server_cpu_us: cpu.as_secs_f64() * 1e6 / count,
        p50_ms: quantile(&mut latencies, 0.5).as_secs_f64() * 1e3,
        p99_ms: quantile(&mut latencies, 0.99).as_secs_f64() * 1e3,
    })
}

async fn send_until(
    address: SocketAddr,
    kind: Kind,
    sender: i64,
    targets: Vec<i64>,
    end: Instant,
    latencies: Rc<RefCell<Vec<Duration>>>,
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut answer = Vec::with_capacity(16 << 10);
    for target in targets.iter().cycle() {
        if Instant::now() >= end {
            break;
        }
        let request = request(kind, sender, *target)?;
        let began = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        read_answer(&mut stream, &mut answer).await?;
        latencies.borrow_mut().push(began.elapsed());
    }
    Ok(())
}

fn request(kind: Kind, sender: i64, target: i64) -> anyhow::Result<String> {
    let (path, field) = match kind {
        Kind::Private => ("private", "receiverId"),
        Kind::Group => ("group", "groupId"),
    };
    let id = format!("{:032x}", rand::random::<u128>());
    let content = serde_json::to_string(CONTENT)?;
    let body = format!(r#"{{"clientMessageId":"{id}","{field}":{target},"type":101,"content":{content}}}"#);
    Ok(format!(
        "POST /admin-api/im/message/{path}/send HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        people::access_token(sender),
        body.len()
    ))
}

/// Reads one answer, which must be a success.
async fn read_answer(stream: &mut TcpStream, answer: &mut Vec<u8>) -> anyhow::Result<()> {
    answer.clear();
    let mut length = None;
    loop {
        ensure!(stream.read_buf(answer).await? > 0, "the server hung up");
        if length.is_none()
            && let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")
        {
            length = Some(end + 4 + content_length(&answer[..end])?);
        }
        if length.is_some_and(|length| answer.len() >= length) {
            let text = std::str::from_utf8(answer)?;
            ensure!(text.contains(r#""code":0,"#), "refused: {text}");
            return Ok(());
        }
    }
}

fn content_length(head: &[u8]) -> anyhow::Result<usize> {
    let head = std::str::from_utf8(head)?.to_ascii_lowercase();
    let (_, tail) = head.split_once("content-length: ").context("no length")?;
    Ok(tail.lines().next().unwrap_or_default().trim().parse()?)
}
