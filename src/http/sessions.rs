//! My own open sessions: show them, close one (close code 4001).

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::Params;
use super::response::{Answer, Reply};
use crate::domain::ids::SessionId;
use crate::protocol::close::CloseReason;
use crate::protocol::payload::SessionBody;

/// GET `/im/session/list`.
pub async fn list(state: web::Data<AppState>, caller: Caller) -> Answer<Vec<SessionBody>> {
    let sessions = state.registry.list_sessions(caller.user).await;
    Ok(Reply(
        sessions
            .into_iter()
            .map(|session| SessionBody {
                id: session.id,
                login_id: session.login,
                device: session.device,
                platform: session.platform,
                address: session.address.map(|address| address.to_string()).unwrap_or_default(),
                connect_time: session.connected_at_ms,
                current_login: session.login == caller.login,
            })
            .collect(),
    ))
}

#[derive(Deserialize)]
pub struct SessionParams {
    id: SessionId,
}

/// DELETE `/im/session/close?id=`; false when there is no such session of mine.
pub async fn close(state: web::Data<AppState>, caller: Caller, Params(params): Params<SessionParams>) -> Answer<bool> {
    Ok(Reply(state.registry.close_session(caller.user, params.id, CloseReason::ClosedByUser).await))
}
