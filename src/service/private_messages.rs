//! Private messages: send, pull, history, recall, typing (`contract/02` section 3).

mod read;
mod send;

pub use read::{list_history, max_read_message_id, pull, pull_page};
pub use send::{PrivateDraft, SentRun, send_all};

use std::collections::HashMap;

use diesel::QueryResult;
use rand::Rng;

use super::conversation_reads::PRIVATE;
use super::{Tx, notification};
use crate::db::conversation_reads::{self, PositionKey};
use crate::db::private_messages::{self as table, PrivateMessageRow};
use crate::db::sequence::Counter;
use crate::db::{Db, friends};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::friendship::{check_may_write, friend_state};
use crate::domain::ids::{MessageId, UserId};
use crate::domain::message::{
    RECALLED_CONTENT, RECEIPT_DONE, RECEIPT_NONE, RECEIPT_PENDING, STATUS_NORMAL, STATUS_RECALLED,
};
use crate::domain::private_message::{PrivateMessage, check_recall};
use crate::error::AppError;
use crate::protocol::frame::{Frame, FrameClass, Stream};
use crate::protocol::payload::{PrivateMessageBody, RecallContent};

/// How far each user has read towards each other one, as far as some rows need it.
type Positions = HashMap<PositionKey, MessageId>;

/// Turns rows into what readers see: recalled content is gone, "read" is computed from positions.
async fn present(db: &mut Db, rows: Vec<PrivateMessageRow>) -> QueryResult<Vec<PrivateMessage>> {
    let pending = rows.iter().filter(|row| row.receipt_status == RECEIPT_PENDING);
    let (mut readers, mut senders): (Vec<UserId>, Vec<i64>) =
        pending.map(|row| (row.receiver_id, row.sender_id.0)).unzip();
    readers.sort_unstable();
    readers.dedup();
    senders.sort_unstable();
    senders.dedup();
    let positions = conversation_reads::list_positions(db, PRIVATE, readers, senders).await?;
    Ok(rows.into_iter().map(|row| present_row(row, &positions)).collect())
}

/// As [`present`], with the content of recalled messages: for operators.
pub(super) async fn present_whole(db: &mut Db, rows: Vec<PrivateMessageRow>) -> QueryResult<Vec<PrivateMessage>> {
    let contents: Vec<String> = rows.iter().map(|row| row.content.clone()).collect();
    let messages = present(db, rows).await?.into_iter();
    Ok(messages.zip(contents).map(|(message, content)| PrivateMessage { content, ..message }).collect())
}

fn present_row(row: PrivateMessageRow, positions: &Positions) -> PrivateMessage {
    let key = PositionKey { user: row.receiver_id, conversation_type: PRIVATE, target: row.sender_id.0 };
    let is_read = positions.get(&key).is_some_and(|position| *position >= row.id);
    let is_done = row.receipt_status == RECEIPT_PENDING && is_read;
    PrivateMessage {
        id: row.id,
        client_message_id: row.client_message_id,
        sender_id: row.sender_id,
        receiver_id: row.receiver_id,
        content_type: row.type_,
        content: if row.status == STATUS_RECALLED { RECALLED_CONTENT.to_owned() } else { row.content },
        status: row.status,
        receipt_status: if is_done { RECEIPT_DONE } else { row.receipt_status },
        send_time: row.send_time,
    }
}

/// A client message id for rows that the server makes: 32 hex digits.
pub(super) fn server_message_id() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}

/// Tells both parties of a stored message, on all their devices.
fn notify_stored(tx: &mut Tx<'_>, message: PrivateMessage) -> QueryResult<()> {
    let receivers = vec![message.receiver_id, message.sender_id];
    if let Some(frame) = stored_frame(message)? {
        tx.notify_frame(receivers, frame);
    }
    Ok(())
}

/// The push of a stored message; none for a type that this server does not know.
pub(super) fn stored_frame(message: PrivateMessage) -> QueryResult<Option<Frame>> {
    let class = FrameClass::Stored { stream: Stream::Private, id: message.id.0 };
    let Some(content_type) = ContentType::from_number(message.content_type) else { return Ok(None) };
    notification(class, ConversationType::Private, content_type, &PrivateMessageBody::from(message)).map(Some)
}

/// Stores and announces one row that the server makes. Needs the `private` counter.
pub(super) async fn store_server_message(
    tx: &mut Tx<'_>,
    sender: UserId,
    receiver: UserId,
    content_type: ContentType,
    content: String,
) -> QueryResult<PrivateMessage> {
    let range = tx.take_ids(Counter::Private, 1)?;
    let row = PrivateMessageRow {
        id: range.first,
        client_message_id: server_message_id(),
        sender_id: sender,
        receiver_id: receiver,
        type_: content_type.number(),
        content,
        // Nobody can repeat a server-made message, so there is nothing to compare.
        content_hash: vec![0; 16],
        status: STATUS_NORMAL,
        receipt_status: RECEIPT_NONE,
        send_time: range.send_time,
    };
    table::insert_all_if_new(tx.db, std::slice::from_ref(&row)).await?;
    let message = present_row(row, &Positions::new());
    notify_stored(tx, message.clone())?;
    Ok(message)
}

/// Recalls a message of mine: it is marked, and a RECALL row tells everybody (`contract/02` P6). Answers with the
/// RECALL row. Needs the `clock` and `private` counters.
pub async fn recall_private_message(tx: &mut Tx<'_>, user: UserId, id: MessageId) -> Result<PrivateMessage, AppError> {
    let row = table::get_by_id(tx.db, id).await?;
    let message = row.map(|row| present_row(row, &Positions::new()));
    let content_type = message.as_ref().and_then(|message| ContentType::from_number(message.content_type));
    let is_user_message = content_type.is_some_and(ContentType::is_normal);
    let limit = tx.config.message.recall_timeout_minutes;
    check_recall(message.as_ref(), is_user_message, user, tx.now, limit)?;
    let Some(message) = message else { return Err(AppError::Internal("recall of nothing passed its check".into())) };
    if !table::mark_recalled(tx.db, id).await? {
        return Err(crate::domain::refusal::Refusal::AlreadyRecalled.into());
    }
    let content = serde_json::to_string(&RecallContent { message_id: id }).map_err(internal)?;
    Ok(store_server_message(tx, user, message.receiver_id, ContentType::Recall, content).await?)
}

/// Whether `sender` may let `receiver` see that he is typing: the rule of sending.
pub async fn check_may_type(db: &mut Db, sender: UserId, receiver: UserId) -> Result<(), AppError> {
    let mine = friends::get_side(db, sender, receiver).await?;
    let theirs = friends::get_side(db, receiver, sender).await?;
    Ok(check_may_write(friend_state(mine, theirs))?)
}

fn internal(error: impl std::fmt::Display) -> AppError {
    AppError::Internal(error.to_string())
}
