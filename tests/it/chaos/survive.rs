//! The course of a chaos run: work, break, mend, work, rest, compare; several times over.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::databases::Backend;
use crate::support::direct::{is_long, seed};
use crate::support::waiting::eventually_within;

use super::check::{Checker, Counts};
use super::world::{Clients, Needs, PATIENCE, World};

/// Descriptors that may be open at the end beyond those of the beginning: a reader opens its connection, and SQLite its
/// files, when they are first used.
const MORE_DESCRIPTORS: usize = 4;
/// Memory that a server may hold at the end beyond what it held after the first round, with everybody connected. Ten
/// rounds were seen to add up to 6 MiB: the caches of SQLite fill, and the allocator keeps what was once needed. What
/// each round or each of hundreds of connections leaves behind is more than this in the long form.
const MORE_MEMORY_KB: u64 = 16 << 10;

/// Plays rounds in each of which `strike` breaks something and mends it.
pub async fn survive(backend: Backend, needs: Needs, strike: impl AsyncFnMut(&mut World, &mut StdRng)) {
    survive_rounds(backend, needs, if is_long() { 10 } else { 2 }, strike).await;
}

pub async fn survive_rounds(
    backend: Backend,
    needs: Needs,
    rounds: usize,
    mut strike: impl AsyncFnMut(&mut World, &mut StdRng),
) {
    let mut rng = StdRng::seed_from_u64(seed());
    let mut world = World::start(backend, needs).await;
    let mut checker = Checker::new(&world).await;
    let mut memory = 0;
    for round in 0..rounds {
        world.begin(round, &mut rng);
        world.until_acknowledged(rng.random_range(20..if is_long() { 400 } else { 150 })).await;
        strike(&mut world, &mut rng).await;
        world.until_acknowledged(50).await;
        world.rest().await;
        checker.check(&mut world).await;
        if let (0, Some(server)) = (round, world.servers.first()) {
            memory = server.rss_kb();
        }
    }
    let more_memory = leave(&mut world, memory).await;
    let Counts { sent, lost_connections } = checker.counts;
    let failures = world.ledger.borrow().failures;
    let thread = std::thread::current();
    eprintln!(
        "{}: {rounds} rounds, {sent} messages acknowledged, 0 lost, 0 twice; {failures} calls repeated, \
         {lost_connections} connections lost, {more_memory} KiB more memory than after the first round",
        thread.name().unwrap_or_default()
    );
}

/// Everybody goes home, and the servers hold no more than in the beginning. How much memory more than given.
async fn leave(world: &mut World, memory: u64) -> i64 {
    let Clients { ears, people, devices, .. } = std::mem::take(&mut world.clients);
    for ear in ears {
        ear.close().await;
    }
    drop((people, devices));
    let Some(server) = world.servers.first() else { return 0 };
    let limit = world.descriptors + MORE_DESCRIPTORS;
    eventually_within(PATIENCE, &format!("no more than {limit} descriptors are open"), async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.open_fds() <= limit
    })
    .await;
    for server in &world.servers {
        assert_eq!(server.panics(), Vec::<String>::new());
    }
    let now = server.rss_kb();
    assert!(now <= memory + MORE_MEMORY_KB, "{now} KiB of memory, after the first round {memory}");
    i64::try_from(now).unwrap() - i64::try_from(memory).unwrap()
}
