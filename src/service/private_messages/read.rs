//! Reading private messages: pull, history, the peer's read position. Everything is a bounded page.

use std::sync::Mutex;

use diesel::QueryResult;

use super::{present, table};
use crate::config::MessageConfig;
use crate::db::Db;
use crate::db::conversation_reads::{self, PositionKey};
use crate::db::sequence::{Counter, horizon};
use crate::domain::content::ContentType;
use crate::domain::ids::{MAX_ID, MessageId, UserId};
use crate::domain::private_message::{PrivateMessage, STATUS_RECALLED};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::service::conversation_reads::PRIVATE;

/// How long a computed start of the window is used, milliseconds.
const WINDOW_LIFE_MS: i64 = 3_600_000;

/// The pull window in ids: `send_time` does not fall with rising id, so "the last N days" begins at one id.
#[derive(Debug, Default)]
pub struct PullWindow {
    known: Mutex<Option<(i64, MessageId)>>,
}

impl PullWindow {
    /// The highest id that lies before the window.
    async fn floor(&self, db: &mut Db, now: i64, days: i64, newest: MessageId) -> QueryResult<MessageId> {
        let known = self.known.lock().map_or(None, |known| *known);
        // A clock that was ahead and came back must not leave a window that begins too late.
        if let Some((time, floor)) = known
            && (0..WINDOW_LIFE_MS).contains(&(now - time))
        {
            return Ok(floor);
        }
        let oldest = now.saturating_sub(days.saturating_mul(86_400_000));
        let floor = last_id_before(db, oldest, newest).await?;
        if let Ok(mut known) = self.known.lock() {
            *known = Some((now, floor));
        }
        Ok(floor)
    }
}

/// Binary search on the primary key: the highest id whose message was sent at `time` or earlier.
async fn last_id_before(db: &mut Db, time: i64, newest: MessageId) -> QueryResult<MessageId> {
    let (mut low, mut high) = (0, newest.0);
    while low < high {
        let middle = low + (high - low + 1) / 2;
        match table::first_from(db, MessageId(middle)).await? {
            Some((id, send_time)) if send_time <= time => low = id.0.min(high),
            _ => high = middle - 1,
        }
    }
    Ok(MessageId(low))
}

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
    if size < 1 {
        return Err(AppError::Malformed("size must be at least 1".into()));
    }
    if size > rules.max_pull_size {
        return Err(Refusal::PullSizeExceeded(rules.max_pull_size).into());
    }
    let newest = MessageId(horizon(db, Counter::Private).await?);
    if after >= newest {
        return Ok(Vec::new());
    }
    let floor = window.floor(db, now, rules.private_pull_max_days, newest).await?;
    let rows = table::list_after(db, user, after.max(floor), newest, size).await?;
    metrics::histogram!("nudge_pull_rows", "stream" => "private").record(rows.len() as f64);
    Ok(present(db, rows).await?)
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
