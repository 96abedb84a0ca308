//! Logs (`tracing`) and metrics (Prometheus). Never a token, a query string or the text of a message.

use std::fmt;
use std::io::IsTerminal;
use std::sync::OnceLock;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::Span;
use tracing::field::Empty;
use tracing::span::Record;
use tracing_actix_web::{RequestId, RootSpanBuilder};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormattedFields;
use tracing_subscriber::fmt::format::{FormatFields, JsonFields, Writer};

use crate::process;

/// Bounds of the histograms of durations, seconds.
const SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Bounds of the histograms of counts.
const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Starts logging to standard error: text on a terminal, JSON otherwise. `RUST_LOG` filters; the default is `info`.
pub fn init_logs() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start in one process keeps the first one's.
    let _ = if std::io::stderr().is_terminal() {
        logs.try_init()
    } else {
        logs.json().with_span_list(false).fmt_fields(AppendedJson(JsonFields::new())).try_init()
    };
}

/// The fields of a span as JSON. The library's own formatter parses its text anew for every field that is recorded later,
/// and every request records its user.
struct AppendedJson(JsonFields);

impl<'writer> FormatFields<'writer> for AppendedJson {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        self.0.format_fields(writer, fields)
    }

    /// Of a field that is recorded twice the last value counts, as whoever reads the text takes it.
    fn add_fields(&self, current: &'writer mut FormattedFields<Self>, fields: &Record<'_>) -> fmt::Result {
        let mut added = String::new();
        self.0.format_fields(Writer::new(&mut added), fields)?;
        match (current.fields.strip_suffix('}'), added.strip_prefix('{')) {
            (Some(known), Some(more)) if known.len() > 1 && more.len() > 1 => {
                current.fields.truncate(known.len());
                current.fields.push(',');
                current.fields.push_str(more);
            }
            _ if added.len() > 2 => current.fields = added,
            _ => {}
        }
        Ok(())
    }
}

/// Starts collecting metrics, once for the process.
pub fn init_metrics() {
    METRICS.get_or_init(|| {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), SECONDS)
            .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_size".into()), COUNTS))
            .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_rows".into()), COUNTS));
        match builder.and_then(PrometheusBuilder::install_recorder) {
            Ok(handle) => Some(handle),
            Err(error) => {
                tracing::error!(cause = %error, "no metrics");
                None
            }
        }
    });
}

/// Notes what the process uses, by the names that Prometheus clients share. It reads `/proc`: not for async threads.
pub fn note_process() {
    metrics::gauge!("process_cpu_seconds_total").set(process::cpu_time().as_secs_f64());
    if let Some(bytes) = process::resident_memory() {
        metrics::gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
    if let Some(count) = process::open_descriptors() {
        metrics::gauge!("process_open_fds").set(count as f64);
    }
    if let Some(limit) = process::descriptor_limit() {
        metrics::gauge!("process_max_fds").set(limit as f64);
    }
}

/// All metrics as Prometheus reads them.
pub fn render_metrics() -> String {
    METRICS.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}

/// Frees what the histograms have collected; to be called every few seconds.
pub fn tidy_metrics() {
    if let Some(handle) = METRICS.get().and_then(Option::as_ref) {
        handle.run_upkeep();
    }
}

/// The span around a request: id, method and path. The library's own span has the query string, and the socket's
/// token is in it.
pub struct RequestSpan;

impl RootSpanBuilder for RequestSpan {
    fn on_request_start(request: &ServiceRequest) -> Span {
        use actix_web::HttpMessage;
        let id = request.extensions().get::<RequestId>().copied();
        tracing::info_span!(
            "request",
            request_id = id.map(tracing::field::display),
            http.method = %request.method(),
            http.path = %request.path(),
            user.id = Empty,
        )
    }

    /// No line is written once the outcome is known: what failed has been logged where it was translated.
    fn on_request_end<B: MessageBody>(_: Span, _: &Result<ServiceResponse<B>, actix_web::Error>) {}
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn fields_that_are_recorded_later_are_in_the_lines() {
        let lines = Lines::default();
        let writer = lines.clone();
        let logs = tracing_subscriber::fmt().json().with_span_list(false).with_writer(move || writer.clone());
        tracing::subscriber::with_default(logs.fmt_fields(AppendedJson(JsonFields::new())).finish(), || {
            for span in
                [tracing::info_span!("with", a = 1, b = Empty, c = Empty), tracing::info_span!("without", b = Empty)]
            {
                span.record("b", "two \" }");
                span.record("b", "three");
                span.in_scope(|| tracing::info!("hello"));
            }
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let spans: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["span"].clone()).collect();
        let expected = [
            serde_json::json!({"name": "with", "a": 1, "b": "three"}),
            serde_json::json!({"name": "without", "b": "three"}),
        ];
        assert_eq!(spans, expected);
    }
}
