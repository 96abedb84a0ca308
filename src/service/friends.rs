//! Friendships: what the owner of a row does with it, and who is told (`contract/03` F1–F7 and 1209). Only the
//! owner's row changes, and but for 1209 only the owner's devices hear of it.

use super::Tx;
use super::private_messages::server_message_id;
use crate::db::Db;
use crate::db::friend_requests::Application;
use crate::db::friends::{self as table, NewFriend};
pub use crate::db::friends::{Friend, FriendChange};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::friendship::Side;
use crate::domain::ids::UserId;
use crate::domain::message::{RECEIPT_NONE, STATUS_NORMAL};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::frame::FrameClass;
use crate::protocol::friend::{FriendDeleteContent, FriendPayload, FriendUpdatePayload};
use crate::protocol::payload::PrivateMessageBody;

/// Rows in the answer to F1, which the contract does not page: twice what one user may have. More are pulled (F2).
const MAX_LISTED: i64 = 10_000;
/// Friends looked at in one step when all of them are to be told something.
const FRIENDS_A_STEP: i64 = 1_000;

/// All my rows, newest first, deleted ones too (F1).
pub async fn list(db: &mut Db, user: UserId) -> Result<Vec<Friend>, AppError> {
    Ok(table::list_newest(db, user, MAX_LISTED).await?)
}

/// My rows after the cursor (stamp, id), deleted ones too (F2). One statement, so it needs no horizon.
pub async fn pull(db: &mut Db, user: UserId, cursor: Option<(i64, i64)>, limit: i64) -> Result<Vec<Friend>, AppError> {
    Ok(table::list_after(db, user, cursor, limit).await?)
}

/// My row about `friend`, in any status (F3).
pub async fn get(db: &mut Db, user: UserId, friend: UserId) -> Result<Option<Friend>, AppError> {
    Ok(table::get(db, user, friend).await?)
}

/// Ends the friendship on my side (F4); `clear` tells my other devices what to do with the conversation. Nothing
/// happens where there is no active row. Needs the clock.
pub async fn delete(tx: &mut Tx<'_>, user: UserId, friend: UserId, clear: bool) -> Result<(), AppError> {
    let stamp = tx.stamp()?;
    if !table::delete(tx.db, user, friend, stamp).await? {
        return Ok(());
    }
    let content = FriendDeleteContent { operator_user_id: user, friend_user_id: friend, clear };
    notify_in_chat(tx, user, friend, ContentType::FriendDelete, to_json(&content)?)
}

/// Changes my remark, silence or pin (F5). Needs the clock.
pub async fn update(tx: &mut Tx<'_>, user: UserId, friend: UserId, change: &FriendChange) -> Result<(), AppError> {
    if *change == FriendChange::default() {
        return Ok(());
    }
    active_side(tx.db, user, friend).await?;
    let stamp = tx.stamp()?;
    table::update(tx.db, user, friend, change, stamp).await?;
    let payload = FriendUpdatePayload {
        operator_user_id: user,
        friend_user_id: friend,
        display_name: change.display_name.clone(),
        silent: change.silent,
        pinned: change.pinned,
    };
    tx.notify(vec![user], FrameClass::State, ConversationType::None, ContentType::FriendUpdate, &payload)?;
    Ok(())
}

/// Blocks a friend, who is not told (F6). Needs the clock.
pub async fn block(tx: &mut Tx<'_>, user: UserId, friend: UserId) -> Result<(), AppError> {
    if active_side(tx.db, user, friend).await?.has_blocked {
        return Ok(());
    }
    set_blocked(tx, user, friend, true).await
}

/// Lifts my block (F7). Needs the clock.
pub async fn unblock(tx: &mut Tx<'_>, user: UserId, friend: UserId) -> Result<(), AppError> {
    if !active_side(tx.db, user, friend).await?.has_blocked {
        return Err(Refusal::NotBlocked.into());
    }
    set_blocked(tx, user, friend, false).await
}

async fn set_blocked(tx: &mut Tx<'_>, user: UserId, friend: UserId, blocked: bool) -> Result<(), AppError> {
    let stamp = tx.stamp()?;
    table::set_blocked(tx.db, user, friend, blocked, stamp).await?;
    let payload = FriendPayload { operator_user_id: user, friend_user_id: friend };
    let content_type = if blocked { ContentType::FriendBlock } else { ContentType::FriendUnblock };
    tx.notify(vec![user], FrameClass::State, ConversationType::None, content_type, &payload)?;
    Ok(())
}

/// My row about `friend`, which must be active.
async fn active_side(db: &mut Db, user: UserId, friend: UserId) -> Result<Side, AppError> {
    let side = table::get_side(db, user, friend).await?;
    Ok(side.filter(|side| side.is_active).ok_or(Refusal::NotFriend)?)
}

/// The target of an application still has the applicant as a friend: the applicant's row comes back, and only the
/// applicant's own devices hear of it. Needs the clock.
pub(super) async fn re_add(tx: &mut Tx<'_>, application: &Application) -> Result<(), AppError> {
    let (user, friend) = (application.from, application.to);
    let stamp = tx.stamp()?;
    let display_name = application.display_name.as_deref().unwrap_or_default();
    let row = NewFriend { user, friend, display_name, add_source: application.add_source, stamp };
    table::become_friend(tx.db, &row).await?;
    let content = FriendPayload { operator_user_id: friend, friend_user_id: friend };
    notify_in_chat(tx, user, friend, ContentType::FriendAdd, to_json(&content)?)
}

/// Shows a line in `user`'s chat with `friend`, on `user`'s devices only, that is no row.
fn notify_in_chat(
    tx: &mut Tx<'_>,
    user: UserId,
    friend: UserId,
    content_type: ContentType,
    content: String,
) -> Result<(), AppError> {
    let body = PrivateMessageBody {
        id: None,
        client_message_id: server_message_id(),
        sender_id: user,
        receiver_id: friend,
        r#type: content_type.number(),
        content,
        status: STATUS_NORMAL,
        receipt_status: RECEIPT_NONE,
        send_time: tx.now,
    };
    tx.notify(vec![user], FrameClass::State, ConversationType::Private, content_type, &body)?;
    Ok(())
}

/// The next of `user`'s friends after `after` who have `user` as a friend, too; then where to go on, if anywhere.
/// For telling all of them something: they can be thousands, so this is read in steps after the commit.
pub async fn mutual_friends_after(
    db: &mut Db,
    user: UserId,
    after: UserId,
) -> Result<(Vec<UserId>, Option<UserId>), AppError> {
    let mine = table::list_active_after(db, user, after, FRIENDS_A_STEP).await?;
    let is_full = i64::try_from(mine.len()).is_ok_and(|count| count == FRIENDS_A_STEP);
    let next = mine.last().copied().filter(|_| is_full);
    Ok((table::list_owners_of(db, &mine, user).await?, next))
}

pub(super) fn to_json(value: &impl serde::Serialize) -> Result<String, AppError> {
    serde_json::to_string(value).map_err(|error| AppError::Internal(error.to_string()))
}
