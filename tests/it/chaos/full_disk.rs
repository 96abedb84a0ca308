//! SQLite's disk is full in the middle of commands (`design.md` section 4, "errors in a batch"). A limit on the size of
//! the server's files stands for the full disk: a write beyond it fails in the same place, and it needs no privilege.

use rand::Rng;
use tokio::time::sleep;

use crate::support::databases::Backend;
use crate::support::direct::random_pause;
use crate::support::waiting::eventually_within;

use super::survive::survive;
use super::world::{Needs, PATIENCE};

/// A page of the log that SQLite writes, with its header. A batch writes tens of them.
const LOG_PAGE: u64 = 4_096 + 24;
/// Below the 1,000 pages after which SQLite begins its log anew: a higher limit might never be met.
const MAX_PAGES: u64 = 900;
/// Longest time for which the disk stays full after the first failure, milliseconds.
const FULL_MS: u64 = 700;

#[actix_web::test]
async fn a_full_disk_loses_and_repeats_nothing() {
    survive(Backend::Sqlite, Needs::FileLimits, async |world, rng| {
        let url = world.url.clone();
        let log = format!("{}-wal", url.strip_prefix("sqlite://").unwrap());
        for _ in 0..3 {
            // Room for a part of what comes next, or none.
            let pages = std::fs::metadata(&log).unwrap().len() / LOG_PAGE;
            let room = if rng.random() { rng.random_range(0..64) } else { 0 };
            let failures = world.ledger.borrow().failures;
            world.servers[0].limit_file_size(Some((pages + room).min(MAX_PAGES) * LOG_PAGE));
            eventually_within(PATIENCE, "commands fail", async || world.ledger.borrow().failures > failures).await;
            // Who only reads does not notice.
            world.clients.people[1].pull_all(1_000).await;
            sleep(random_pause(rng, FULL_MS)).await;
            world.clients.people[2].pull_groups(1_000).await;
            world.servers[0].limit_file_size(None);
            eventually_within(PATIENCE, "the server is ready again", async || world.is_ready().await).await;
            world.until_acknowledged(20).await;
        }
    })
    .await;
}
