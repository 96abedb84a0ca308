//! Group messages: send, pull, history, recall, receipts (`contract/02` section 4).

mod read;
mod receipts;
mod send;

pub use read::{list_history, load_visible, pull, pull_page, read_user_ids, sees_any_between};
pub use receipts::load_counter;
pub use send::{GroupDraft, SentRun, send_all};

use std::collections::HashMap;
use std::sync::Arc;

use diesel::QueryResult;
use serde::Serialize;

use super::private_messages::server_message_id;
use super::{Tx, notification};
use crate::db::group_messages::{self as table, GroupMessageRow};
use crate::db::groups::{self, GroupChange};
use crate::db::sequence::Counter;
use crate::db::{Db, group_members, group_spans};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::group_message::{GroupMessage, RecallFacts, Receipt, check_recall};
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::message::{
    RECALLED_CONTENT, RECEIPT_DONE, RECEIPT_NONE, RECEIPT_PENDING, STATUS_NORMAL, STATUS_RECALLED,
};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::frame::{Frame, FrameClass, Stream};
use crate::protocol::group_payload::GroupMessageBody;
use crate::protocol::payload::RecallContent;

/// Turns rows into what `viewer` sees: recalled content is gone, "read" is computed from the positions of the present
/// members, and how many have read is told to the sender only.
async fn present(db: &mut Db, viewer: UserId, rows: Vec<GroupMessageRow>) -> QueryResult<Vec<GroupMessage>> {
    let mut receipts: HashMap<MessageId, Receipt> = HashMap::new();
    let mut groups: Vec<GroupId> =
        rows.iter().filter(|row| row.receipt_status == RECEIPT_PENDING).map(|row| row.group_id).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let counter = load_counter(db, group).await?;
        for row in rows.iter().filter(|row| row.group_id == group && row.receipt_status == RECEIPT_PENDING) {
            receipts.insert(row.id, counter.receipt(row.id, row.sender_id));
        }
    }
    Ok(rows.into_iter().map(|row| present_row(row, viewer, &receipts)).collect())
}

/// As [`present`] for a stranger, with the content of recalled messages: for operators.
pub(super) async fn present_whole(db: &mut Db, rows: Vec<GroupMessageRow>) -> QueryResult<Vec<GroupMessage>> {
    let contents: Vec<String> = rows.iter().map(|row| row.content.clone()).collect();
    let messages = present(db, UserId(0), rows).await?.into_iter();
    Ok(messages.zip(contents).map(|(message, content)| GroupMessage { content, ..message }).collect())
}

fn present_row(row: GroupMessageRow, viewer: UserId, receipts: &HashMap<MessageId, Receipt>) -> GroupMessage {
    let receipt = receipts.get(&row.id).copied();
    let is_done = receipt.is_some_and(Receipt::is_done);
    let mentions = row.mentions();
    let directed_to = row.directed_to();
    GroupMessage {
        id: row.id,
        client_message_id: row.client_message_id,
        sender_id: row.sender_id,
        group_id: row.group_id,
        content_type: row.type_,
        content: if row.status == STATUS_RECALLED { RECALLED_CONTENT.to_owned() } else { row.content },
        status: row.status,
        receipt_status: if is_done { RECEIPT_DONE } else { row.receipt_status },
        read_count: receipt.filter(|_| row.sender_id == viewer).map(|receipt| receipt.read),
        send_time: row.send_time,
        at_user_ids: mentions,
        receiver_user_ids: directed_to.map(Arc::from),
    }
}

/// Tells members of a stored message, on all their devices. A push carries `readCount` 0 (`contract/01` section 11).
fn notify_stored(tx: &mut Tx<'_>, message: GroupMessage, receivers: Arc<[UserId]>) -> QueryResult<()> {
    if let Some(frame) = stored_frame(message)? {
        tx.notify_frame(receivers, frame);
    }
    Ok(())
}

/// The push of a stored message; none for a type that this server does not know.
pub(super) fn stored_frame(message: GroupMessage) -> QueryResult<Option<Frame>> {
    let class = FrameClass::Stored { stream: Stream::Group, id: message.id.0 };
    let Some(content_type) = ContentType::from_number(message.content_type) else { return Ok(None) };
    let body = GroupMessageBody::from(message);
    let body = GroupMessageBody { read_count: body.read_count.or(Some(0)), ..body };
    notification(class, ConversationType::Group, content_type, &body).map(Some)
}

/// Stores and announces a message that the server makes for all members. Needs the `group` counter.
pub(super) async fn store_server_message(
    tx: &mut Tx<'_>,
    sender: UserId,
    group: GroupId,
    content_type: ContentType,
    content: &impl Serialize,
    receivers: Vec<UserId>,
) -> Result<GroupMessage, AppError> {
    let range = tx.take_ids(Counter::Group, 1)?;
    let row = GroupMessageRow {
        id: range.first,
        client_message_id: server_message_id(),
        sender_id: sender,
        group_id: group,
        type_: content_type.number(),
        content: to_json(content)?,
        // Nobody can repeat a server-made message, so there is nothing to compare.
        content_hash: vec![0; 16],
        status: STATUS_NORMAL,
        receipt_status: RECEIPT_NONE,
        send_time: range.send_time,
        at_user_ids: None,
        receiver_user_ids: None,
    };
    table::insert_all_if_new(tx.db, std::slice::from_ref(&row)).await?;
    let message = present_row(row, sender, &HashMap::new());
    notify_stored(tx, message.clone(), receivers.into())?;
    Ok(message)
}

/// Announces something that is not stored in the form of a group message: `id` is null.
pub(super) fn announce(
    tx: &mut Tx<'_>,
    sender: UserId,
    group: GroupId,
    content_type: ContentType,
    content: &impl Serialize,
    receivers: Vec<UserId>,
) -> Result<(), AppError> {
    let body = GroupMessageBody {
        id: None,
        client_message_id: server_message_id(),
        sender_id: sender,
        group_id: group,
        r#type: content_type.number(),
        content: to_json(content)?,
        status: STATUS_NORMAL,
        send_time: tx.now,
        at_user_ids: None,
        receiver_user_ids: None,
        receipt_status: RECEIPT_NONE,
        read_count: Some(0),
    };
    Ok(tx.notify(receivers, FrameClass::State, ConversationType::Group, content_type, &body)?)
}

/// Recalls a message: one's own, or as owner or admin anybody's (`contract/02` G6). The RECALL row is for the whole
/// group: who does not know the original ignores it. Needs `clock` and `group`.
pub async fn recall_group_message(tx: &mut Tx<'_>, user: UserId, id: MessageId) -> Result<GroupMessage, AppError> {
    let row = table::get_by_id(tx.db, id).await?.ok_or(Refusal::MessageNotFound)?;
    let spans = group_spans::list_in_group(tx.db, user, row.group_id).await?;
    let member = group_members::get_state(tx.db, row.group_id, user).await?;
    let facts = RecallFacts {
        is_user_message: ContentType::from_number(row.type_).is_some_and(ContentType::is_normal),
        is_visible: row.is_visible_to(user, &spans),
        is_active_member: member.is_some(),
        is_manager: member.is_some_and(|member| member.role.is_manager()),
        is_own: row.sender_id == user,
        is_recalled: row.status == STATUS_RECALLED,
        age: tx.now.saturating_sub(row.send_time),
    };
    check_recall(facts, tx.config.message.recall_timeout_minutes)?;
    if !table::mark_recalled(tx.db, id).await? {
        return Err(Refusal::AlreadyRecalled.into());
    }
    touch_if_pinned(tx, row.group_id, id).await?;
    let receivers = group_members::list_active_ids(tx.db, row.group_id).await?;
    let content = RecallContent { message_id: id };
    store_server_message(tx, user, row.group_id, ContentType::Recall, &content, receivers).await
}

/// A recalled pin looks different in group lists, so the group has changed.
async fn touch_if_pinned(tx: &mut Tx<'_>, group: GroupId, message: MessageId) -> QueryResult<()> {
    let is_pinned = groups::get(tx.db, group).await?.is_some_and(|group| group.pinned().contains(&message));
    if is_pinned {
        let change = GroupChange { update_time: Some(tx.stamp()?), ..GroupChange::default() };
        groups::update(tx.db, group, &change).await?;
    }
    Ok(())
}

/// Active members who may see that `sender` is typing: all but himself.
pub async fn typing_receivers(db: &mut Db, sender: UserId, group: GroupId) -> Result<Vec<UserId>, AppError> {
    group_members::get_state(db, group, sender).await?.ok_or(Refusal::NotGroupMember)?;
    let mut members = group_members::list_active_ids(db, group).await?;
    members.retain(|member| *member != sender);
    Ok(members)
}

fn to_json(value: &impl Serialize) -> Result<String, AppError> {
    serde_json::to_string(value).map_err(|error| AppError::Internal(error.to_string()))
}
