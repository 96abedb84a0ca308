//! Resident memory of the server for each idle connection, fresh and after a burst.

use std::time::Duration;

use crate::child::ServerChild;
use crate::people::create_users;
use crate::sockets::Crowd;
use crate::{databases, machine};

const SOCKETS: i64 = 5_000;
/// Frames to every socket before the second look.
const BURST: usize = 20;
/// Until freed memory has gone back and statistics are up to date.
const SETTLE: Duration = Duration::from_secs(2);

pub async fn measure() -> anyhow::Result<()> {
    let database = databases::create_sqlite().await?;
    create_users(&database, SOCKETS).await?;
    let sockets = SOCKETS.to_string();
    println!("{SOCKETS} connections; KiB of resident memory for each; {BURST} frames to each socket in a burst");
    println!("{:<8} {:>12} {:>12} {:>14}", "", "before KiB", "idle", "after a burst");
    for arguments in [vec!["nudge", &database.url, &sockets], vec!["raw", &sockets]] {
        let mut server = ServerChild::start(&arguments)?;
        tokio::time::sleep(SETTLE).await;
        let before = machine::rss_kb(server.id())?;
        let publish = server.publish.take().ok_or_else(|| anyhow::anyhow!("connected once"))?;
        let crowd = Crowd::connect(server.address, SOCKETS, 1, publish).await?;
        tokio::time::sleep(SETTLE).await;
        let idle = machine::rss_kb(server.id())?;
        crowd.run(BURST, Duration::ZERO).await?;
        tokio::time::sleep(SETTLE).await;
        let after = machine::rss_kb(server.id())?;
        let each = |now: u64| now.saturating_sub(before) as f64 / SOCKETS as f64;
        println!("{:<8} {before:>12} {:>12.1} {:>14.1}", arguments[0], each(idle), each(after));
    }
    Ok(())
}
