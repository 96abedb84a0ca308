//! Read positions (`contract/02` R1).

use actix_web::web;

use super::AppState;
use super::caller::Caller;
use super::input::{Params, StatePullParams};
use super::response::{Answer, Reply};
use crate::protocol::payload::ConversationReadBody;
use crate::service::conversation_reads::{self as service, ConversationRead};

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
    let cursor = params.cursor();
    let page = state.readers.run(async move |db| service::pull(db, caller.user, cursor, params.limit).await).await?;
    Ok(Reply(page.into_iter().map(ConversationReadBody::from).collect()))
}
