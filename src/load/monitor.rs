//! Looks at the run and at the server once a second.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::measure::Latency;
use super::progress::Progress;
use super::recorder::Hub;
use super::scrape::{Scrape, scrape};
use crate::client::Endpoint;

const INTERVAL: Duration = Duration::from_secs(1);
/// Samples kept: a day. Later ones are dropped.
const MAX_SAMPLES: usize = 86_400;

/// One second of a run.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Since the beginning of the load.
    pub second: f64,
    pub sends_per_second: f64,
    pub deliveries_per_second: f64,
    pub ack: Latency,
    pub push: Latency,
    pub connected: usize,
    pub errors: u64,
    /// Cores that the server used.
    pub server_cores: Option<f64>,
    pub server_memory_bytes: Option<f64>,
}

/// The server's metrics page, and what was seen there.
#[derive(Debug)]
pub struct Monitor {
    endpoint: Endpoint,
    path: String,
    hub: Arc<Hub>,
    progress: Progress,
    samples: Mutex<Vec<Sample>>,
    highest_memory: Mutex<Option<f64>>,
    cpu: Mutex<CpuSum>,
}

/// Processor time over restarts of the server.
#[derive(Debug, Default)]
struct CpuSum {
    last: Option<f64>,
    used: f64,
}

impl CpuSum {
    fn add(&mut self, now: f64) {
        let last = self.last.unwrap_or(now);
        // Answers can overtake each other a little; a restarted server counts from 0.
        let has_restarted = now + 1.0 < last;
        self.used += if has_restarted { now } else { (now - last).max(0.0) };
        self.last = Some(if has_restarted { now } else { now.max(last) });
    }
}

impl Monitor {
    pub fn new(endpoint: Endpoint, path: String, hub: Arc<Hub>, progress: Progress) -> Monitor {
        let (samples, highest_memory, cpu) = Default::default();
        Monitor { endpoint, path, hub, progress, samples, highest_memory, cpu }
    }

    /// The server now.
    pub async fn look(&self) -> Scrape {
        let seen = scrape(&self.endpoint, &self.path).await;
        let mut highest = self.highest_memory.lock().unwrap_or_else(PoisonError::into_inner);
        *highest = seen.memory_bytes.into_iter().chain(*highest).reduce(f64::max);
        if let Some(now) = seen.cpu_seconds {
            self.cpu.lock().unwrap_or_else(PoisonError::into_inner).add(now);
        }
        seen
    }

    /// Processor time of the server since the first look, seconds.
    pub fn cpu_used(&self) -> Option<f64> {
        let cpu = self.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        cpu.last.map(|_| cpu.used)
    }

    /// The server's highest memory since the last question.
    pub fn take_highest_memory(&self) -> Option<f64> {
        self.highest_memory.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes samples until it is dropped.
    pub async fn run(&self) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        let start = Instant::now();
        let (mut last, mut used_before) = (start, self.cpu_used());
        loop {
            ticks.tick().await;
            let (seen, used) = (self.look().await, self.cpu_used());
            let (tally, elapsed) = (self.hub.measure.turn(), last.elapsed().as_secs_f64());
            last = Instant::now();
            let server_cores = used.zip(used_before).map(|(now, before)| (now - before) / elapsed);
            used_before = used;
            let sample = Sample {
                second: start.elapsed().as_secs_f64(),
                sends_per_second: tally.acknowledged as f64 / elapsed,
                deliveries_per_second: tally.deliveries as f64 / elapsed,
                ack: Latency::from(&tally.ack),
                push: Latency::from(&tally.push),
                connected: self.hub.connected.load(Ordering::Relaxed),
                errors: tally.errors.values().sum(),
                server_cores,
                server_memory_bytes: seen.memory_bytes,
            };
            self.progress.show(line(&sample));
            let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            if samples.len() < MAX_SAMPLES {
                samples.push(sample);
            }
        }
    }

    pub fn take_samples(&self) -> Vec<Sample> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn line(sample: &Sample) -> String {
    format!(
        "{:.0} s · {} connected · {:.0} sends/s · {:.0} deliveries/s · ack p99 {:.0} ms · push p99 {:.0} ms · {} errors",
        sample.second,
        sample.connected,
        sample.sends_per_second,
        sample.deliveries_per_second,
        sample.ack.p99_ms,
        sample.push.p99_ms,
        sample.errors
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_adds_up_over_restarts() {
        let mut cpu = CpuSum::default();
        for now in [10.0, 12.0, 11.9, 15.0, 0.5, 1.0] {
            cpu.add(now);
        }
        assert_eq!(cpu.used, 6.0);
    }
}
