//! Pinned messages. A pin is its admin's disclosure to all members, also to those who joined later (`design.md` I7).

use super::open_as_manager;
use crate::db::group_members;
use crate::db::group_messages::GroupMessageRow;
use crate::db::groups::{self as table, GroupChange};
use crate::domain::content::ContentType;
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::message::STATUS_RECALLED;
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::group_payload::{PinContent, PinnedMessage, UnpinContent};
use crate::service::Tx;
use crate::service::group_messages::{load_visible, store_server_message};

/// Pins a message (`contract/04` G12, mended as in `design.md` section 10): one that its admin sees, of a type that
/// users send, not recalled, and for the whole group.
pub async fn pin_message(tx: &mut Tx<'_>, user: UserId, id: GroupId, message: MessageId) -> Result<(), AppError> {
    let (group, _) = open_as_manager(tx, id, user).await?;
    let row = load_visible(tx.db, user, id, message).await?.ok_or(Refusal::MessageNotInGroup)?;
    let is_user_message = ContentType::from_number(row.type_).is_some_and(ContentType::is_normal);
    if !is_user_message || row.status == STATUS_RECALLED {
        return Err(Refusal::MessageNotInGroup.into());
    }
    if row.directed_to().is_some() {
        return Err(Refusal::DirectedCannotBePinned.into());
    }
    let mut pinned = group.pinned();
    if pinned.contains(&message) {
        return Err(Refusal::AlreadyPinned.into());
    }
    let max = tx.config.group.pin_max_count;
    if pinned.len() >= max {
        return Err(Refusal::PinLimit(max).into());
    }
    pinned.push(message);
    set_pinned(tx, id, &pinned).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let content = PinContent { operator_user_id: user, message_id: message, message: pinned_message(row) };
    store_server_message(tx, user, id, ContentType::GroupMessagePin, &content, members).await?;
    Ok(())
}

/// Takes a pin away (`contract/04` G13); the message itself is not looked at.
pub async fn unpin_message(tx: &mut Tx<'_>, user: UserId, id: GroupId, message: MessageId) -> Result<(), AppError> {
    let (group, _) = open_as_manager(tx, id, user).await?;
    let mut pinned = group.pinned();
    let count = pinned.len();
    pinned.retain(|pinned| *pinned != message);
    if pinned.len() == count {
        return Err(Refusal::NotPinned.into());
    }
    set_pinned(tx, id, &pinned).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let content = UnpinContent { operator_user_id: user, message_id: message };
    store_server_message(tx, user, id, ContentType::GroupMessageUnpin, &content, members).await?;
    Ok(())
}

async fn set_pinned(tx: &mut Tx<'_>, id: GroupId, pinned: &[MessageId]) -> Result<(), AppError> {
    let list = pinned.iter().map(MessageId::to_string).collect::<Vec<_>>().join(",");
    let change =
        GroupChange { pinned_message_ids: Some(list), update_time: Some(tx.stamp()?), ..GroupChange::default() };
    table::update(tx.db, id, &change).await?;
    Ok(())
}

fn pinned_message(row: GroupMessageRow) -> PinnedMessage {
    PinnedMessage {
        id: row.id,
        sender_id: row.sender_id,
        group_id: row.group_id,
        r#type: row.type_,
        at_user_ids: row.mentions(),
        receiver_user_ids: None,
        content: row.content,
        send_time: row.send_time,
    }
}
