//! The report for a terminal.

use super::{Report, mebibytes};
use crate::load::measure::Latency;

/// The report as text.
pub fn table(report: &Report) -> String {
    let mut lines = Vec::new();
    head(report, &mut lines);
    load(report, &mut lines);
    lines.push(String::new());
    lines.push(format!(
        "{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "ms", "count", "p50", "p90", "p99", "p99.9", "max"
    ));
    lines.push(latency("send→ack", &report.send_to_ack));
    lines.push(latency("send→push", &report.send_to_push));
    lines.push(String::new());
    machine(report, &mut lines);
    storms(report, &mut lines);
    ledger(report, &mut lines);
    lines.join("\n")
}

fn head(report: &Report, lines: &mut Vec<String>) {
    if let Some(plan) = &report.plan {
        lines.push(format!("{} against {}, seed {}", plan.scenario, report.url, plan.seed));
        lines.push(format!(
            "  {} users × {} devices, {} groups of {}; made in {:.1} s",
            plan.users, plan.devices, plan.groups, plan.group_size, report.provision_seconds
        ));
    }
    let connections = &report.connections;
    lines.push(format!(
        "  {} connected and pulled in {:.1} s: {:.0} a second, {} handshakes failed",
        connections.devices, connections.seconds, connections.per_second, connections.failed
    ));
    if report.is_interrupted {
        lines.push("  ended before its time".to_owned());
    }
    lines.push(String::new());
}

fn load(report: &Report, lines: &mut Vec<String>) {
    let load = &report.load;
    lines.push(format!(
        "sends         {:.0}/s   {} due, {} acknowledged in {:.1} s, {} later; {} retries, {} refused, {} not sent",
        load.sends_per_second,
        load.due,
        load.acknowledged,
        load.seconds,
        load.late,
        load.retried,
        load.refused,
        load.overload
    ));
    lines.push(format!(
        "deliveries    {:.0}/s   {} messages and {} signals pushed, {:.3} % of pushes missed",
        load.deliveries_per_second,
        load.deliveries,
        load.signals,
        report.ledger.missed_share * 100.0
    ));
    lines.push(format!(
        "sockets       {} opened, {} handshakes failed, {} lost; {} reports, {} pushes looked up",
        load.connects, load.failed_connects, load.disconnects, load.reports, load.verified
    ));
}

fn latency(name: &str, latency: &Latency) -> String {
    let Latency { count, p50_ms, p90_ms, p99_ms, p999_ms, max_ms } = latency;
    format!("{name:<14}{count:>10}{p50_ms:>10.2}{p90_ms:>10.2}{p99_ms:>10.2}{p999_ms:>10.2}{max_ms:>10.2}")
}

fn machine(report: &Report, lines: &mut Vec<String>) {
    let (cpu, memory) = (&report.cpu, &report.memory);
    let optional = |number: Option<f64>| number.map_or_else(|| "?".to_owned(), |number| format!("{number:.1}"));
    let cores = |number: Option<f64>| number.map_or_else(|| "?".to_owned(), |number| format!("{number:.2}"));
    lines.push(format!(
        "server        {} cores: {} µs a send, {} µs a delivery",
        cores(cpu.server_cores),
        optional(cpu.server_us_per_send),
        optional(cpu.server_us_per_delivery)
    ));
    lines.push(format!(
        "this program  {} cores: {} µs a send, {} µs a delivery; memory {}",
        cores(Some(cpu.client_cores)),
        optional(Some(cpu.client_us_per_send)),
        optional(Some(cpu.client_us_per_delivery)),
        mebibytes(memory.program)
    ));
    lines.push(format!(
        "memory        {} before, {} connected ({} KiB a connection), {} highest, {} after",
        mebibytes(memory.before),
        mebibytes(memory.connected),
        optional(memory.bytes_per_connection.map(|bytes| bytes / 1_024.0)),
        mebibytes(memory.highest),
        mebibytes(memory.after)
    ));
}

fn storms(report: &Report, lines: &mut Vec<String>) {
    for (number, storm) in report.storms.iter().enumerate() {
        let descriptors = |count: Option<f64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        lines.push(format!(
            "storm {}       {} devices: connected after {:.2} s, pulled after {:.2} s{}; {} handshakes failed",
            number + 1,
            storm.devices,
            storm.connected_seconds,
            storm.synced_seconds,
            if storm.complete { "" } else { " (not all)" },
            storm.failed_connects
        ));
        lines.push(format!(
            "              memory {} → {} → {}, descriptors {} → {}",
            mebibytes(storm.memory_before),
            mebibytes(storm.memory_peak),
            mebibytes(storm.memory_after),
            descriptors(storm.descriptors_before),
            descriptors(storm.descriptors_after)
        ));
    }
}

fn ledger(report: &Report, lines: &mut Vec<String>) {
    let (ledger, columns) = (&report.ledger, &report.ledger.columns);
    lines.push(String::new());
    for (kind, count) in &report.faults {
        lines.push(format!("{count:>8} × {kind} (by this program)"));
    }
    for (kind, count) in &report.errors {
        lines.push(format!("{count:>8} × {kind}"));
    }
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    let verdict = if ledger.is_clean { "CLEAN" } else { "NOT CLEAN" };
    lines.push(format!("ledger        {verdict}   {} deliveries due", columns.expected));
    for (name, count) in [
        ("lost", columns.lost),
        ("duplicated", columns.duplicated),
        ("out of order", columns.out_of_order),
        ("wrongly delivered", columns.wrongly_delivered),
        ("pushed before commit", columns.pushed_before_commit),
        ("without an answer", columns.unresolved),
        ("missed by push, healed by pull", columns.healed),
    ] {
        lines.push(format!("  {name:<32}{count:>10}"));
    }
    lines.extend(ledger.examples.iter().map(|example| format!("  {example}")));
}
