//! Everything converges: users with several devices do anything, pushes are lost, sockets are cut, servers are started
//! anew, and afterwards every device that pulls once knows what a plain model says, and so do unread counts, histories,
//! receipts and tables. A verb that the model refuses is refused by the server with the same code.
//!
//! Some 300 runs in all on the three databases, most of them with fixed seeds, so that a build that passed passes
//! again; a few have new ones each time. A run that fails prints its seed and the shortest history that still fails.
//! `TEST_SEED=n` repeats one run, `TEST_LONG=1` makes 400 with new seeds on each database.

mod actions;
mod check;
mod concurrent;
mod device;
mod model;
mod model_groups;
mod run;
mod verbs;
mod views;

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{is_long, seed};

use actions::{Action, random_history};
use run::{Log, Run, World};

on_every_database! {
    every_device_knows_what_the_model_says,
    devices_of_one_user_agree_after_verbs_at_once,
}

/// Actions of a run, after the friendships it begins with.
const LENGTH: usize = 60;
/// Runs of a failing history that may be spent on making it shorter.
const TRIES: usize = 120;

async fn every_device_knows_what_the_model_says(backend: Backend) {
    let mut world = World::start(backend).await;
    for seed in seeds(Runs { fixed: 65, new: 10, long: 300 }) {
        let mut rng = StdRng::seed_from_u64(seed);
        let users = rng.random_range(4..=6);
        let history = random_history(&mut rng, users, LENGTH);
        if let Some(failure) = fails(&mut world, seed, users, &history).await {
            let (reason, log) = shorten(&mut world, seed, users, history, failure).await;
            panic!("TEST_SEED={seed} on {backend}:\n{}\n{reason}", log.join("\n"));
        }
    }
}

async fn devices_of_one_user_agree_after_verbs_at_once(backend: Backend) {
    let mut world = World::start(backend).await;
    for seed in seeds(Runs { fixed: 20, new: 5, long: 100 }) {
        let log = Log::default();
        let play = AssertUnwindSafe(concurrent::play(&mut world, seed, &log));
        if let Err(panic) = play.catch_unwind().await {
            panic!("TEST_SEED={seed} on {backend}:\n{}\n{}", log.take().join("\n"), text_of(&*panic));
        }
    }
}

/// How many runs are made.
struct Runs {
    /// With the seeds 1, 2, 3, …
    fixed: u64,
    /// With seeds that nobody has seen, beside the fixed ones.
    new: u64,
    /// With such seeds and nothing else, when there is time.
    long: u64,
}

/// The seeds of the runs: one where it is given.
fn seeds(runs: Runs) -> impl Iterator<Item = u64> {
    let first = seed();
    let (fixed, new) = match (std::env::var_os("TEST_SEED"), is_long()) {
        (Some(_), _) => (0, 1),
        (None, true) => (0, runs.long),
        (None, false) => (runs.fixed, runs.new),
    };
    (1..=fixed).chain((0..new).map(move |number| first.wrapping_add(number)))
}

/// Why a run failed, and what happened until then.
type Failure = (String, Vec<String>);

/// Why a history fails, and what happened until then.
async fn fails(world: &mut World, seed: u64, users: usize, history: &[Action]) -> Option<Failure> {
    let log = Log::default();
    let play = AssertUnwindSafe(Run::play(world, seed, users, history, &log));
    let panic = play.catch_unwind().await.err()?;
    Some((text_of(&*panic), log.take()))
}

/// Takes parts out of a failing history, halves first, as long as it fails without them; how the shortest one fails.
async fn shorten(
    world: &mut World,
    seed: u64,
    users: usize,
    mut history: Vec<Action>,
    mut failure: Failure,
) -> Failure {
    let mut tries = 0;
    let mut width = history.len().div_ceil(2);
    loop {
        let mut start = 0;
        while start < history.len() && tries < TRIES {
            let mut shorter = history.clone();
            shorter.drain(start..(start + width).min(history.len()));
            tries += 1;
            match fails(world, seed, users, &shorter).await {
                Some(shorter_failure) => (history, failure) = (shorter, shorter_failure),
                None => start += width,
            }
        }
        if width == 1 {
            return failure;
        }
        width = width.div_ceil(2);
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
