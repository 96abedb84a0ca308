//! Group sends through HTTP against private sends through HTTP, in the same server process.

use std::time::Duration;

use nudge::db::connect::Role;

use crate::callers::{Kind, send_for};
use crate::child::ServerChild;
use crate::databases::{self, Database};
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
            send_for(&server, *kind, targets(*kind), WARM_UP).await?;
            stretches.push(send_for(&server, *kind, targets(*kind), TIME).await?);
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

/// Each sender with the users or the group that he writes to.
fn targets(kind: Kind) -> impl Iterator<Item = (i64, Vec<i64>)> {
    senders().map(move |(sender, friends)| match kind {
        Kind::Private => (sender, friends.collect()),
        Kind::Group => (sender, vec![(sender - 1) / MEMBERS + 1]),
    })
}
