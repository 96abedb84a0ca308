//! One run from beginning to end: people, devices, load, rest, and the comparison.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::stream::{self, StreamExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::activity;
use super::fleet::{Fleet, Storm};
use super::ledger::{Columns, Ledger};
use super::measure::{Latency, Measure};
use super::monitor::Monitor;
use super::progress::Progress;
use super::provision::{Society, provision};
use super::recorder::{Hub, Kind};
use super::report::{Connections, Cpu, LedgerReport, Load, Memory, Report};
use super::scenario::Plan;
use super::scrape::Scrape;
use super::sender::{Job, Phase, Sender};
use crate::client::Endpoint;
use crate::process;

/// Descriptors for everything that is no connection.
const SPARE_DESCRIPTORS: u64 = 100;
/// Reactions that wait; further ones are left out.
const MAX_REACTIONS: usize = 4_096;
/// How long sends are repeated after the load.
const SETTLE_PATIENCE: Duration = Duration::from_secs(60);
/// How long devices may take to be back after the load: a pull that hears nothing is given up after 30 s.
const RETURN_PATIENCE: Duration = Duration::from_secs(120);
/// No push for this long: no more will come.
const QUIET: Duration = Duration::from_millis(500);
const QUIET_PATIENCE: Duration = Duration::from_secs(20);
/// Devices that pull at one time at the end.
const PARALLEL_PULLS: usize = 16;
/// When the server's memory is looked at after connecting and after a storm.
const REST: Duration = Duration::from_secs(1);

/// Where the server is and how to get in.
#[derive(Clone, Debug)]
pub struct Access {
    /// Of the server itself.
    pub url: String,
    /// Where devices go: the server, or a relay before it.
    pub device_url: String,
    pub metrics_url: String,
    pub api_key: Option<String>,
}

/// A run whose devices are connected.
pub struct Run {
    plan: Plan,
    fleet: Arc<Fleet>,
    society: Arc<Society>,
    monitor: Arc<Monitor>,
    progress: Progress,
    phase: watch::Sender<Phase>,
    under_way: Arc<AtomicUsize>,
    helpers: Vec<JoinHandle<()>>,
    people: JoinSet<()>,
    storms: Option<JoinHandle<Vec<Storm>>>,
    report: Report,
}

impl Drop for Run {
    fn drop(&mut self) {
        for helper in &self.helpers {
            helper.abort();
        }
    }
}

impl Run {
    /// Makes people and connects their devices.
    ///
    /// # Errors
    /// The server is not there, refuses, or the machine has no room for so many connections.
    pub async fn prepare(plan: Plan, access: &Access, progress: Progress) -> anyhow::Result<Run> {
        check_descriptors(&plan)?;
        let permits = Arc::new(Semaphore::new(plan.connections));
        let direct = Endpoint::from_source(&access.url, None, permits.clone())?;
        direct.get_text("/healthz").await.with_context(|| format!("no server at {}", access.url))?;
        let (metrics, path) = metrics_endpoint(access)?;

        let mut random = StdRng::seed_from_u64(plan.seed);
        let run = rand::random::<u64>();
        let start = Instant::now();
        progress.phase(format!("making {} users with {} devices each", plan.users, plan.devices));
        let society = provision(&direct, &plan, access.api_key.as_deref(), run, &mut random).await?;
        let mut report = Report { provision_seconds: start.elapsed().as_secs_f64(), ..Report::new(&plan, &access.url) };

        let (hub, reactions, boots) = hub(&plan, run, &society);
        let endpoints = endpoints(&plan, access, &permits)?;
        let fleet = Arc::new(Fleet::new(&plan, &society, hub.clone(), &endpoints, &mut random));
        let monitor = Arc::new(Monitor::new(metrics, path, hub.clone(), progress.clone()));
        let mut helpers = vec![tokio::spawn(activity::react(fleet.clone(), reactions))];
        helpers.push(tokio::spawn(activity::boot_all(fleet.clone(), boots)));

        let before = monitor.look().await;
        let start = Instant::now();
        progress.phase(format!("connecting {} devices", fleet.online().count()));
        fleet.connect_all().await?;
        let seconds = start.elapsed().as_secs_f64();
        sleep(REST).await;
        let connected = monitor.look().await;
        let devices = fleet.online().count();
        report.connections =
            Connections { devices, seconds, per_second: devices as f64 / seconds, ..Connections::default() };
        report.memory = memory(&before, &connected, devices);
        let (phase, _) = watch::channel(Phase::Load);
        let society = Arc::new(society);
        let (under_way, people) = (Arc::default(), JoinSet::new());
        Ok(Run { plan, fleet, society, monitor, progress, phase, under_way, helpers, people, storms: None, report })
    }

    /// The load, for its time or until `stop`.
    pub async fn load(&mut self, stop: impl Future<Output = ()>) {
        let hub = self.fleet.hub.clone();
        let preparation = hub.measure.take();
        self.report.connections.failed = preparation.failed_connects;
        self.progress.phase(format!("{} for {:?}", self.plan.scenario, self.plan.duration));
        self.monitor.look().await;
        self.monitor.take_highest_memory();
        let (server, client, start) = (self.monitor.cpu_used(), process::cpu_time(), Instant::now());
        let monitor = self.monitor.clone();
        let samples = tokio::spawn(async move { monitor.run().await });
        self.start_people();
        let (plan, fleet, monitor) = (self.plan.clone(), self.fleet.clone(), self.monitor.clone());
        let phase = self.phase.subscribe();
        let storms = async move { storm_now_and_then(&plan, fleet, &monitor, phase).await };
        self.storms = Some(tokio::spawn(storms));
        tokio::select! {
            () = sleep(self.plan.duration) => {}
            () = stop => self.report.is_interrupted = true,
        }
        samples.abort();
        let seconds = start.elapsed().as_secs_f64();
        let client = process::cpu_time().saturating_sub(client);
        self.monitor.look().await;
        let server = self.monitor.cpu_used().zip(server).map(|(after, before)| after - before);
        self.phase.send_replace(Phase::Settle);
        let tally = hub.measure.take();
        self.report.memory.highest = self.monitor.take_highest_memory();
        self.report.memory.program = process::resident_memory().map(|bytes| bytes as f64);
        self.report.samples = self.monitor.take_samples();
        self.report.load = Load::new(&tally, seconds);
        self.report.send_to_ack = Latency::from(&tally.ack);
        self.report.send_to_push = Latency::from(&tally.push);
        self.report.cpu = Cpu::new(server, client, &tally, seconds);
        self.report.add_errors(&tally);
    }

    /// The rest after the load: sends are answered, devices are back, the last pushes arrive.
    pub async fn settle(&mut self) {
        self.progress.phase("waiting for answers and pushes");
        if let Some(storms) = self.storms.take() {
            match storms.await {
                Ok(storms) => {
                    let peaks = storms.iter().filter_map(|storm| storm.memory_peak);
                    self.report.memory.highest = peaks.chain(self.report.memory.highest).reduce(f64::max);
                    self.report.storms = storms;
                }
                Err(error) => self.report.notes.push(format!("storms: {error}")),
            }
        }
        let give_up = Instant::now() + SETTLE_PATIENCE;
        while self.under_way.load(Ordering::Relaxed) > 0 && Instant::now() < give_up {
            sleep(Duration::from_millis(10)).await;
        }
        self.phase.send_replace(Phase::Over);
        while self.people.join_next().await.is_some() {}
        let missing = self.fleet.until_synced(RETURN_PATIENCE).await;
        if missing > 0 {
            self.report.notes.push(format!("{missing} devices did not come back"));
        }
        self.until_quiet().await;
        let rest = self.fleet.hub.measure.take();
        self.report.add_errors(&rest);
        self.report.load.add_late(&rest);
    }

    /// Adds what was done to network and server.
    pub fn note_faults(&mut self, faults: BTreeMap<String, u64>) {
        self.report.faults.extend(faults);
    }

    fn start_people(&mut self) {
        let people = &mut self.people;
        let mut seeds = StdRng::seed_from_u64(self.plan.seed ^ 0x5eed);
        let mut seed = || seeds.random();
        let sender = Sender {
            fleet: self.fleet.clone(),
            society: self.society.clone(),
            phase: self.phase.subscribe(),
            under_way: self.under_way.clone(),
        };
        for _ in 0..self.plan.window {
            people.spawn(sender.clone().closed_loop(seed()));
        }
        for (job, rate) in [(Job::Private, self.plan.rate), (Job::Group, self.plan.group_rate)] {
            if rate > 0.0 {
                people.spawn(sender.clone().open_loop(job, rate, seed()));
            }
        }
        let (fleet, society, phase) = (self.fleet.clone(), self.society.clone(), self.phase.subscribe());
        if self.plan.typing > 0.0 {
            let typing = activity::type_now_and_then(fleet.clone(), society, self.plan.typing, seed(), phase.clone());
            people.spawn(typing);
        }
        if self.plan.cuts > 0.0 {
            people.spawn(activity::cut_now_and_then(fleet, self.plan.cuts, seed(), phase));
        }
    }

    /// Waits until pushes have come to their end.
    async fn until_quiet(&self) {
        let give_up = Instant::now() + QUIET_PATIENCE;
        let mut seen = u64::MAX;
        loop {
            let now = { self.fleet.hub.measure.now().deliveries };
            if now == seen || Instant::now() >= give_up {
                return;
            }
            seen = now;
            sleep(QUIET).await;
        }
    }

    /// The last pull of every device, and the comparison.
    ///
    /// # Errors
    /// A device that cannot pull.
    pub async fn conclude(mut self) -> anyhow::Result<Report> {
        self.progress.phase(format!("{} devices pull for the last time", self.fleet.units.len()));
        let server = self.monitor.look().await;
        self.report.memory.after = server.memory_bytes;
        self.fleet.disconnect_all().await;
        let expected = self.fleet.hub.ledger.expected();
        let groups: Vec<_> = (0..self.society.people.len()).map(|person| self.society.groups_of(person)).collect();
        let (fleet, expected, groups) = (&self.fleet, &expected, &groups);
        let pulls = fleet.units.iter().map(async |unit| {
            unit.pull_to_the_end().await?;
            let record = unit.recorder.take_record();
            let of_groups = expected.group(groups.get(unit.person).map(Vec::as_slice).unwrap_or_default());
            let private = record.private.conclude(expected.private(unit.recorder.user));
            anyhow::Ok((unit, [private, record.group.conclude(&of_groups)]))
        });
        let mut verdicts = stream::iter(pulls).buffer_unordered(PARALLEL_PULLS);
        let (mut columns, mut online) = (Columns::default(), Columns::default());
        while let Some(verdict) = verdicts.next().await {
            let (unit, verdicts) = verdict?;
            for verdict in verdicts {
                fleet.hub.ledger.add_verdict(&mut columns, &unit.recorder.name, &verdict);
                if matches!(unit.recorder.kind, Kind::Normal | Kind::Slow) {
                    online.expected += verdict.expected;
                    online.healed += verdict.healed;
                }
            }
        }
        drop(verdicts);
        let columns = fleet.hub.ledger.complete(columns);
        self.report.ledger = LedgerReport::new(columns, &online, fleet.hub.ledger.examples());
        self.progress.finish();
        Ok(std::mem::take(&mut self.report))
    }
}

fn check_descriptors(plan: &Plan) -> anyhow::Result<()> {
    let devices = (plan.users * plan.devices) as f64 * plan.online;
    // A relay has two ends more.
    let each = if plan.faulty_network { 3 } else { 1 };
    let needed = (devices as u64 + plan.connections as u64) * each + SPARE_DESCRIPTORS;
    if let Some(limit) = process::raise_descriptor_limit() {
        ensure!(needed <= limit, "{needed} file descriptors are needed and {limit} allowed (ulimit -n)");
    }
    Ok(())
}

/// The page of metrics as an origin and a path.
fn metrics_endpoint(access: &Access) -> anyhow::Result<(Endpoint, String)> {
    let url = url::Url::parse(&access.metrics_url).context("the address of the metrics is no URL")?;
    let endpoint = Endpoint::new(&url.origin().ascii_serialization())?;
    Ok((endpoint, url.path().to_owned()))
}

fn endpoints(plan: &Plan, access: &Access, permits: &Arc<Semaphore>) -> anyhow::Result<Vec<Endpoint>> {
    let url = url::Url::parse(&access.device_url).context("the server's address is no URL")?;
    let is_local = matches!(url.host(), Some(url::Host::Ipv4(address)) if address.is_loopback());
    let sources = match plan.sources {
        sources if is_local && sources > 1 => source_addresses(sources).into_iter().map(Some).collect(),
        _ => vec![None],
    };
    let endpoint = |source| Endpoint::from_source(&access.device_url, source, permits.clone());
    Ok(sources.into_iter().map(endpoint).collect::<Result<Vec<_>, _>>()?)
}

/// Local addresses for connections, where the server is on this machine.
fn source_addresses(count: u8) -> Vec<IpAddr> {
    (0..count).map(|number| IpAddr::from([127, 0, 0, 2_u8.saturating_add(number)])).collect()
}

type Reactions = mpsc::Receiver<super::recorder::Reaction>;

fn hub(plan: &Plan, run: u64, society: &Society) -> (Arc<Hub>, Reactions, Reactions) {
    let (reactions, to_do) = mpsc::channel(MAX_REACTIONS);
    let (boots, to_boot) = mpsc::channel(plan.users * plan.devices);
    let hub = Hub {
        ledger: Ledger::new(run, society.members()),
        measure: Measure::default(),
        reactions,
        boots,
        connected: AtomicUsize::new(0),
        is_storm: AtomicBool::new(false),
        reads: plan.reads,
        verify: plan.verify,
        web_client: plan.web_client,
    };
    (Arc::new(hub), to_do, to_boot)
}

fn memory(before: &Scrape, connected: &Scrape, devices: usize) -> Memory {
    let grown = connected.memory_bytes.zip(before.memory_bytes).map(|(now, before)| now - before);
    Memory {
        before: before.memory_bytes,
        connected: connected.memory_bytes,
        bytes_per_connection: grown.map(|grown| grown / devices.max(1) as f64),
        ..Memory::default()
    }
}

/// Storms at even distances over the load. One that has begun is waited for.
async fn storm_now_and_then(
    plan: &Plan,
    fleet: Arc<Fleet>,
    monitor: &Monitor,
    mut phase: watch::Receiver<Phase>,
) -> Vec<Storm> {
    let mut storms = Vec::new();
    let start = Instant::now();
    for number in 1..=plan.storms {
        let at = start + plan.duration.mul_f64(number as f64 / (plan.storms + 1) as f64);
        tokio::select! {
            _ = phase.wait_for(|phase| *phase != Phase::Load) => break,
            () = tokio::time::sleep_until(at.into()) => {}
        }
        let before = monitor.look().await;
        monitor.take_highest_memory();
        let mut storm = fleet.storm().await;
        sleep(REST).await;
        let after = monitor.look().await;
        storm.memory_before = before.memory_bytes;
        storm.memory_peak = monitor.take_highest_memory();
        storm.memory_after = after.memory_bytes;
        storm.descriptors_before = before.descriptors;
        storm.descriptors_after = after.descriptors;
        storms.push(storm);
    }
    storms
}
