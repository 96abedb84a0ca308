//! What else people do: read, write, look, and lose their connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::fleet::{Fleet, Unit};
use super::ledger::Target;
use super::provision::Society;
use super::recorder::{Kind, Presence, Reaction};
use super::sender::{Phase, exponential, kind};
use crate::client::{Api, ClientError};
use crate::domain::ids::MessageId;

/// Reports and look-ups under way.
const PARALLEL_REACTIONS: usize = 32;
/// Pages that the web client asks at most.
const MAX_PAGES: usize = 1_000;

/// Does what pushes ask for, until all recorders are gone or the task is ended.
pub async fn react(fleet: Arc<Fleet>, mut reactions: mpsc::Receiver<Reaction>) {
    let permits = Arc::new(Semaphore::new(PARALLEL_REACTIONS));
    let mut running = JoinSet::new();
    while let Some(reaction) = reactions.recv().await {
        while running.try_join_next().is_some() {}
        let (fleet, permits) = (fleet.clone(), permits.clone());
        let permit = permits.acquire_owned().await;
        running.spawn(async move {
            react_to(&fleet, reaction).await;
            drop(permit);
        });
    }
}

/// Boots devices like the web client, all at once: only HTTP connections bound it.
pub async fn boot_all(fleet: Arc<Fleet>, mut boots: mpsc::Receiver<Reaction>) {
    let mut running = JoinSet::new();
    while let Some(boot) = boots.recv().await {
        while running.try_join_next().is_some() {}
        let fleet = fleet.clone();
        running.spawn(async move { react_to(&fleet, boot).await });
    }
}

async fn react_to(fleet: &Fleet, reaction: Reaction) {
    let (Reaction::Read { device, .. } | Reaction::Verify { device, .. } | Reaction::Boot { device }) = reaction;
    let Some(unit) = fleet.units.get(device) else { return };
    let api = unit.device.api();
    let result = match reaction {
        Reaction::Read { target: Target::User(peer), id, .. } => api.read_private(peer, MessageId(id)).await,
        Reaction::Read { target: Target::Group(group), id, .. } => api.read_group(group, MessageId(id)).await,
        Reaction::Verify { target, id, .. } => {
            verify(fleet, api, target, id).await;
            return;
        }
        Reaction::Boot { .. } => {
            boot(unit).await;
            return;
        }
    };
    note_report(fleet, result);
}

fn note_report(fleet: &Fleet, result: Result<(), ClientError>) {
    let mut now = fleet.hub.measure.now();
    match result {
        Ok(()) => now.reports += 1,
        Err(error) => now.error(format!("report: {}", kind(&error))),
    }
}

#[derive(Deserialize)]
struct Found {
    id: i64,
}

/// Whoever was pushed a row finds it by a pull from just before it.
async fn verify(fleet: &Fleet, api: &Api, target: Target, id: i64) {
    let table = match target {
        Target::User(_) => "private",
        Target::Group(_) => "group",
    };
    let path = format!("/admin-api/im/message/{table}/pull?minId={}&size=1", id - 1);
    match api.get_json::<Option<Vec<Found>>>(&path).await {
        Ok(page) => {
            if page.unwrap_or_default().first().is_none_or(|row| row.id != id) {
                fleet.hub.ledger.note_early_push(id);
            }
            fleet.hub.measure.now().verified += 1;
        }
        Err(error) => fleet.hub.measure.now().error(format!("look-up: {}", kind(&error))),
    }
}

/// The calls of the web client after a reconnect: nine in parallel, message pulls until an empty page. It pulls from
/// the beginning of the run; the ledger hears nothing of it, for it has the device's own pulls.
async fn boot(unit: &Unit) {
    let api = unit.device.api();
    let pulls = ["/im/message/private/pull", "/im/message/group/pull"].map(async |path| pull_all(api, path).await);
    let others = [
        "/im/friend/pull?limit=100",
        "/im/friend-request/pull?limit=100",
        "/im/conversation-read/pull?limit=100",
        "/im/group-request/pull?limit=100",
        "/im/group/list",
        "/im/group-request/unhandled-list",
    ]
    .map(async |path: &str| api.get_json::<IgnoredAny>(&format!("/admin-api{path}")).await.map(drop));
    let (pulls, others) = tokio::join!(join_all(pulls), join_all(others));
    let hub = unit.recorder.hub();
    let mut is_complete = true;
    for error in pulls.into_iter().chain(others).filter_map(Result::err) {
        is_complete = false;
        hub.measure.now().error(format!("boot: {}", kind(&error)));
    }
    if is_complete || unit.recorder.presence() == Presence::Connected {
        unit.recorder.set_presence(Presence::Synced);
    }
}

async fn pull_all(api: &Api, path: &str) -> Result<(), ClientError> {
    let mut min_id = 0;
    for _ in 0..MAX_PAGES {
        let path = format!("/admin-api{path}?minId={min_id}&size=100");
        let page: Option<Vec<Found>> = api.get_json(&path).await?;
        match page.unwrap_or_default().last() {
            Some(last) if last.id > min_id => min_id = last.id,
            _ => break,
        }
    }
    Ok(())
}

/// Somebody writes to somebody, `rate` times a second.
pub async fn type_now_and_then(
    fleet: Arc<Fleet>,
    society: Arc<Society>,
    rate: f64,
    seed: u64,
    mut phase: watch::Receiver<Phase>,
) {
    let mut random = StdRng::seed_from_u64(seed);
    while wait_for_next(&mut phase, rate, &mut random).await {
        let Some((a, b)) = society.pairs.choose(&mut random).copied() else { return };
        let (Some(unit), Some(peer)) = (fleet.device_of(a, &mut random), society.people.get(b)) else { return };
        let (device, peer, fleet) = (unit.device.clone(), peer.id, fleet.clone());
        tokio::spawn(async move { note_report(&fleet, device.typing(peer).await) });
    }
}

/// Cuts somebody's connection, `rate` times a second. They come back; those who are on their way are waited for.
pub async fn cut_now_and_then(fleet: Arc<Fleet>, rate: f64, seed: u64, mut phase: watch::Receiver<Phase>) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut returns = JoinSet::new();
    while wait_for_next(&mut phase, rate, &mut random).await {
        while returns.try_join_next().is_some() {}
        if fleet.hub.is_storm.load(Ordering::Relaxed) {
            continue;
        }
        let index = random.random_range(0..fleet.units.len().max(1));
        let Some(unit) = fleet.units.get(index) else { return };
        if matches!(unit.recorder.kind, Kind::Normal | Kind::Slow) && unit.cut().await {
            returns.spawn(fleet.clone().come_back(index));
        }
    }
    while returns.join_next().await.is_some() {}
}

/// Waits for the next event that comes at random; whether the load still goes on.
async fn wait_for_next(phase: &mut watch::Receiver<Phase>, rate: f64, random: &mut StdRng) -> bool {
    let due = Instant::now() + exponential(rate, random).max(Duration::from_micros(1));
    tokio::select! {
        _ = phase.wait_for(|phase| *phase != Phase::Load) => false,
        () = sleep_until(due) => true,
    }
}
