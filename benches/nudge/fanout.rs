//! One notification to 1,000 sockets: the CPU time of the server for each delivery, against a raw tokio sender.

use std::time::Duration;

use crate::child::ServerChild;
use crate::people::create_users;
use crate::pull::quantile;
use crate::sockets::Crowd;
use crate::{databases, machine};

const SOCKETS: i64 = 1_000;
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(2);
/// Notifications under way at a time.
const WINDOWS: [usize; 2] = [1, 8];
const CLIENT_CORE: usize = 1;

pub async fn measure() -> anyhow::Result<()> {
    let database = databases::create_sqlite().await?;
    create_users(&database, SOCKETS).await?;
    let sockets = SOCKETS.to_string();
    let mut nudge = ServerChild::start(&["nudge", &database.url, &sockets])?;
    let mut raw = ServerChild::start(&["raw", &sockets])?;
    let is_pinned = machine::pin(std::process::id(), CLIENT_CORE);
    println!("1 -> {SOCKETS}, {ROUNDS} rounds of {TIME:?}, alternating; servers and client pinned: {is_pinned}");
    let crowds = [connect(&mut nudge).await?, connect(&mut raw).await?];
    let processes = [nudge.id(), raw.id()];

    println!(
        "{:<8} {:>7} {:>14} {:>14} {:>12} {:>6} {:>9} {:>9}",
        "window", "round", "nudge us CPU", "raw us CPU", "nudge/s", "ratio", "p50 ms", "max ms"
    );
    for window in WINDOWS {
        let mut best = [f64::MAX; 2];
        for round in 1..=ROUNDS {
            let mut costs = [0.0; 2];
            let mut rate = 0.0;
            let mut latencies = [0.0; 2];
            for (index, crowd) in crowds.iter().enumerate().rev() {
                crowd.run(window, TIME / 10).await?;
                let before = machine::cpu(processes[index])?;
                let mut run = crowd.run(window, TIME).await?;
                let cpu = machine::cpu(processes[index])?.saturating_sub(before);
                costs[index] = cpu.as_secs_f64() * 1e6 / run.deliveries as f64;
                best[index] = best[index].min(costs[index]);
                rate = run.deliveries as f64 / run.elapsed.as_secs_f64();
                latencies = [0.5, 1.0].map(|share| quantile(&mut run.latencies, share).as_secs_f64() * 1e3);
            }
            let [nudge, raw] = costs;
            println!(
                "{window:<8} {round:>7} {nudge:>14.2} {raw:>14.2} {rate:>12.0} {:>6.2} {:>9.1} {:>9.1}",
                nudge / raw,
                latencies[0],
                latencies[1]
            );
        }
        let [nudge, raw] = best;
        println!("{window:<8} {:>7} {nudge:>14.2} {raw:>14.2} {:>12} {:>6.2}", "best", "", nudge / raw);
    }
    println!("load {}", machine::load());
    Ok(())
}

async fn connect(server: &mut ServerChild) -> anyhow::Result<Crowd> {
    let publish = server.publish.take().ok_or_else(|| anyhow::anyhow!("connected once"))?;
    Crowd::connect(server.address, SOCKETS, 1, publish).await
}
