//! The server's clock jumps, some minutes back, an hour forward, under load (field test C3): order and cursors rely on no
//! clock, and logins survive, though their access tokens may not.

use rand::Rng;

use crate::support::databases::{Backend, on_every_database};

use super::survive::survive;
use super::world::Needs;

on_every_database! { a_clock_that_jumps_loses_and_repeats_nothing }

const MINUTE: i64 = 60_000;
const JUMPS: usize = 8;

async fn a_clock_that_jumps_loses_and_repeats_nothing(backend: Backend) {
    survive(backend, Needs::Clock, async |world, rng| {
        for number in 0..JUMPS {
            // Now and then it goes on as clocks do.
            let jump = match number % 4 {
                0 => -5 * MINUTE,
                2 => 60 * MINUTE,
                _ => rng.random_range(0..MINUTE),
            };
            world.clock.as_ref().unwrap().jump(jump);
            world.until_acknowledged(rng.random_range(5..30)).await;
        }
    })
    .await;
}
