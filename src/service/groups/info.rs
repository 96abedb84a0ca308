//! Making a group, changing what it says about itself, ending it.

use super::members::{check_friends, join_members};
use super::{active_member, distinct, open_group};
use crate::db::group_members::{self, Joining};
use crate::db::group_spans;
use crate::db::groups::{self as table, Group, GroupChange};
use crate::domain::content::ContentType;
use crate::domain::group::{GROUP_DISSOLVED, Role, check_capacity, check_exists, check_owner};
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::error::AppError;
use crate::protocol::group_payload::{InfoContent, MembersContent, NameContent, NoticeContent, OperatorContent};
use crate::service::Tx;
use crate::service::group_messages::store_server_message;

/// How invited members joined: `add_source` of an invitation.
pub(super) const BY_INVITATION: i32 = 2;

/// Makes a group of its owner and some of his friends (`contract/04` G1).
pub async fn create(
    tx: &mut Tx<'_>,
    owner: UserId,
    name: &str,
    members: &[UserId],
    join_approval: bool,
) -> Result<Group, AppError> {
    let mut invited = distinct(members.to_vec());
    invited.retain(|member| *member != owner);
    check_friends(tx, owner, &invited).await?;
    check_capacity(1, invited.len(), tx.config.group.max_member)?;
    let stamp = tx.stamp()?;
    let group = table::insert(tx.db, owner, name, join_approval, stamp).await?;
    let founder = Joining { group: group.id, role: Role::Owner, add_source: None, inviter: None };
    join_members(tx, &founder, &[owner]).await?;
    let guest = Joining { role: Role::Normal, add_source: Some(BY_INVITATION), inviter: Some(owner), ..founder };
    join_members(tx, &guest, &invited).await?;
    let mut everybody = invited;
    everybody.push(owner);
    let everybody = distinct(everybody);
    let content = MembersContent { operator_user_id: owner, member_user_ids: everybody.clone() };
    store_server_message(tx, owner, group.id, ContentType::GroupCreate, &content, everybody).await?;
    Ok(table::get(tx.db, group.id).await?.unwrap_or(group))
}

/// What to change; `None` leaves it as it is.
#[derive(Clone, Debug)]
pub struct GroupUpdate {
    pub id: GroupId,
    pub name: Option<String>,
    pub avatar: Option<String>,
    pub notice: Option<String>,
    pub join_approval: Option<bool>,
}

/// Changes a group (`contract/04` G2). What is the same already is no change and makes no event, so that a repeat is
/// harmless.
pub async fn update(tx: &mut Tx<'_>, user: UserId, wanted: &GroupUpdate) -> Result<Group, AppError> {
    let group = open_group(tx, wanted.id).await?;
    check_owner(group.state(), user)?;
    let name = wanted.name.clone().filter(|name| *name != group.name);
    let notice = wanted.notice.clone().filter(|notice| Some(notice) != group.notice.as_ref());
    let avatar = wanted.avatar.clone().filter(|avatar| Some(avatar) != group.avatar.as_ref());
    let join_approval = wanted.join_approval.filter(|approval| *approval != group.join_approval);
    if name.is_none() && notice.is_none() && avatar.is_none() && join_approval.is_none() {
        return Ok(group);
    }
    let change = GroupChange {
        name: name.clone(),
        notice: notice.clone(),
        avatar: avatar.clone(),
        join_approval,
        update_time: Some(tx.stamp()?),
        ..GroupChange::default()
    };
    table::update(tx.db, group.id, &change).await?;
    let members = group_members::list_active_ids(tx.db, group.id).await?;
    if let Some(new_name) = name {
        let content = NameContent { operator_user_id: user, old_name: group.name.clone(), new_name };
        store_server_message(tx, user, group.id, ContentType::GroupNameUpdate, &content, members.clone()).await?;
    }
    if let Some(new_notice) = notice {
        let content = NoticeContent { operator_user_id: user, old_notice: group.notice.clone(), new_notice };
        store_server_message(tx, user, group.id, ContentType::GroupNoticeUpdate, &content, members.clone()).await?;
    }
    let mut info = InfoContent {
        operator_user_id: user,
        old_avatar: None,
        new_avatar: None,
        old_join_approval: None,
        new_join_approval: None,
    };
    if let Some(new_avatar) = avatar {
        let content = InfoContent { old_avatar: group.avatar.clone(), new_avatar: Some(new_avatar), ..info.clone() };
        store_server_message(tx, user, group.id, ContentType::GroupInfoUpdate, &content, members.clone()).await?;
    }
    if let Some(approval) = join_approval {
        info.old_join_approval = Some(group.join_approval);
        info.new_join_approval = Some(approval);
        store_server_message(tx, user, group.id, ContentType::GroupInfoUpdate, &info, members).await?;
    }
    Ok(table::get(tx.db, group.id).await?.unwrap_or(group))
}

/// Ends a group (`contract/04` G3). Everybody still sees the event; a ban does not stop it.
pub async fn dissolve(tx: &mut Tx<'_>, user: UserId, id: GroupId) -> Result<(), AppError> {
    let group = table::get(tx.db, id).await?;
    let state = check_exists(group.as_ref().map(Group::state))?;
    check_owner(state, user)?;
    active_member(tx.db, id, user).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    end_group(tx, user, id, members.clone(), members).await?;
    Ok(())
}

/// Announces the end to `receivers`, and lets all members leave; the event's id.
pub(super) async fn end_group(
    tx: &mut Tx<'_>,
    user: UserId,
    id: GroupId,
    members: Vec<UserId>,
    receivers: Vec<UserId>,
) -> Result<MessageId, AppError> {
    let content = OperatorContent { operator_user_id: user };
    let event = store_server_message(tx, user, id, ContentType::GroupDissolve, &content, receivers).await?;
    let stamp = tx.stamp()?;
    group_members::leave(tx.db, id, members.clone(), stamp).await?;
    group_spans::close(tx.db, id, members, event.id).await?;
    let change = GroupChange {
        status: Some(GROUP_DISSOLVED),
        dissolved_time: Some(tx.now),
        update_time: Some(stamp),
        ..GroupChange::default()
    };
    table::update(tx.db, id, &change).await?;
    table::raise_member_version(tx.db, id, stamp).await?;
    Ok(event.id)
}
