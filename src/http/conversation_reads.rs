//! Read positions (`contract/02` R1).

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::{Params, optional_integer, state_cursor};
use super::response::{Answer, Reply};
use crate::domain::ids::deserialize_integer;
use crate::protocol::payload::ConversationReadBody;
use crate::service::conversation_reads::{self as service, ConversationRead};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatePullParams {
    #[serde(default, deserialize_with = "optional_integer")]
    last_update_time: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    last_id: Option<i64>,
    #[serde(deserialize_with = "deserialize_integer")]
    limit: i64,
}

impl From<ConversationRead> for ConversationReadBody {
    fn from(row: ConversationRead) -> Self {
        ConversationReadBody {
            id: row.id,
            conversation_type: row.conversation_type,
            target_id: row.target_id,
            message_id: row.message_id,
            update_time: row.update_time,
        }
    }
}

/// GET `/im/conversation-read/pull`.
pub async fn pull(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<StatePullParams>,
) -> Answer<Vec<ConversationReadBody>> {
    let cursor = state_cursor(params.last_update_time, params.last_id);
    let page = state.readers.run(async move |db| service::pull(db, caller.user, cursor, params.limit).await).await?;
    Ok(Reply(page.into_iter().map(ConversationReadBody::from).collect()))
}
