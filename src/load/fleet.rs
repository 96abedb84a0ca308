//! All devices: connecting, cutting, coming back, and the last pull.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::stream::{self, StreamExt};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde::Serialize;
use tokio::sync::{Mutex, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::provision::Society;
use super::recorder::{Hub, Kind, Presence, Recorder};
use super::scenario::Plan;
use crate::client::{Backoff, ClientError, Connection, Device, DeviceConfig, Endpoint};

/// Devices that connect at one time when the run begins.
const PARALLEL_CONNECTS: usize = 128;
/// How long one device may take to connect and pull when the run begins.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);
/// How long a storm may take.
const STORM_PATIENCE: Duration = Duration::from_secs(180);
/// What a slow device takes for a frame.
const SLOW_READ: Duration = Duration::from_millis(20);
/// Where the network fails, devices notice silence after five seconds.
const FAST_PING: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);
/// Pauses before the last pull is tried again.
const LAST_PULL: Backoff =
    Backoff { base: Duration::from_millis(100), max: Duration::from_secs(2), jitter: Duration::from_millis(100) };
const LAST_PULL_TRIES: u32 = 20;

/// One device and its connection.
#[derive(Debug)]
pub struct Unit {
    /// Index of its person.
    pub person: usize,
    pub device: Device,
    pub recorder: Arc<Recorder>,
    connection: Mutex<Option<Held>>,
}

/// Who holds a connection.
#[derive(Debug)]
enum Held {
    /// Nobody reads its events; the recorder hears of them.
    Free(Connection),
    /// A task that reads events slowly or not at all; it cuts the connection when it is told.
    Kept { stop: oneshot::Sender<()>, task: JoinHandle<()> },
}

/// All devices of a run.
#[derive(Debug)]
pub struct Fleet {
    pub units: Vec<Unit>,
    pub hub: Arc<Hub>,
    /// Devices of each user.
    devices: usize,
}

/// How a storm went. Seconds are since the cut.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Storm {
    pub devices: usize,
    pub connected_seconds: f64,
    pub synced_seconds: f64,
    /// Whether all came back in time.
    pub complete: bool,
    pub failed_connects: u64,
    /// Of the server, in bytes: before, highest while it lasted, and a few seconds later.
    pub memory_before: Option<f64>,
    pub memory_peak: Option<f64>,
    pub memory_after: Option<f64>,
    pub descriptors_before: Option<f64>,
    pub descriptors_after: Option<f64>,
}

impl Fleet {
    /// The devices of a society, none of them connected. Endpoints are given out in turn.
    pub fn new(plan: &Plan, society: &Society, hub: Arc<Hub>, endpoints: &[Endpoint], random: &mut StdRng) -> Fleet {
        let normal = DeviceConfig {
            device: "load".to_owned(),
            pull_size: 200,
            connect_timeout: Duration::from_secs(30),
            store_capacity: 0,
            event_capacity: 1,
            pull_on_connect: !plan.web_client,
            ping_interval: if plan.faulty_network { FAST_PING } else { DeviceConfig::default().ping_interval },
            ..DeviceConfig::default()
        };
        let config = Arc::new(normal);
        let mut kinds = kinds(plan, random).into_iter();
        let logins = society.people.iter().enumerate().flat_map(|(person, somebody)| {
            let logins = somebody.logins.iter().enumerate();
            logins.map(move |(ordinal, tokens)| (person, somebody.id, ordinal, tokens.clone()))
        });
        let unit = |((index, (person, user, ordinal, tokens)), endpoint): ((usize, _), &Endpoint)| {
            let kind = kinds.next().unwrap_or(Kind::Normal);
            let recorder = Arc::new(Recorder::new(hub.clone(), index, user, ordinal, kind));
            let device = Device::observed(endpoint.clone(), tokens, config.clone(), recorder.clone());
            Unit { person, device, recorder, connection: Mutex::new(None) }
        };
        let units = logins.enumerate().zip(endpoints.iter().cycle()).map(unit).collect();
        Fleet { units, hub: hub.clone(), devices: plan.devices }
    }

    /// A random device of a person.
    pub fn device_of(&self, person: usize, random: &mut StdRng) -> Option<&Unit> {
        self.units.get(person * self.devices + random.random_range(0..self.devices))
    }

    /// Devices that should be connected.
    pub fn online(&self) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(|unit| unit.recorder.kind != Kind::Offline)
    }

    /// Connects all that should be, a number at a time, and waits until they have pulled.
    ///
    /// # Errors
    /// A device that cannot connect.
    pub async fn connect_all(&self) -> anyhow::Result<()> {
        let connects = self.online().map(async |unit| {
            unit.connect().await;
            timeout(CONNECT_PATIENCE, unit.recorder.until(Presence::Synced)).await.is_ok()
        });
        let results: Vec<bool> = stream::iter(connects).buffer_unordered(PARALLEL_CONNECTS).collect().await;
        let failed = results.iter().filter(|connected| !**connected).count();
        let errors = self.hub.measure.now().errors.clone();
        ensure!(failed == 0, "{failed} of {} devices cannot connect: {errors:?}", results.len());
        Ok(())
    }

    /// Cuts all devices but frozen ones, and waits until they are back.
    pub async fn storm(self: &Arc<Self>) -> Storm {
        let here: Vec<usize> = (self.units.iter().enumerate())
            .filter(|(_, unit)| matches!(unit.recorder.kind, Kind::Normal | Kind::Slow))
            .map(|(index, _)| index)
            .collect();
        let failed_before = self.hub.measure.failed_connects();
        self.hub.is_storm.store(true, Ordering::Relaxed);
        let start = Instant::now();
        for unit in here.iter().filter_map(|index| self.units.get(*index)) {
            unit.cut().await;
        }
        let mut returns = JoinSet::new();
        for index in here.iter().copied() {
            returns.spawn(self.clone().come_back(index));
        }
        let mut storm = Storm { devices: here.len(), ..Storm::default() };
        let goal = |synced: bool| {
            let present = here.iter().filter_map(|index| self.units.get(*index));
            let is_there = |presence| presence == Presence::Synced || (!synced && presence == Presence::Connected);
            present.map(|unit| unit.recorder.presence()).all(is_there)
        };
        let complete = timeout(STORM_PATIENCE, async {
            while !goal(false) {
                sleep(POLL).await;
            }
            storm.connected_seconds = start.elapsed().as_secs_f64();
            while !goal(true) {
                sleep(POLL).await;
            }
        });
        storm.complete = complete.await.is_ok();
        self.hub.is_storm.store(false, Ordering::Relaxed);
        storm.synced_seconds = start.elapsed().as_secs_f64();
        storm.failed_connects = self.hub.measure.failed_connects().saturating_sub(failed_before);
        storm
    }

    /// Connects a device again after the wait of a client that has lost its connection.
    pub async fn come_back(self: Arc<Self>, index: usize) {
        sleep(Backoff::RECONNECT.random_delay(0)).await;
        if let Some(unit) = self.units.get(index) {
            unit.connect().await;
        }
    }

    /// Waits until every device that reads is connected and has pulled, at most this long. How many are missing then.
    pub async fn until_synced(&self, patience: Duration) -> usize {
        let reads = |unit: &&Unit| matches!(unit.recorder.kind, Kind::Normal | Kind::Slow);
        let is_missing = |unit: &&Unit| unit.recorder.presence() != Presence::Synced;
        let count = || self.units.iter().filter(reads).filter(is_missing).count();
        let give_up = Instant::now() + patience;
        loop {
            let missing = count();
            if missing == 0 || Instant::now() > give_up {
                return missing;
            }
            sleep(POLL).await;
        }
    }

    /// Disconnects all devices.
    pub async fn disconnect_all(&self) {
        for unit in &self.units {
            unit.cut().await;
        }
    }
}

/// How each device behaves: shares of all, in random order.
fn kinds(plan: &Plan, random: &mut StdRng) -> Vec<Kind> {
    let count = plan.users * plan.devices;
    let part = |share: f64| (share * count as f64).round() as usize;
    let mut kinds = vec![Kind::Offline; part(1.0 - plan.online)];
    kinds.extend(vec![Kind::Frozen; part(plan.frozen)]);
    kinds.extend(vec![Kind::Slow; part(plan.slow)]);
    kinds.resize(count, Kind::Normal);
    kinds.shuffle(random);
    kinds
}

impl Unit {
    /// Connects, unless it is connected.
    pub async fn connect(&self) {
        let mut held = self.connection.lock().await;
        if held.is_some() {
            return;
        }
        let mut connection = self.device.connect();
        *held = Some(match self.recorder.kind {
            Kind::Slow | Kind::Frozen => keep(connection, self.recorder.clone()),
            Kind::Normal | Kind::Offline => {
                connection.ignore_events();
                Held::Free(connection)
            }
        });
    }

    /// Cuts the connection; whether there was one.
    pub async fn cut(&self) -> bool {
        let mut held = self.connection.lock().await;
        let was_there = held.is_some();
        match held.take() {
            Some(Held::Free(connection)) => connection.cut().await,
            Some(Held::Kept { stop, task }) => {
                let _ = stop.send(());
                let _ = task.await;
            }
            None => {}
        }
        self.recorder.set_presence(Presence::Away);
        was_there
    }

    /// Pulls to the end, again and again if it must be.
    ///
    /// # Errors
    /// The last failure.
    pub async fn pull_to_the_end(&self) -> anyhow::Result<()> {
        let mut attempt = 0;
        loop {
            let error: ClientError = match self.device.sync_observed().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !error.is_temporary() || attempt >= LAST_PULL_TRIES {
                return Err(error).with_context(|| format!("{} cannot pull", self.recorder.name));
            }
            sleep(LAST_PULL.random_delay(attempt)).await;
            attempt += 1;
        }
    }
}

/// Starts a task that has a connection and reads its events badly until it is stopped.
fn keep(mut connection: Connection, recorder: Arc<Recorder>) -> Held {
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        tokio::select! {
            _ = stopped => {}
            () = read_badly(&mut connection, &recorder) => {}
        }
        connection.cut().await;
    });
    Held::Kept { stop, task }
}

async fn read_badly(connection: &mut Connection, recorder: &Recorder) {
    if recorder.kind == Kind::Slow {
        while connection.next().await.is_some() {
            sleep(SLOW_READ).await;
        }
        return;
    }
    tokio::select! {
        () = recorder.until(Presence::Synced) => {}
        _ = connection.next_matching(|_| None::<()>) => {}
    }
    // One more event fills the channel, and then the socket is not read.
    std::future::pending().await
}
