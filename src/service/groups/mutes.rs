//! Mutes: of the whole group, which spares owner and admins, and of one member, which spares nobody.

use super::{active_member, open_as_manager, open_group};
use crate::db::group_members::{self, MemberChange};
use crate::db::groups::{self as table, GroupChange};
use crate::domain::content::ContentType;
use crate::domain::group::{MUTED_FOR_EVER, check_mute};
use crate::domain::ids::{GroupId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::group_payload::{MutedContent, OperatorContent, UnmutedContent};
use crate::service::Tx;
use crate::service::group_messages::store_server_message;

/// Mutes or unmutes the group (`contract/04` G14). The event comes always, also when nothing changes.
pub async fn mute_all(tx: &mut Tx<'_>, user: UserId, id: GroupId, muted: bool) -> Result<(), AppError> {
    open_as_manager(tx, id, user).await?;
    let change = GroupChange { muted_all: Some(muted), update_time: Some(tx.stamp()?), ..GroupChange::default() };
    table::update(tx.db, id, &change).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let event = if muted { ContentType::GroupMuted } else { ContentType::GroupCancelMuted };
    store_server_message(tx, user, id, event, &OperatorContent { operator_user_id: user }, members).await?;
    Ok(())
}

/// Mutes a member for some seconds, for ever with 0 (`contract/04` G15).
pub async fn mute_member(
    tx: &mut Tx<'_>,
    user: UserId,
    id: GroupId,
    target: UserId,
    seconds: i64,
) -> Result<(), AppError> {
    if target == user {
        return Err(Refusal::CannotMuteSelf.into());
    }
    check_target(tx, user, id, target).await?;
    let end = match seconds {
        0 => MUTED_FOR_EVER,
        seconds => tx.now.saturating_add(seconds.saturating_mul(1_000)).min(MUTED_FOR_EVER),
    };
    set_mute(tx, id, target, Some(end)).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let content = MutedContent { operator_user_id: user, muted_user_id: target, mute_end_time: end };
    store_server_message(tx, user, id, ContentType::GroupMemberMuted, &content, members).await?;
    Ok(())
}

/// Ends a member's mute (`contract/04` G16). The event comes always, also when he was not muted.
pub async fn cancel_mute_member(tx: &mut Tx<'_>, user: UserId, id: GroupId, target: UserId) -> Result<(), AppError> {
    check_target(tx, user, id, target).await?;
    set_mute(tx, id, target, None).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let content = UnmutedContent { operator_user_id: user, muted_user_id: target };
    store_server_message(tx, user, id, ContentType::GroupMemberCancelMuted, &content, members).await?;
    Ok(())
}

async fn check_target(tx: &mut Tx<'_>, user: UserId, id: GroupId, target: UserId) -> Result<(), AppError> {
    open_group(tx, id).await?;
    let actor = active_member(tx.db, id, user).await?;
    let target = active_member(tx.db, id, target).await?;
    Ok(check_mute(actor, target)?)
}

async fn set_mute(tx: &mut Tx<'_>, id: GroupId, target: UserId, end: Option<i64>) -> Result<(), AppError> {
    let change = MemberChange { mute_end_time: Some(end), update_time: Some(tx.stamp()?), ..MemberChange::default() };
    group_members::update(tx.db, id, vec![target], &change).await?;
    Ok(())
}
