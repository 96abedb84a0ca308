//! The database server is stopped, killed or frozen while the server runs, and comes back (field test D2). Calls without
//! patience of the client's own, and what is answered meanwhile: `database_outage.rs`.

use rand::Rng;
use rand::seq::SliceRandom;
use tokio::time::sleep;

use crate::support::database_server::Action;
use crate::support::databases::Backend;
use crate::support::direct::{is_long, random_pause};
use crate::support::waiting::eventually_within;

use super::survive::survive;
use super::world::{Needs, PATIENCE};

/// Longest time for which the database stays away, milliseconds.
const AWAY_MS: u64 = 1_500;

async fn an_outage_loses_and_repeats_nothing(backend: Backend) {
    let mut ways = Vec::new();
    survive(backend, Needs::DatabaseServer, async |world, rng| {
        if ways.is_empty() {
            ways = vec![(Action::Stop, Action::Start), (Action::Kill, Action::Start)];
            if is_long() {
                ways.push((Action::Freeze, Action::Thaw));
            }
            ways.shuffle(rng);
        }
        let (down, up) = ways.pop().unwrap();
        world.database_server.as_ref().unwrap().control(down).await;
        eventually_within(PATIENCE, "the server says that it is not ready", async || !world.is_ready().await).await;
        sleep(random_pause(rng, AWAY_MS)).await;
        world.database_server.as_ref().unwrap().control(up).await;
        eventually_within(PATIENCE, "the server is ready again", async || world.is_ready().await).await;
        if rng.random() {
            // Too short for anybody to say that he is not ready.
            world.until_acknowledged(10).await;
            world.database_server.as_ref().unwrap().control(Action::Restart).await;
        }
    })
    .await;
}

mod database_outages_lose_and_repeat_nothing {
    use super::Backend;

    #[actix_web::test]
    async fn postgres() {
        super::an_outage_loses_and_repeats_nothing(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::an_outage_loses_and_repeats_nothing(Backend::Mysql).await;
    }
}
