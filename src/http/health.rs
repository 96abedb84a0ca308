//! `/healthz` (the process runs), `/readyz` (it can work), `/metrics` (Prometheus). Real HTTP statuses, no wrapper.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;

use super::AppState;

/// GET `/healthz`.
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "up"}))
}

/// GET `/readyz`: 503 without a database connection and while stopping; lists what weakens the guarantees.
pub async fn readyz(state: web::Data<AppState>) -> HttpResponse {
    let body = json!({
        "ready": state.health.is_ready(),
        "database": state.health.has_writer(),
        "stopping": state.health.is_stopping(),
        "warnings": state.health.warnings(),
    });
    if state.health.is_ready() { HttpResponse::Ok().json(body) } else { HttpResponse::ServiceUnavailable().json(body) }
}

/// GET `/metrics` on the main port: for peers on this machine, and only while no address of its own is configured.
pub async fn metrics_for_loopback(state: web::Data<AppState>, request: HttpRequest) -> HttpResponse {
    let is_local = request.peer_addr().is_some_and(|peer| peer.ip().is_loopback());
    if state.config.metrics_listen.is_some() || !is_local {
        return HttpResponse::NotFound().finish();
    }
    metrics(state).await
}

/// GET `/metrics` on the address that is configured for it.
pub async fn metrics(state: web::Data<AppState>) -> HttpResponse {
    metrics::gauge!("nudge_commands_waiting").set(state.writer.waiting() as f64);
    // What is not noted is what it was before.
    let _ = web::block(crate::telemetry::note_process).await;
    metrics::gauge!("nudge_registry_backlog").set(state.registry.backlog() as f64);
    HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(crate::telemetry::render_metrics())
}
