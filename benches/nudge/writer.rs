//! Durable private sends through the writer: many commands in a transaction against one in each.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nudge::actors::Registry;
use nudge::actors::db_writer::DbWriter;
use nudge::clock::Clock;
use nudge::config::Config;
use nudge::db::connect::Role;
use nudge::domain::content::{ContentType, content_hash, parse_content};
use nudge::domain::ids::UserId;
use nudge::health::Health;
use nudge::service::private_messages::PrivateDraft;
use nudge::telemetry;

use crate::databases::{self, Database};
use crate::statements::{self, Statement};
use crate::{machine, people, pull};

/// Callers that each wait for their answer before they send again.
const CALLERS: i64 = 256;
/// Friends of each sender.
const FRIENDS: i64 = 40;
const ROUNDS: usize = 3;
const WARM_UP: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(3);

/// One timed stretch.
struct Stretch {
    per_second: f64,
    cpu_us: f64,
    p50_ms: f64,
    p99_ms: f64,
}

pub async fn measure() -> anyhow::Result<()> {
    telemetry::init_metrics();
    println!("{CALLERS} callers, each to one of {FRIENDS} friends; {ROUNDS} rounds of {TIME:?}, alternating; the best");
    println!("{:<11} {:>9} {:>9} {:>8} {:>8} {:>8}  all rounds", "", "batch", "sends/s", "CPU us", "p50 ms", "p99 ms");
    for database in databases::create_all().await? {
        make_friends(&database).await?;
        compare(&database).await?;
        database.remove().await?;
    }
    Ok(())
}

async fn compare(database: &Database) -> anyhow::Result<()> {
    let sizes = [256, 1];
    let writers = sizes.map(|size| start_writer(database, size));
    let mut stretches = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (writer, stretches) in writers.iter().zip(&mut stretches) {
            send_for(writer, WARM_UP).await?;
            stretches.push(send_for(writer, TIME).await?);
            telemetry::tidy_metrics();
        }
    }
    let mut rates = Vec::new();
    for (size, stretches) in sizes.iter().zip(&mut stretches) {
        let all: Vec<String> = stretches.iter().map(|stretch| format!("{:.0}", stretch.per_second)).collect();
        stretches.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
        let best = &stretches[0];
        println!(
            "{:<11} {size:>9} {:>9.0} {:>8.1} {:>8.1} {:>8.1}  {}",
            database.name,
            best.per_second,
            best.cpu_us,
            best.p50_ms,
            best.p99_ms,
            all.join(" ")
        );
        rates.push(best.per_second);
    }
    println!("{:<11} ratio {:.1}; load {}", database.name, rates[0] / rates[1], machine::load());
    show_statements(&writers[0]).await?;
    for writer in writers {
        writer.drain().await;
    }
    Ok(())
}

fn start_writer(database: &Database, max_batch: usize) -> DbWriter {
    let mut config = Config::default();
    config.writer.max_batch = max_batch;
    let registry = Registry::start(config.websocket.clone());
    let node = format!("bench-{max_batch}");
    DbWriter::start(database.source.clone(), Clock::system(), &config, registry, Health::default(), &node)
}

/// Lets all callers send for a while.
async fn send_for(writer: &DbWriter, time: Duration) -> anyhow::Result<Stretch> {
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let cpu_before = machine::cpu(std::process::id())?;
    let began = Instant::now();
    let callers: Vec<_> = (1..=CALLERS)
        .map(|caller| actix_web::rt::spawn(send_until(writer.clone(), caller, began + time, latencies.clone())))
        .collect();
    for caller in callers {
        caller.await??;
    }
    let elapsed = began.elapsed();
    let cpu = machine::cpu(std::process::id())?.saturating_sub(cpu_before);
    let mut latencies = latencies.take();
    let count = latencies.len() as f64;
    Ok(Stretch {
        per_second: count / elapsed.as_secs_f64(),
        cpu_us: cpu.as_secs_f64() * 1e6 / count,
        p50_ms: pull::quantile(&mut latencies, 0.5).as_secs_f64() * 1e3,
        p99_ms: pull::quantile(&mut latencies, 0.99).as_secs_f64() * 1e3,
    })
}

async fn send_until(
    writer: DbWriter,
    caller: i64,
    end: Instant,
    latencies: Rc<RefCell<Vec<Duration>>>,
) -> anyhow::Result<()> {
    let mut number = 0;
    while Instant::now() < end {
        number += 1;
        let draft = draft(caller, friend_of(caller, number % FRIENDS))?;
        let began = Instant::now();
        writer.send_private(draft).await?;
        latencies.borrow_mut().push(began.elapsed());
    }
    Ok(())
}

fn draft(sender: i64, receiver: i64) -> anyhow::Result<PrivateDraft> {
    let content =
        parse_content(ContentType::Text, r#"{"content":"about as long as what people write to each other"}"#)?;
    Ok(PrivateDraft {
        sender: UserId(sender),
        receiver: UserId(receiver),
        client_message_id: format!("{:032x}", rand::random::<u128>()),
        content_type: ContentType::Text.number(),
        content_hash: content_hash(receiver, ContentType::Text.number(), &content),
        content,
        receipt: None,
    })
}

/// The user number `index` in the list of a caller's friends.
fn friend_of(caller: i64, index: i64) -> i64 {
    10_000 + (caller * 7 + index * 131) % 5_000
}

async fn make_friends(database: &Database) -> anyhow::Result<()> {
    let mut db = database.source.connect(Role::Writer).await?;
    for caller in 1..=CALLERS {
        let friends: Vec<i64> = (0..FRIENDS).map(|index| friend_of(caller, index)).collect();
        people::insert_friends(&mut db, caller, &friends).await?;
    }
    Ok(())
}

/// What one transaction of a full batch sends to the database, and where its time goes.
async fn show_statements(writer: &DbWriter) -> anyhow::Result<()> {
    statements::start_recording();
    send_for(writer, Duration::from_secs(1)).await?;
    let recorded = statements::stop_recording();
    let is_first =
        |statement: &Statement| ["BEGIN", "START"].iter().any(|start| statement.text.trim().starts_with(start));
    let mut transactions: Vec<&[Statement]> = Vec::new();
    let starts: Vec<usize> = (0..recorded.len()).filter(|index| is_first(&recorded[*index])).collect();
    for pair in starts.windows(2) {
        transactions.push(&recorded[pair[0]..pair[1]]);
    }
    let Some(count) = transactions.iter().map(|transaction| transaction.len()).max() else { return Ok(()) };
    transactions.retain(|transaction| transaction.len() == count);
    println!("  {count} statements a batch, mean of {} batches:", transactions.len());
    for position in 0..count {
        let total: Duration = transactions.iter().map(|transaction| transaction[position].elapsed).sum();
        let text = &transactions[0][position].text;
        let start: String = text.chars().filter(|c| *c != '\n').take(70).collect();
        println!("  {:>8.0} us  {start} ({} bytes)", total.as_secs_f64() * 1e6 / transactions.len() as f64, text.len());
    }
    Ok(())
}
