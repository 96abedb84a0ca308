//! What a run has found, and its three forms: a table, JSON, and a page with charts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::fleet::Storm;
use super::ledger::Columns;
use super::measure::{Latency, Tally};
use super::monitor::Sample;
use super::scenario::Plan;

mod html;
mod table;

pub use html::page;
pub use table::table;

/// Everything about one run.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub plan: Option<Plan>,
    pub url: String,
    /// Whether it was ended before its time.
    pub is_interrupted: bool,
    pub provision_seconds: f64,
    pub connections: Connections,
    pub memory: Memory,
    pub load: Load,
    pub send_to_ack: Latency,
    pub send_to_push: Latency,
    pub cpu: Cpu,
    pub storms: Vec<Storm>,
    pub ledger: LedgerReport,
    /// What failed on the way, by kind. Most of it was repeated.
    pub errors: BTreeMap<String, u64>,
    /// What was done to network and server, and how often.
    pub faults: BTreeMap<String, u64>,
    pub notes: Vec<String>,
    pub samples: Vec<Sample>,
}

/// How the devices connected in the beginning: handshake and first pull, a bounded number at a time.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Connections {
    pub devices: usize,
    pub seconds: f64,
    pub per_second: f64,
    pub failed: u64,
}

/// The server's resident memory, bytes.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    pub before: Option<f64>,
    pub connected: Option<f64>,
    pub bytes_per_connection: Option<f64>,
    /// While the load ran.
    pub highest: Option<f64>,
    /// When it was over, devices still connected.
    pub after: Option<f64>,
    /// Of this program, then.
    pub program: Option<f64>,
}

/// What went through while the load ran.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    pub seconds: f64,
    pub due: u64,
    pub acknowledged: u64,
    pub sends_per_second: f64,
    /// Answered after the load's end.
    pub late: u64,
    pub refused: u64,
    pub retried: u64,
    /// Not sent, because too many were under way.
    pub overload: u64,
    pub deliveries: u64,
    pub deliveries_per_second: f64,
    /// Frames that are no messages of the run: receipts, read positions, typing.
    pub signals: u64,
    pub reports: u64,
    pub verified: u64,
    pub connects: u64,
    pub failed_connects: u64,
    pub disconnects: u64,
}

impl Load {
    pub fn new(tally: &Tally, seconds: f64) -> Load {
        Load {
            seconds,
            due: tally.due,
            acknowledged: tally.acknowledged,
            sends_per_second: tally.acknowledged as f64 / seconds,
            late: 0,
            refused: tally.refused,
            retried: tally.retried,
            overload: tally.overload,
            deliveries: tally.deliveries,
            deliveries_per_second: tally.deliveries as f64 / seconds,
            signals: tally.signals,
            reports: tally.reports,
            verified: tally.verified,
            connects: tally.connects,
            failed_connects: tally.failed_connects,
            disconnects: tally.disconnects,
        }
    }

    /// What came after the load's end.
    pub fn add_late(&mut self, tally: &Tally) {
        self.late = tally.acknowledged;
        self.refused += tally.refused;
        self.retried += tally.retried;
        self.verified += tally.verified;
        self.failed_connects += tally.failed_connects;
    }
}

/// Processor time while the load ran.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    pub server_cores: Option<f64>,
    pub client_cores: f64,
    pub server_us_per_send: Option<f64>,
    pub client_us_per_send: f64,
    /// Of every frame that a device got.
    pub server_us_per_delivery: Option<f64>,
    pub client_us_per_delivery: f64,
}

impl Cpu {
    /// Of the server (seconds) and of this program.
    pub fn new(server: Option<f64>, client: Duration, tally: &Tally, seconds: f64) -> Cpu {
        let client = client.as_secs_f64();
        let each = |used: f64, count: u64| used * 1e6 / (count.max(1)) as f64;
        let frames = tally.deliveries + tally.signals;
        Cpu {
            server_cores: server.map(|used| used / seconds),
            client_cores: client / seconds,
            server_us_per_send: server.map(|used| each(used, tally.acknowledged)),
            client_us_per_send: each(client, tally.acknowledged),
            server_us_per_delivery: server.map(|used| each(used, frames)),
            client_us_per_delivery: each(client, frames),
        }
    }
}

/// The verdict.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerReport {
    pub is_clean: bool,
    #[serde(flatten)]
    pub columns: Columns,
    /// Of the deliveries due at devices that are mostly connected and read: the share that did not come by push.
    pub missed_share: f64,
    pub examples: Vec<String>,
}

impl LedgerReport {
    pub fn new(columns: Columns, online: &Columns, examples: Vec<String>) -> LedgerReport {
        let missed_share = online.healed as f64 / online.expected.max(1) as f64;
        LedgerReport { is_clean: columns.is_clean(), columns, missed_share, examples }
    }
}

impl Report {
    pub fn new(plan: &Plan, url: &str) -> Report {
        Report { plan: Some(plan.clone()), url: url.to_owned(), ..Report::default() }
    }

    pub fn add_errors(&mut self, tally: &Tally) {
        for (kind, count) in &tally.errors {
            *self.errors.entry(kind.clone()).or_default() += count;
        }
    }

    /// The report as JSON.
    ///
    /// # Errors
    /// None that is known; numbers that JSON does not have become null.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// Bytes as people read them.
fn mebibytes(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{:.1} MiB", bytes / (1 << 20) as f64))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::options::Options;
    use super::*;

    fn report() -> Report {
        let plan = Plan::new(&Options::try_parse_from(["nudge-load", "--seed", "7"]).unwrap()).unwrap();
        let sample = |second: f64| Sample { second, sends_per_second: second * 10.0, ..Sample::default() };
        Report {
            samples: vec![sample(1.0), sample(2.0), sample(3.0)],
            memory: Memory { bytes_per_connection: Some(16_384.0), ..Memory::default() },
            ledger: LedgerReport {
                columns: Columns { lost: 3, expected: 9, ..Columns::default() },
                examples: vec!["message 5: <lost>".to_owned()],
                ..LedgerReport::default()
            },
            storms: vec![Storm { devices: 40, complete: true, ..Storm::default() }],
            errors: BTreeMap::from([("no answer".to_owned(), 2)]),
            ..Report::new(&plan, "http://127.0.0.1:1")
        }
    }

    #[test]
    fn the_table_says_what_matters() {
        let table = table(&report());
        for expected in ["seed 7", "lost", "16.0 KiB", "NOT CLEAN", "message 5", "no answer"] {
            assert!(table.contains(expected), "{expected:?} in\n{table}");
        }
    }

    #[test]
    fn json_has_every_column() {
        let json: serde_json::Value = serde_json::from_str(&report().json().unwrap()).unwrap();
        assert_eq!((json["ledger"]["lost"].as_u64(), json["plan"]["seed"].as_u64()), (Some(3), Some(7)));
        assert_eq!(json["samples"].as_array().unwrap().len(), 3);
        assert_eq!(json["ledger"]["isClean"], false);
    }

    #[test]
    fn the_page_stands_alone() {
        let page = page(&report());
        assert!(page.contains("<svg") && page.contains("message 5: &lt;lost&gt;"), "{page}");
        assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("<script"));
    }

    #[test]
    fn a_report_without_samples_has_a_page() {
        assert!(page(&Report::default()).contains("</html>"));
    }
}
