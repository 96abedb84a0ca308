//! Group sends through HTTP against private sends through HTTP, in the same server process.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nudge::db::connect::Role;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::child::{CONTENT, ServerChild};
use crate::databases::{self, Database};
use crate::pull::quantile;
use crate::{machine, people};

const GROUPS: i64 = 4;
/// Members of each group; nobody is in two of them.
const MEMBERS: i64 = 500;
/// Of each group. Each waits for the answer before sending again.
const SENDERS: i64 = 16;
/// Of each sender, members of the same group.
const FRIENDS: i64 = 40;
const ROUNDS: usize = 3;
const WARM_UP: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(3);
const CLIENT_CORE: usize = 1;

#[derive(Clone, Copy)]
enum Kind {
    Private,
    Group,
}

/// One timed stretch.
struct Stretch {
    per_second: f64,
    server_cpu_us: f64,
    p50_ms: f64,
    p99_ms: f64,
}

pub async fn measure() -> anyhow::Result<()> {
    let senders = GROUPS * SENDERS;
    println!(
        "{senders} senders in {GROUPS} groups of {MEMBERS}, nobody connected; {ROUNDS} rounds of {TIME:?}, alternating"
    );
    println!("{:<11} {:>8} {:>9} {:>8} {:>8} {:>8}  all rounds", "", "", "sends/s", "CPU us", "p50 ms", "p99 ms");
    for database in databases::create_all().await? {
        fill(&database).await?;
        compare(&database).await?;
        database.remove().await?;
    }
    Ok(())
}

async fn fill(database: &Database) -> anyhow::Result<()> {
    people::create_users(database, GROUPS * MEMBERS).await?;
    let mut db = database.source.connect(Role::Writer).await?;
    db.begin().await?;
    for group in 1..=GROUPS {
        let members: Vec<i64> = members(group).collect();
        people::insert_group(&mut db, group, &members).await?;
    }
    for (sender, friends) in senders() {
        people::insert_friends(&mut db, sender, &friends.collect::<Vec<_>>()).await?;
    }
    Ok(db.commit().await?)
}

fn members(group: i64) -> std::ops::RangeInclusive<i64> {
    (group - 1) * MEMBERS + 1..=group * MEMBERS
}

/// Who sends, and to whom in private: each has friends of his own, none of whom sends.
fn senders() -> impl Iterator<Item = (i64, std::ops::Range<i64>)> {
    (1..=GROUPS).flat_map(|group| {
        let first = *members(group).start();
        (0..SENDERS).map(move |index| {
            let friends = first + SENDERS + index * 20;
            (first + index, friends..friends + FRIENDS)
        })
    })
}

async fn compare(database: &Database) -> anyhow::Result<()> {
    let server = ServerChild::start(&["nudge", &database.url, "1"])?;
    machine::pin(std::process::id(), CLIENT_CORE);
    let kinds = [("private", Kind::Private), ("group", Kind::Group)];
    let mut stretches = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for ((_, kind), stretches) in kinds.iter().zip(&mut stretches) {
            send_for(&server, *kind, WARM_UP).await?;
            stretches.push(send_for(&server, *kind, TIME).await?);
        }
    }
    let mut rates = Vec::new();
    for ((name, _), stretches) in kinds.iter().zip(&mut stretches) {
        let all: Vec<String> = stretches.iter().map(|stretch| format!("{:.0}", stretch.per_second)).collect();
        stretches.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
        let best = &stretches[0];
        println!(
            "{:<11} {name:>8} {:>9.0} {:>8.1} {:>8.1} {:>8.1}  {}",
            database.name,
            best.per_second,
            best.server_cpu_us,
            best.p50_ms,
            best.p99_ms,
            all.join(" ")
        );
        rates.push(best.per_second);
    }
    println!("{:<11} ratio {:.2}; load {}", database.name, rates[1] / rates[0], machine::load());
    Ok(())
}

/// Lets all senders send for a while.
async fn send_for(server: &ServerChild, kind: Kind, time: Duration) -> anyhow::Result<Stretch> {
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let cpu_before = machine::cpu(server.id())?;
    let began = Instant::now();
    let senders: Vec<_> = senders()
        .map(|(sender, friends)| {
            let targets: Vec<i64> = match kind {
                Kind::Private => friends.collect(),
                Kind::Group => vec![(sender - 1) / MEMBERS + 1],
            };
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
