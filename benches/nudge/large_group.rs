//! One message to a group of 3,000 of whom 1,000 are connected twice: the CPU time of the server for each delivery,
//! against one notification to 1,000 sockets that is only pushed.

use std::time::Duration;

use anyhow::{Context, ensure};
use nudge::db::connect::Role;
use nudge::db::group_messages;
use nudge::domain::ids::{MAX_ID, MessageId};

use crate::child::ServerChild;
use crate::pull::quantile;
use crate::sockets::Crowd;
use crate::{databases, machine, people};

const MEMBERS: i64 = 3_000;
const ONLINE: i64 = 1_000;
const SOCKETS_EACH: usize = 2;
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(3);
const CLIENT_CORE: usize = 1;

pub async fn measure() -> anyhow::Result<()> {
    let (plain_database, group_database) = (databases::create_sqlite().await?, databases::create_sqlite().await?);
    people::create_users(&plain_database, ONLINE).await?;
    people::create_users(&group_database, MEMBERS).await?;
    let mut db = group_database.source.connect(Role::Writer).await?;
    let members: Vec<i64> = (1..=MEMBERS).collect();
    people::insert_group(&mut db, 1, &members).await?;
    let online = ONLINE.to_string();
    let mut plain = ServerChild::start(&["nudge", &plain_database.url, &online])?;
    let mut group = ServerChild::start(&["group", &group_database.url])?;
    let is_pinned = machine::pin(std::process::id(), CLIENT_CORE);
    println!(
        "a group of {MEMBERS}, {ONLINE} of them with {SOCKETS_EACH} sockets; {ROUNDS} rounds of {TIME:?}, one message \
         at a time; pinned: {is_pinned}"
    );
    let processes = [plain.id(), group.id()];
    let crowds = [connect(&mut plain, 1).await?, connect(&mut group, SOCKETS_EACH).await?];
    println!(
        "{:<6} {:>14} {:>14} {:>6} {:>9} {:>9}",
        "round", "plain us CPU", "group us CPU", "ratio", "p50 ms", "max ms"
    );
    let mut best = [f64::MAX; 2];
    for round in 1..=ROUNDS {
        let mut costs = [0.0; 2];
        let mut latencies = [0.0; 2];
        for (index, crowd) in crowds.iter().enumerate() {
            crowd.run(1, TIME / 10).await?;
            let before = machine::cpu(processes[index])?;
            let mut run = crowd.run(1, TIME).await?;
            let cpu = machine::cpu(processes[index])?.saturating_sub(before);
            costs[index] = cpu.as_secs_f64() * 1e6 / run.deliveries as f64;
            best[index] = best[index].min(costs[index]);
            latencies = [0.5, 1.0].map(|share| quantile(&mut run.latencies, share).as_secs_f64() * 1e3);
        }
        let [plain, group] = costs;
        let [p50, max] = latencies;
        println!("{round:<6} {plain:>14.2} {group:>14.2} {:>6.2} {p50:>9.1} {max:>9.1}", group / plain);
    }
    println!("{:<6} {:>14.2} {:>14.2} {:>6.2}", "best", best[0], best[1], best[1] / best[0]);
    let sent = crowds[1].completed();
    let rows = group_messages::list_ids_between(&mut db, MessageId(0), MessageId(MAX_ID)).await?.len();
    ensure!(rows == sent, "{sent} messages, but {rows} rows");
    println!("{sent} messages, each one row and received by all sockets; load {}", machine::load());
    Ok(())
}

async fn connect(server: &mut ServerChild, each: usize) -> anyhow::Result<Crowd> {
    let publish = server.publish.take().context("connected once")?;
    Crowd::connect(server.address, ONLINE, each, publish).await
}
