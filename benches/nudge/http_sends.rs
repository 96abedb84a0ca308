//! Durable private sends through HTTP: 256 callers against a server that commits them together, and the same against one
//! with a single command in each transaction.

use std::time::Duration;

use nudge::db::connect::Role;

use crate::callers::{Kind, send_for};
use crate::child::ServerChild;
use crate::databases::{self, Database};
use crate::{machine, people};

const CALLERS: i64 = 256;
/// Of each caller; none of them sends.
const FRIENDS: i64 = 40;
const ROUNDS: usize = 3;
const WARM_UP: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(3);

pub async fn measure() -> anyhow::Result<()> {
    println!("{CALLERS} callers, nobody connected; {ROUNDS} rounds of {TIME:?}, alternating; the best");
    println!("{:<11} {:>9} {:>9} {:>8} {:>8} {:>8}  all rounds", "", "batch", "sends/s", "CPU us", "p50 ms", "p99 ms");
    for database in databases::create_all().await? {
        fill(&database).await?;
        compare(&database).await?;
        database.remove().await?;
    }
    Ok(())
}

async fn compare(database: &Database) -> anyhow::Result<()> {
    let mut rates = Vec::new();
    let mut lines = Vec::new();
    // One after the other on SQLite, whose file belongs to one server.
    for (batch, arguments) in [("256", vec!["nudge", &database.url, "1"]), ("1", vec!["single", &database.url])] {
        let server = ServerChild::start(&arguments)?;
        let mut stretches = Vec::new();
        for _ in 0..ROUNDS {
            send_for(&server, Kind::Private, targets(), WARM_UP).await?;
            stretches.push(send_for(&server, Kind::Private, targets(), TIME).await?);
        }
        let all: Vec<String> = stretches.iter().map(|stretch| format!("{:.0}", stretch.per_second)).collect();
        stretches.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
        let best = &stretches[0];
        lines.push(format!(
            "{:<11} {batch:>9} {:>9.0} {:>8.1} {:>8.1} {:>8.1}  {}",
            database.name,
            best.per_second,
            best.server_cpu_us,
            best.p50_ms,
            best.p99_ms,
            all.join(" ")
        ));
        rates.push(best.per_second);
    }
    println!("{}", lines.join("\n"));
    println!("{:<11} ratio {:.1}; load {}", database.name, rates[0] / rates[1], machine::load());
    Ok(())
}

fn targets() -> impl Iterator<Item = (i64, Vec<i64>)> {
    (1..=CALLERS).map(|caller| (caller, friends(caller).collect()))
}

fn friends(caller: i64) -> std::ops::Range<i64> {
    let first = CALLERS + 1 + caller * 7;
    first..first + FRIENDS
}

async fn fill(database: &Database) -> anyhow::Result<()> {
    people::create_users(database, friends(CALLERS).end).await?;
    let mut db = database.source.connect(Role::Writer).await?;
    db.begin().await?;
    for caller in 1..=CALLERS {
        people::insert_friends(&mut db, caller, &friends(caller).collect::<Vec<_>>()).await?;
    }
    Ok(db.commit().await?)
}
