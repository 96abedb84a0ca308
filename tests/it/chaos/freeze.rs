//! The server process is frozen (SIGSTOP), for longer than anybody waits for a sign of life: as a whole, and inside of a
//! transaction while another server works on the same database (`design.md` section 3).

use std::time::Duration;

use rand::Rng;
use tokio::time::sleep;

use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{is_long, random_pause};

use super::survive::{survive, survive_rounds};
use super::world::{Needs, World};

on_every_database! { a_frozen_server_loses_and_repeats_nothing }

/// Longest standstill, several times what clients and server wait for a sign of life. In the long form also more than
/// the five seconds for which a server waits for a request that was begun.
const FROZEN: Duration = Duration::from_secs(3);
const LONG_FROZEN: Duration = Duration::from_secs(8);
/// A server that works commits something in this time.
const STANDSTILL: Duration = Duration::from_millis(700);

async fn a_frozen_server_loses_and_repeats_nothing(backend: Backend) {
    survive(backend, Needs::Process, async |world, rng| {
        world.servers[0].sigstop();
        let longest = if is_long() { LONG_FROZEN } else { FROZEN };
        sleep(longest.mul_f64(rng.random_range(0.2..1.0))).await;
        world.servers[0].sigcont();
    })
    .await;
}

/// The other server waits for the row lock of the frozen one, until the database ends that one's transaction.
async fn a_node_frozen_inside_a_transaction_stops_nobody(backend: Backend) {
    survive_rounds(backend, Needs::TwoProcesses, if is_long() { 5 } else { 1 }, async |world, rng| {
        loop {
            world.servers[0].sigstop();
            if !commits(world).await {
                break;
            }
            world.servers[0].sigcont();
            world.until_acknowledged(1).await;
            sleep(random_pause(rng, 10)).await;
        }
        world.until_acknowledged(30).await;
        world.servers[0].sigcont();
    })
    .await;
}

/// Whether anybody commits a message.
async fn commits(world: &World) -> bool {
    let mut tables = world.tables().await;
    let before = tables.newest_messages().await;
    sleep(STANDSTILL).await;
    tables.newest_messages().await != before
}

mod a_node_frozen_inside_a_transaction {
    use super::Backend;

    #[actix_web::test]
    async fn postgres() {
        super::a_node_frozen_inside_a_transaction_stops_nobody(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::a_node_frozen_inside_a_transaction_stops_nobody(Backend::Mysql).await;
    }
}
