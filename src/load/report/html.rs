//! The report as one page: the table, and charts over time as SVG. It asks the network for nothing.

use super::{Report, table};
use crate::load::monitor::Sample;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
/// Room for the scale.
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 8.0;
const COLOURS: [&str; 2] = ["#1f6feb", "#d1570c"];
const STYLE: &str = "body{font:15px sans-serif;max-width:940px;margin:2em auto;padding:0 1em;color:#222}\
    pre{background:#f5f5f5;padding:1em;overflow-x:auto;font-size:12px}h2{font-size:16px;margin:1.5em 0 .3em}\
    svg{width:100%;height:auto;background:#fcfcfc;border:1px solid #ddd}text{font:11px sans-serif;fill:#555}";

/// A line of a chart.
struct Line {
    name: &'static str,
    value: fn(&Sample) -> Option<f64>,
}

/// The page.
pub fn page(report: &Report) -> String {
    let charts = [
        chart(report, "Sends a second", &[Line { name: "acknowledged", value: |s| Some(s.sends_per_second) }]),
        chart(report, "Deliveries a second", &[Line { name: "pushed", value: |s| Some(s.deliveries_per_second) }]),
        chart(
            report,
            "Send → ack, ms",
            &[
                Line { name: "p50", value: |s| (s.ack.count > 0).then_some(s.ack.p50_ms) },
                Line { name: "p99", value: |s| (s.ack.count > 0).then_some(s.ack.p99_ms) },
            ],
        ),
        chart(
            report,
            "Send → push, ms",
            &[
                Line { name: "p50", value: |s| (s.push.count > 0).then_some(s.push.p50_ms) },
                Line { name: "p99", value: |s| (s.push.count > 0).then_some(s.push.p99_ms) },
            ],
        ),
        chart(report, "Connected devices", &[Line { name: "devices", value: |s| Some(s.connected as f64) }]),
        chart(report, "Server: cores used", &[Line { name: "cores", value: |s| s.server_cores }]),
        chart(
            report,
            "Server: memory, MiB",
            &[Line { name: "resident", value: |s| s.server_memory_bytes.map(|bytes| bytes / (1 << 20) as f64) }],
        ),
    ];
    let name = report.plan.as_ref().map_or("", |plan| plan.scenario.as_str());
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Nudge load: {name}</title>\
         <style>{STYLE}</style></head><body><h1>Nudge load: {name}</h1>\n<pre>{}</pre>\n{}\n</body></html>\n",
        escape(&table(report)),
        charts.concat()
    )
}

fn chart(report: &Report, title: &str, lines: &[Line]) -> String {
    let seconds = report.samples.last().map_or(1.0, |sample| sample.second.max(1.0));
    let values = lines.iter().flat_map(|line| report.samples.iter().filter_map(line.value));
    let highest = nice(values.fold(0.0, f64::max));
    let mut svg = format!("<h2>{}</h2><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\">", escape(title));
    for quarter in 0..=4 {
        let y = TOP + (HEIGHT - TOP - BOTTOM) * f64::from(quarter) / 4.0;
        let label = highest * f64::from(4 - quarter) / 4.0;
        svg.push_str(&format!(
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e3e3e3\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 6.0,
            y + 4.0
        ));
    }
    for (index, (line, colour)) in lines.iter().zip(COLOURS).enumerate() {
        let point = |sample: &Sample| {
            let x = LEFT + (WIDTH - LEFT) * sample.second / seconds;
            let y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (line.value)(sample)? / highest;
            Some(format!("{x:.1},{y:.1}"))
        };
        let points: Vec<String> = report.samples.iter().filter_map(point).collect();
        svg.push_str(&format!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>\
             <text x=\"{}\" y=\"{TOP}\" dy=\"12\" style=\"fill:{colour}\">{}</text>",
            points.join(" "),
            LEFT + 10.0 + 60.0 * index as f64,
            line.name
        ));
    }
    svg.push_str(&format!(
        "<text x=\"{LEFT}\" y=\"{}\">0 s</text><text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{seconds:.0} s</text></svg>",
        HEIGHT - 6.0,
        HEIGHT - 6.0
    ));
    svg
}

/// The next number of the form 1, 2, 4 or 8 times a power of ten, so that quarters are short.
fn nice(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 8.0, 10.0].into_iter().map(|step| step * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(value)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
