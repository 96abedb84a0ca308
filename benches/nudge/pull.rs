//! Private pull out of a million rows: from the beginning, the middle and the end, for a user with very many messages
//! and one with few. Shows the plans, and how many rows the database really read.

use std::time::{Duration, Instant};

use nudge::clock::Clock;
use nudge::config::MessageConfig;
use nudge::db::connect::Role;
use nudge::db::{Backend, Db};
use nudge::domain::ids::{MessageId, UserId};
use nudge::service::private_messages::pull;
use nudge::service::pull_window::PullWindow;

use crate::databases::{self, Database};
use crate::plan::explain;
use crate::{machine, statements};

const ROWS: i64 = 1_000_000;
const ROWS_PER_INSERT: i64 = 5_000;
/// One row in five is his, half of them sent.
const BUSY: UserId = UserId(1);
/// One row in five until the middle, and then silence.
const SILENT: UserId = UserId(3);
/// 200 rows, spread over the whole table.
const QUIET: UserId = UserId(2);
const OTHERS: i64 = 2_000;
/// The oldest rows are older than the 30 days of a pull.
const DAYS: i64 = 33;
/// Rows older than that.
const BEFORE_WINDOW: i64 = ROWS * (DAYS - 30) / DAYS;
const PULLS: i64 = 300;
const SIZE: i64 = 100;

pub async fn measure() -> anyhow::Result<()> {
    println!("{ROWS} rows over {DAYS} days, pages of {SIZE}, {PULLS} pulls a line, one at a time");
    for database in databases::create_all().await? {
        let began = Instant::now();
        fill(&database).await?;
        println!("{}: filled in {:?}; load {}", database.name, began.elapsed(), machine::load());
        compare(&database).await?;
        database.remove().await?;
    }
    Ok(())
}

async fn fill(database: &Database) -> anyhow::Result<()> {
    let mut db = database.source.connect(Role::Writer).await?;
    let now = Clock::system().now();
    if database.backend == Backend::Sqlite {
        // This connection only: filling need not survive a crash.
        db.run_text("PRAGMA synchronous = OFF; PRAGMA cache_size = -1048576").await?;
    }
    db.begin().await?;
    for first in (1..=ROWS).step_by(usize::try_from(ROWS_PER_INSERT)?) {
        let rows: Vec<String> = (first..first + ROWS_PER_INSERT).map(|id| row(database.backend, id, now)).collect();
        db.run_text(&format!("INSERT INTO im_private_message VALUES {}", rows.join(","))).await?;
    }
    db.run_text(&format!("UPDATE im_sequence SET value = {ROWS} WHERE name = 'private'")).await?;
    db.commit().await?;
    let analyze = if database.backend == Backend::Mysql { "ANALYZE TABLE im_private_message" } else { "ANALYZE" };
    db.run_text(analyze).await?;
    Ok(())
}

fn row(backend: Backend, id: i64, now: i64) -> String {
    let other = 10 + (id * 7_919) % OTHERS;
    let another = 10 + (id * 104_729 + 1) % OTHERS;
    let (sender, receiver) = match id {
        _ if id % (ROWS / 200) == 77 => (other, QUIET.0),
        _ if id < ROWS / 2 && id % 10 == 3 => (SILENT.0, other),
        _ if id < ROWS / 2 && id % 10 == 8 => (other, SILENT.0),
        _ if id % 10 == 0 => (BUSY.0, other),
        _ if id % 10 == 5 => (other, BUSY.0),
        _ => (other, another),
    };
    let hash = match backend {
        Backend::Postgres => "'\\x00112233445566778899aabbccddeeff'",
        _ => "x'00112233445566778899aabbccddeeff'",
    };
    let send_time = now - DAYS * 86_400_000 * (ROWS - id) / ROWS;
    let content = r#"{"content":"about as long as what people write to each other"}"#;
    format!("({id},'{id:032x}',{sender},{receiver},101,'{content}',{hash},0,1,{send_time})")
}

async fn compare(database: &Database) -> anyhow::Result<()> {
    let mut db = database.source.connect(Role::Reader).await?;
    let window = PullWindow::private();
    statements::start_recording();
    let began = Instant::now();
    pull_once(&mut db, BUSY, 0, &window).await?;
    let elapsed = began.elapsed();
    println!(
        "  the first pull of an hour finds the window: {} statements, {elapsed:?}",
        statements::stop_recording().len()
    );
    println!(
        "  {:<6} {:<10} {:>8} {:>8} {:>6} {:>11} {:>10}",
        "user", "from", "p50 ms", "p99 ms", "rows", "statements", "rows read"
    );
    let mut plans = Vec::new();
    for (name, user) in [("busy", BUSY), ("silent", SILENT), ("quiet", QUIET)] {
        for (place, base, step) in [("beginning", 0, 0), ("middle", ROWS / 2, 101), ("end", ROWS - 40_000, 101)] {
            let mut times = Vec::new();
            let mut rows = 0;
            for number in 0..PULLS {
                let began = Instant::now();
                rows += pull_once(&mut db, user, base + number * step, &window).await?;
                times.push(began.elapsed());
            }
            statements::start_recording();
            pull_once(&mut db, user, base, &window).await?;
            let recorded = statements::stop_recording();
            let mut read = 0;
            // In the order in which the query names them.
            let values = match database.backend {
                Backend::Postgres => vec![user.0, base.max(BEFORE_WINDOW), user.0, ROWS, SIZE],
                _ => vec![user.0, base.max(BEFORE_WINDOW), ROWS, SIZE],
            };
            for statement in recorded.iter().filter(|statement| is_page(&statement.text)) {
                let plan = explain(database, &statements::with_values(&statement.text, &values)).await?;
                read += plan.rows_read.unwrap_or_default();
                plans.push(format!("{name}, {place}: {}", plan.text()));
            }
            let read = if database.backend == Backend::Sqlite { "see plan".to_owned() } else { read.to_string() };
            println!(
                "  {name:<6} {place:<10} {:>8.2} {:>8.2} {:>6.0} {:>11} {read:>10}",
                quantile(&mut times, 0.5).as_secs_f64() * 1e3,
                quantile(&mut times, 0.99).as_secs_f64() * 1e3,
                rows as f64 / PULLS as f64,
                recorded.len()
            );
        }
    }
    for plan in plans {
        println!("  {plan}");
    }
    Ok(())
}

/// Whether a statement reads messages, and not the counter or read positions.
fn is_page(sql: &str) -> bool {
    sql.contains("im_private_message") && sql.contains("LIMIT")
}

async fn pull_once(db: &mut Db, user: UserId, after: i64, window: &PullWindow) -> anyhow::Result<usize> {
    let now = Clock::system().now();
    Ok(pull(db, user, MessageId(after), SIZE, now, &MessageConfig::default(), window).await?.len())
}

/// The value below which this share of the others lies.
pub fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let index = (times.len() as f64 * share) as usize;
    times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}
