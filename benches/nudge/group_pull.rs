//! Group pull out of a million messages in 1,000 groups of 500: for users in one group, in 200, and in 300, which is more
//! than are sought one by one. Shows the plans, and how many index entries the database really read.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Instant;

use nudge::clock::Clock;
use nudge::config::MessageConfig;
use nudge::db::connect::Role;
use nudge::db::{Backend, Db};
use nudge::domain::ids::{MAX_ID, MessageId, UserId};
use nudge::service::group_messages::pull;
use nudge::service::pull_window::PullWindow;

use crate::child::CONTENT;
use crate::databases::{self, Database};
use crate::plan::explain;
use crate::pull::quantile;
use crate::{machine, statements};

const ROWS: i64 = 1_000_000;
const ROWS_PER_INSERT: i64 = 5_000;
const GROUPS: i64 = 1_000;
const MEMBERS: i64 = 500;
/// Those who only fill the groups.
const OTHERS: i64 = 2_500;
const DAYS: i64 = 33;
const PULLS: i64 = 200;
const SIZE: i64 = 100;

/// 400 groups speak all the time.
const ALWAYS: i64 = 400;
/// The next 200 speak until the middle, and never again.
const UNTIL_MIDDLE: RangeInclusive<i64> = 401..=600;
/// The next 300 speak until the middle, and again after 90 percent.
const GAP: RangeInclusive<i64> = 601..=900;
/// 200 rows, spread over the whole table.
const QUIET: i64 = GROUPS;
const MIDDLE: i64 = ROWS / 2;
const RETURN: i64 = ROWS * 9 / 10;

/// Who pulls, and the groups of each.
const USERS: [(&str, UserId, RangeInclusive<i64>); 5] = [
    ("200 groups", UserId(1), 1..=200),
    ("200, silent", UserId(2), UNTIL_MIDDLE),
    ("1 quiet", UserId(3), QUIET..=QUIET),
    ("300 groups", UserId(4), 1..=300),
    ("300, a gap", UserId(5), GAP),
];

pub async fn measure() -> anyhow::Result<()> {
    println!("{ROWS} rows in {GROUPS} groups over {DAYS} days, pages of {SIZE}, {PULLS} pulls a line, one at a time");
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
        db.run_text(&format!("INSERT INTO im_group_message VALUES {}", rows.join(","))).await?;
    }
    for group in 1..=GROUPS {
        let pullers = USERS.iter().filter(|(_, _, groups)| groups.contains(&group)).map(|(_, user, _)| user.0);
        let others = (0..MEMBERS).map(|index| 1_000 + (group * 37 + index * 5) % OTHERS);
        let spans: Vec<String> = pullers.chain(others).map(|user| format!("({user},{group},0,{MAX_ID})")).collect();
        let sql = "INSERT INTO im_group_member_span (user_id, group_id, from_id, to_id) VALUES";
        db.run_text(&format!("{sql} {}", spans.join(","))).await?;
    }
    db.run_text(&format!("UPDATE im_sequence SET value = {ROWS} WHERE name = 'group'")).await?;
    db.commit().await?;
    let tables = if database.backend == Backend::Mysql { " TABLE im_group_message, im_group_member_span" } else { "" };
    db.run_text(&format!("ANALYZE{tables}")).await?;
    Ok(())
}

fn row(backend: Backend, id: i64, now: i64) -> String {
    let mixed = id * 7_919;
    let group = match id {
        _ if id % (ROWS / 200) == 77 => QUIET,
        _ if id < MIDDLE => 1 + mixed % GAP.end(),
        _ if id < RETURN => 1 + mixed % ALWAYS,
        _ => match mixed % (ALWAYS + 300) {
            index if index < ALWAYS => 1 + index,
            index => GAP.start() + index - ALWAYS,
        },
    };
    let sender = 1_000 + mixed % OTHERS;
    let hash = match backend {
        Backend::Postgres => "'\\x00112233445566778899aabbccddeeff'",
        _ => "x'00112233445566778899aabbccddeeff'",
    };
    let send_time = now - DAYS * 86_400_000 * (ROWS - id) / ROWS;
    format!("({id},'{id:032x}',{sender},{group},101,'{CONTENT}',{hash},0,0,{send_time},NULL,NULL)")
}

async fn compare(database: &Database) -> anyhow::Result<()> {
    let mut db = database.source.connect(Role::Reader).await?;
    let window = PullWindow::group();
    // The first pull of an hour also finds the window.
    pull_once(&mut db, UserId(1), 0, &window).await?;
    println!(
        "  {:<12} {:<10} {:>8} {:>8} {:>6} {:>11} {:>10}",
        "user", "from", "p50 ms", "p99 ms", "rows", "statements", "rows read"
    );
    let mut plans: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, user, _) in USERS {
        for (place, base, step) in [("beginning", 0, 0), ("middle", MIDDLE, 101), ("end", ROWS - 25_000, 101)] {
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
            for statement in recorded.iter().filter(|statement| finds_ids(&statement.text)) {
                let plan = explain(database, &statements::with_values(&statement.text, &[])).await?;
                read += plan.rows_read.unwrap_or_default();
                plans.entry(plan.text()).or_default().push(format!("{name}, {place}"));
            }
            let read = if database.backend == Backend::Sqlite { "see plan".to_owned() } else { read.to_string() };
            println!(
                "  {name:<12} {place:<10} {:>8.2} {:>8.2} {:>6.0} {:>11} {read:>10}",
                quantile(&mut times, 0.5).as_secs_f64() * 1e3,
                quantile(&mut times, 0.99).as_secs_f64() * 1e3,
                rows as f64 / PULLS as f64,
                recorded.len()
            );
        }
    }
    for (plan, users) in plans {
        println!("  {}: {plan}", users.join(" and "));
    }
    Ok(())
}

/// Whether a statement finds the ids of a page: all its values are in its text.
fn finds_ids(sql: &str) -> bool {
    sql.contains("im_group_message") && sql.contains("id LIMIT")
}

async fn pull_once(db: &mut Db, user: UserId, after: i64, window: &PullWindow) -> anyhow::Result<usize> {
    let now = Clock::system().now();
    Ok(pull(db, user, MessageId(after), SIZE, now, &MessageConfig::default(), window).await?.len())
}
