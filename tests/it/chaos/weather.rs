//! The network between clients and server cuts, slows, freezes, half closes or swallows what it carries, handshakes and
//! requests included (field tests D3, G1, G2).

use std::time::Duration;

use rand::Rng;
use tokio::time::sleep;

use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{is_long, random_pause};

use super::network::Weather;
use super::survive::{survive, survive_rounds};
use super::world::Needs;

on_every_database! {
    connections_cut_within_frames_lose_and_repeat_nothing,
    bad_weather_loses_and_repeats_nothing,
}

/// Longer than both sides wait for a sign of life.
const SILENCE: Duration = Duration::from_millis(2_000);
const DELAY: Duration = Duration::from_millis(60);

async fn connections_cut_within_frames_lose_and_repeat_nothing(backend: Backend) {
    survive(backend, Needs::Network, async |world, rng| {
        for _ in 0..5 {
            // A few bytes, a part of a frame or of a request, and several of them.
            let at_most = [10, 300, 3_000, 20_000][rng.random_range(0..4)];
            world.network.as_ref().unwrap().turn(Weather::Cut { at_most });
            sleep(random_pause(rng, 400)).await;
            world.network.as_ref().unwrap().turn(Weather::Fair);
            sleep(random_pause(rng, 200)).await;
        }
    })
    .await;
}

async fn bad_weather_loses_and_repeats_nothing(backend: Backend) {
    let weathers =
        [Weather::Slow(DELAY), Weather::Stalled, Weather::HalfClosed, Weather::Swallowed, Weather::Cut { at_most: 1 }];
    let mut next = 0;
    survive_rounds(backend, Needs::Network, if is_long() { 15 } else { 1 }, async |world, rng| {
        // A short run has all of them in one round.
        for _ in 0..if is_long() { 1 } else { weathers.len() } {
            world.network.as_ref().unwrap().turn(weathers[next % weathers.len()]);
            next += 1;
            sleep(SILENCE.mul_f64(rng.random_range(0.1..1.0))).await;
            world.network.as_ref().unwrap().turn(Weather::Fair);
            world.until_acknowledged(10).await;
        }
    })
    .await;
}
