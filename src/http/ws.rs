//! The WebSocket handshake, GET `/infra/ws?token=` (`contract/01` section 9.1). Refusals are HTTP statuses: 401
//! without a valid token, 429 for too many sessions, 503 while stopping or without a database.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use super::AppState;
use super::caller::{client_address, identify_anew, presented_token};
use crate::actors::{OpenError, SessionIdentity, open_session};
use crate::error::AppError;
use crate::protocol::close::CloseReason;

/// Longest name of a device or platform; longer ones are cut.
const MAX_NAME_CHARS: usize = 64;

#[derive(Default, Deserialize)]
struct Params {
    device: Option<String>,
    platform: Option<String>,
    /// `0`: the client's cursors are moved by pulls only, so nothing has to be replayed to it.
    resume: Option<String>,
}

pub async fn open(state: web::Data<AppState>, request: HttpRequest, payload: web::Payload) -> HttpResponse {
    if state.health.is_stopping() {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let Some(token) = presented_token(&request) else { return HttpResponse::Unauthorized().finish() };
    let identity = match identify_anew(&state, &token).await {
        Ok(identity) => identity,
        Err(error) => return refuse(&error),
    };
    let params = web::Query::<Params>::from_query(request.query_string()).map(web::Query::into_inner);
    let params = params.unwrap_or_default();
    let device = params.device.map(shorten);
    let resume = if params.resume.as_deref() == Some("0") {
        None
    } else {
        match state.replays.open(identity.user, identity.login, device.clone().unwrap_or_default()).await {
            Ok(resume) => Some(resume),
            Err(error) => return refuse(&error),
        }
    };
    let opened = open_session(
        &request,
        payload,
        &state.registry,
        &state.config.websocket,
        SessionIdentity {
            user: identity.user,
            login: identity.login,
            expires_at_ms: identity.expires_time,
            device,
            platform: params.platform.map(shorten),
            address: Some(client_address(&request, &state.config.trusted_proxies)),
        },
        resume,
    )
    .await;
    let session = match opened {
        Ok(session) => session,
        Err(OpenError::Handshake(error)) => return error.error_response(),
        Err(OpenError::TooManySessions) => return HttpResponse::TooManyRequests().finish(),
        Err(OpenError::Replay(error)) => return refuse(&error),
        Err(OpenError::Stopping) => return HttpResponse::ServiceUnavailable().finish(),
    };
    // The token may have been revoked between the first look and the attach; whoever revoked it has closed the
    // sessions that were attached by then.
    if identify_anew(&state, &token).await.is_err() {
        session.handle.close(CloseReason::SignedOut);
    }
    session.response
}

fn refuse(error: &AppError) -> HttpResponse {
    match error {
        AppError::Unauthenticated => HttpResponse::Unauthorized().finish(),
        AppError::TooManyRequests => HttpResponse::TooManyRequests().finish(),
        _ => HttpResponse::ServiceUnavailable().finish(),
    }
}

fn shorten(name: String) -> String {
    name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect()
}
