//! Logs (`tracing`) and metrics (Prometheus). Never a token, a query string or the text of a message.

use std::io::IsTerminal;
use std::sync::OnceLock;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing::Span;
use tracing::field::Empty;
use tracing_actix_web::{DefaultRootSpanBuilder, RequestId, RootSpanBuilder};
use tracing_subscriber::EnvFilter;

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
    let _ =
        if std::io::stderr().is_terminal() { logs.try_init() } else { logs.json().with_span_list(false).try_init() };
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
        let id = id.map(|id| id.to_string()).unwrap_or_default();
        tracing::info_span!(
            "request",
            request_id = %id,
            http.method = %request.method(),
            http.path = %request.path(),
            user.id = Empty,
            http.status_code = Empty,
            exception.message = Empty,
            exception.details = Empty,
            otel.status_code = Empty,
        )
    }

    fn on_request_end<B: MessageBody>(span: Span, outcome: &Result<ServiceResponse<B>, actix_web::Error>) {
        DefaultRootSpanBuilder::on_request_end(span, outcome);
    }
}
