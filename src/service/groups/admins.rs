//! Roles: admins and the owner.

use super::{active_member, distinct, open_group};
use crate::db::group_members::{self, Member, MemberChange};
use crate::db::group_requests;
use crate::db::groups::{self as table, GroupChange};
use crate::domain::content::ContentType;
use crate::domain::group::{Role, check_owner};
use crate::domain::ids::{GroupId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::group_payload::{MembersContent, TransferContent};
use crate::service::Tx;
use crate::service::group_messages::store_server_message;

/// Makes members admins (`contract/04` G9). Those who are already are passed over.
pub async fn add_admins(tx: &mut Tx<'_>, user: UserId, id: GroupId, targets: &[UserId]) -> Result<(), AppError> {
    let changed = targets_with_role(tx, user, id, targets, Role::Normal).await?;
    if changed.is_empty() {
        return Ok(());
    }
    let managers = group_members::list_manager_ids(tx.db, id).await?;
    let max = tx.config.group.admin_max_count;
    // The owner is a manager too, and no admin.
    if managers.len().saturating_sub(1) + changed.len() > max {
        return Err(Refusal::AdminLimit(max).into());
    }
    change_roles(tx, user, id, changed, Role::Admin, ContentType::GroupAdminAdd).await?;
    let stamp = tx.stamp()?;
    group_requests::touch_unhandled(tx.db, id, stamp).await?;
    Ok(())
}

/// Makes admins normal members (`contract/04` G10). Those who are no admins are passed over.
pub async fn remove_admins(tx: &mut Tx<'_>, user: UserId, id: GroupId, targets: &[UserId]) -> Result<(), AppError> {
    let changed = targets_with_role(tx, user, id, targets, Role::Admin).await?;
    if changed.is_empty() {
        return Ok(());
    }
    change_roles(tx, user, id, changed, Role::Normal, ContentType::GroupAdminRemove).await
}

/// Those of the targets who have this role now; refused when one is not in the group or is the owner.
async fn targets_with_role(
    tx: &mut Tx<'_>,
    user: UserId,
    id: GroupId,
    targets: &[UserId],
    role: Role,
) -> Result<Vec<UserId>, AppError> {
    let group = open_group(tx, id).await?;
    check_owner(group.state(), user)?;
    let targets = distinct(targets.to_vec());
    let rows = group_members::list_of(tx.db, id, targets.clone()).await?;
    let active: Vec<&Member> = rows.iter().filter(|member| member.is_active()).collect();
    if active.len() < targets.len() {
        return Err(Refusal::AdminTargetNotInGroup.into());
    }
    if targets.contains(&group.owner_user_id) {
        return Err(Refusal::AdminTargetIsOwner.into());
    }
    Ok(active.iter().filter(|member| Role::from_number(member.role) == role).map(|member| member.user_id).collect())
}

async fn change_roles(
    tx: &mut Tx<'_>,
    user: UserId,
    id: GroupId,
    targets: Vec<UserId>,
    role: Role,
    event: ContentType,
) -> Result<(), AppError> {
    let change = MemberChange { role: Some(role.number()), update_time: Some(tx.stamp()?), ..MemberChange::default() };
    group_members::update(tx.db, id, targets.clone(), &change).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let content = MembersContent { operator_user_id: user, member_user_ids: targets };
    store_server_message(tx, user, id, event, &content, members).await?;
    Ok(())
}

/// Gives a group to another member; the old owner becomes a normal one (`contract/04` G11).
pub async fn transfer_owner(tx: &mut Tx<'_>, user: UserId, id: GroupId, new_owner: UserId) -> Result<(), AppError> {
    let group = open_group(tx, id).await?;
    check_owner(group.state(), user)?;
    if new_owner == user {
        return Err(Refusal::TransferToSelf.into());
    }
    active_member(tx.db, id, new_owner).await?;
    let stamp = tx.stamp()?;
    for (member, role) in [(user, Role::Normal), (new_owner, Role::Owner)] {
        let change = MemberChange { role: Some(role.number()), update_time: Some(stamp), ..MemberChange::default() };
        group_members::update(tx.db, id, vec![member], &change).await?;
    }
    let change = GroupChange { owner_user_id: Some(new_owner), update_time: Some(stamp), ..GroupChange::default() };
    table::update(tx.db, id, &change).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let content = TransferContent { operator_user_id: user, new_owner_user_id: new_owner };
    store_server_message(tx, user, id, ContentType::GroupOwnerTransfer, &content, members).await?;
    group_requests::touch_unhandled(tx.db, id, stamp).await?;
    Ok(())
}
