//! What operators do to groups (`contract/05` E2): banning, lifting a ban, ending a group. An operator need not be a
//! member; the event is shown to him all the same, by push and by pull.

use super::info::end_group;
use crate::db::groups::{self as table, Group, GroupChange};
use crate::db::{group_members, group_spans};
use crate::domain::content::ContentType;
use crate::domain::group::check_exists;
use crate::domain::ids::{GroupId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::group_payload::BannedContent;
use crate::service::Tx;
use crate::service::group_messages::store_server_message;

/// Bans a group. One that is banned already stays so, with the first reason, and nobody is told again.
pub async fn ban(tx: &mut Tx<'_>, operator: UserId, id: GroupId, reason: &str) -> Result<(), AppError> {
    let group = table::get(tx.db, id).await?;
    if check_exists(group.as_ref().map(Group::state))?.is_banned {
        return Ok(());
    }
    let change = GroupChange {
        banned: Some(true),
        banned_reason: Some(reason.to_owned()),
        banned_time: Some(tx.now),
        update_time: Some(tx.stamp()?),
        ..GroupChange::default()
    };
    table::update(tx.db, id, &change).await?;
    announce_ban(tx, operator, id, true).await
}

/// Lifts a ban; reason and time stay. Where there is none, nothing happens.
pub async fn unban(tx: &mut Tx<'_>, operator: UserId, id: GroupId) -> Result<(), AppError> {
    if !table::get(tx.db, id).await?.ok_or(Refusal::GroupNotFound)?.banned {
        return Ok(());
    }
    let change = GroupChange { banned: Some(false), update_time: Some(tx.stamp()?), ..GroupChange::default() };
    table::update(tx.db, id, &change).await?;
    announce_ban(tx, operator, id, false).await
}

async fn announce_ban(tx: &mut Tx<'_>, operator: UserId, id: GroupId, banned: bool) -> Result<(), AppError> {
    let mut receivers = group_members::list_active_ids(tx.db, id).await?;
    let is_outside = add_operator(&mut receivers, operator);
    let content = BannedContent { operator_user_id: operator, banned };
    let event = store_server_message(tx, operator, id, ContentType::GroupBanned, &content, receivers).await?;
    if is_outside {
        group_spans::show_one(tx.db, id, operator, event.id).await?;
    }
    Ok(())
}

/// Ends a group, as its owner can; a ban does not stop it.
pub async fn dissolve_as_operator(tx: &mut Tx<'_>, operator: UserId, id: GroupId) -> Result<(), AppError> {
    let group = table::get(tx.db, id).await?;
    check_exists(group.as_ref().map(Group::state))?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let mut receivers = members.clone();
    let is_outside = add_operator(&mut receivers, operator);
    let event = end_group(tx, operator, id, members, receivers).await?;
    if is_outside {
        group_spans::show_one(tx.db, id, operator, event).await?;
    }
    Ok(())
}

/// Adds the operator to the ascending list of members, unless he is one; whether he was not.
fn add_operator(members: &mut Vec<UserId>, operator: UserId) -> bool {
    match members.binary_search(&operator) {
        Ok(_) => false,
        Err(place) => {
            members.insert(place, operator);
            true
        }
    }
}
