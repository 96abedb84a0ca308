//! Reading private messages: pull, history, the peer's read position. Everything is a bounded page.

use diesel::QueryResult;

use super::{present, table};
use crate::config::MessageConfig;
use crate::db::Db;
use crate::db::conversation_reads::{self, PositionKey};
use crate::domain::content::ContentType;
use crate::domain::ids::{MAX_ID, MessageId, UserId};
use crate::domain::message::STATUS_RECALLED;
use crate::domain::private_message::PrivateMessage;
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::service::conversation_reads::PRIVATE;
use crate::service::pull_window::{PullWindow, Pulled, check_pull_size};

/// The next page of what I sent and received, ascending (`contract/02` P2): full, or the end. Nothing above the
/// counter value read first is returned, since the statements of one read may see different states.
pub async fn pull(
    db: &mut Db,
    user: UserId,
    after: MessageId,
    size: i64,
    now: i64,
    rules: &MessageConfig,
    window: &PullWindow,
) -> Result<Vec<PrivateMessage>, AppError> {
    Ok(pull_page(db, user, after, size, now, rules, window).await?.rows)
}

/// The same, with the counter value up to which a page that is not full is complete.
pub async fn pull_page(
    db: &mut Db,
    user: UserId,
    after: MessageId,
    size: i64,
    now: i64,
    rules: &MessageConfig,
    window: &PullWindow,
) -> Result<Pulled<PrivateMessage>, AppError> {
    check_pull_size(size, rules)?;
    let view = window.look(db, now, rules).await?;
    if after >= view.newest {
        return Ok(Pulled { rows: Vec::new(), newest: view.newest });
    }
    let rows = table::list_after(db, user, after.max(view.floor), view.newest, size).await?;
    metrics::histogram!("nudge_pull_rows", "stream" => "private").record(rows.len() as f64);
    Ok(Pulled { rows: present(db, rows).await?, newest: view.newest })
}

/// History of a conversation, newest first (`contract/02` P3). A recalled message appears as a recall of itself, and
/// the rows that only announce recalls are left out (section 11 no. 2 there).
pub async fn list_history(
    db: &mut Db,
    user: UserId,
    peer: UserId,
    before: Option<MessageId>,
    limit: i64,
) -> QueryResult<Vec<PrivateMessage>> {
    let rows = table::list_before(db, user, peer, before.unwrap_or(MessageId(MAX_ID)), limit).await?;
    let mut messages = present(db, rows).await?;
    for message in messages.iter_mut().filter(|message| message.status == STATUS_RECALLED) {
        message.content_type = ContentType::Recall.number();
    }
    Ok(messages)
}

/// How far the peer has read what I sent (`contract/02` P5).
pub async fn max_read_message_id(
    db: &mut Db,
    user: UserId,
    peer: UserId,
    rules: &MessageConfig,
) -> Result<Option<MessageId>, AppError> {
    if !rules.private_read_enabled {
        return Err(Refusal::PrivateReadDisabled.into());
    }
    let key = PositionKey { user: peer, conversation_type: PRIVATE, target: user.0 };
    Ok(conversation_reads::get(db, key).await?)
}
