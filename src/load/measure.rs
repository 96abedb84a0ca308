//! Counts and latencies while the load runs: one window a second for the charts, and their sum.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Three digits are kept of each latency.
const DIGITS: u8 = 3;

/// What happened within some time. Latencies are microseconds.
#[derive(Clone, Debug)]
pub struct Tally {
    /// From the moment a send was due to its answer.
    pub ack: Histogram<u64>,
    /// From the moment a send was due to the push at a device that reads as fast as it can.
    pub push: Histogram<u64>,
    /// Sends that were due.
    pub due: u64,
    pub acknowledged: u64,
    /// Refused for good.
    pub refused: u64,
    /// Tries that failed and were repeated.
    pub retried: u64,
    /// Sends that were due and not made, because too many were under way.
    pub overload: u64,
    /// Messages that came by push.
    pub deliveries: u64,
    /// Other frames: read positions, receipts, typing, events.
    pub signals: u64,
    /// Sockets opened.
    pub connects: u64,
    pub failed_connects: u64,
    /// Sockets lost without our doing.
    pub disconnects: u64,
    /// Read reports and typing signals that were answered.
    pub reports: u64,
    /// Pushed rows looked up in the tables.
    pub verified: u64,
    /// What failed, by kind.
    pub errors: BTreeMap<String, u64>,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            ack: histogram(),
            push: histogram(),
            due: 0,
            acknowledged: 0,
            refused: 0,
            retried: 0,
            overload: 0,
            deliveries: 0,
            signals: 0,
            connects: 0,
            failed_connects: 0,
            disconnects: 0,
            reports: 0,
            verified: 0,
            errors: BTreeMap::new(),
        }
    }

    fn add(&mut self, other: &Tally) {
        // Both may grow, so adding does not fail.
        let _ = self.ack.add(&other.ack);
        let _ = self.push.add(&other.push);
        self.due += other.due;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.retried += other.retried;
        self.overload += other.overload;
        self.deliveries += other.deliveries;
        self.signals += other.signals;
        self.connects += other.connects;
        self.failed_connects += other.failed_connects;
        self.disconnects += other.disconnects;
        self.reports += other.reports;
        self.verified += other.verified;
        for (kind, count) in &other.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
    }

    /// Counts a failure.
    pub fn error(&mut self, kind: impl Into<String>) {
        *self.errors.entry(kind.into()).or_default() += 1;
    }
}

/// It grows as it needs.
#[expect(clippy::expect_used, reason = "one to five digits are valid, and this is a constant")]
fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("valid digits")
}

/// Saves a latency.
pub fn record(histogram: &mut Histogram<u64>, latency: Duration) {
    // It grows as it needs, up to 292,000 years.
    let _ = histogram.record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX >> 1));
}

/// The measurement of a run.
#[derive(Debug)]
pub struct Measure {
    window: Mutex<Tally>,
    total: Mutex<Tally>,
}

impl Default for Measure {
    fn default() -> Measure {
        Measure { window: Mutex::new(Tally::new()), total: Mutex::new(Tally::new()) }
    }
}

impl Measure {
    /// What is counted now. Held for a moment only.
    pub fn now(&self) -> MutexGuard<'_, Tally> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the window: it is added to the total and returned.
    pub fn turn(&self) -> Tally {
        let window = std::mem::replace(&mut *self.now(), Tally::new());
        self.total.lock().unwrap_or_else(PoisonError::into_inner).add(&window);
        window
    }

    /// Handshakes that failed since the last [`Measure::take`].
    pub fn failed_connects(&self) -> u64 {
        let total = self.total.lock().unwrap_or_else(PoisonError::into_inner).failed_connects;
        total + self.now().failed_connects
    }

    /// Everything up to now, the present window included. Then counts from 0 again.
    pub fn take(&self) -> Tally {
        self.turn();
        std::mem::replace(&mut *self.total.lock().unwrap_or_else(PoisonError::into_inner), Tally::new())
    }
}

/// A distribution in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    pub count: u64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

impl From<&Histogram<u64>> for Latency {
    fn from(histogram: &Histogram<u64>) -> Latency {
        let at = |quantile: f64| milliseconds(histogram.value_at_quantile(quantile));
        Latency {
            count: histogram.len(),
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: if histogram.is_empty() { 0.0 } else { milliseconds(histogram.max()) },
        }
    }
}

fn milliseconds(microseconds: u64) -> f64 {
    Duration::from_micros(microseconds).as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up() {
        let measure = Measure::default();
        for milliseconds in [1, 2, 3] {
            let mut now = measure.now();
            record(&mut now.ack, Duration::from_millis(milliseconds));
            now.acknowledged += 1;
            now.error("no answer");
            drop(now);
            assert_eq!(measure.turn().acknowledged, 1);
        }
        let total = measure.take();
        let latency = Latency::from(&total.ack);
        assert_eq!((total.acknowledged, latency.count, total.errors["no answer"]), (3, 3, 3));
        assert!((1.99..2.01).contains(&latency.p50_ms) && (2.99..3.01).contains(&latency.max_ms), "{latency:?}");
        assert_eq!(measure.take().acknowledged, 0);
    }

    #[test]
    fn nothing_measured_is_all_zero() {
        assert_eq!(Latency::from(&Tally::new().push), Latency::default());
    }
}
