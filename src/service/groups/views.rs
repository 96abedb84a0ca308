//! Groups and members as one user sees them (`contract/04` section 5.2).

use std::collections::HashMap;

use diesel::QueryResult;

use super::active_member;
use crate::db::Db;
use crate::db::group_members::{self, Member};
use crate::db::group_messages::{self, GroupMessageRow};
use crate::db::groups::{self as table, Group};
use crate::db::users::{self, User};
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::message::{RECALLED_CONTENT, STATUS_RECALLED};
use crate::error::AppError;
use crate::protocol::group_payload::{GroupBody, GroupMessageBody, MemberBody};

/// Any group, for any user: cards show groups to strangers, without pins (`contract/04` G4).
pub async fn get_group(db: &mut Db, user: UserId, id: GroupId) -> QueryResult<Option<GroupBody>> {
    let Some(group) = table::get(db, id).await? else { return Ok(None) };
    let member = group_members::get(db, id, user).await?;
    let is_member = member.as_ref().is_some_and(Member::is_active);
    let pins = if is_member { load_pins(db, std::slice::from_ref(&group)).await? } else { HashMap::new() };
    Ok(Some(group_body(group, member.as_ref(), &pins)))
}

/// Every group that the user is or was in, by id (`contract/04` G5).
pub async fn list_groups(db: &mut Db, user: UserId) -> QueryResult<Vec<GroupBody>> {
    let members = group_members::list_of_user(db, user).await?;
    let ids = members.iter().map(|member| member.group_id).collect();
    let mut groups = table::list_by_ids(db, ids).await?;
    groups.sort_unstable_by_key(|group| group.id);
    let members: HashMap<GroupId, Member> = members.into_iter().map(|member| (member.group_id, member)).collect();
    let is_member = |group: &&Group| members.get(&group.id).is_some_and(Member::is_active);
    let own: Vec<Group> = groups.iter().filter(is_member).cloned().collect();
    let pins = load_pins(db, &own).await?;
    Ok(groups
        .into_iter()
        .map(|group| {
            let member = members.get(&group.id);
            group_body(group, member, &pins)
        })
        .collect())
}

/// The newest stamp of the user's member rows and of their groups: above a client's, its group list is old.
pub async fn group_list_time(db: &mut Db, user: UserId) -> QueryResult<i64> {
    let members = group_members::list_of_user(db, user).await?;
    let ids = members.iter().map(|member| member.group_id).collect();
    let groups = table::list_by_ids(db, ids).await?;
    let stamps = members.iter().map(|member| member.update_time).chain(groups.iter().map(|group| group.update_time));
    Ok(stamps.max().unwrap_or(0))
}

async fn load_pins(db: &mut Db, groups: &[Group]) -> QueryResult<HashMap<MessageId, GroupMessageRow>> {
    let ids = groups.iter().flat_map(Group::pinned).collect();
    Ok(group_messages::list_by_ids(db, ids).await?.into_iter().map(|row| (row.id, row)).collect())
}

fn group_body(group: Group, member: Option<&Member>, pins: &HashMap<MessageId, GroupMessageRow>) -> GroupBody {
    let is_member = member.is_some_and(Member::is_active);
    let pinned: Vec<GroupMessageBody> = group.pinned().iter().filter_map(|id| pins.get(id)).map(pinned_body).collect();
    GroupBody {
        id: group.id,
        name: group.name,
        owner_user_id: group.owner_user_id,
        avatar: group.avatar,
        notice: group.notice,
        banned: group.banned,
        muted_all: group.muted_all,
        join_approval: group.join_approval,
        banned_time: group.banned_time,
        dissolved_time: group.dissolved_time,
        create_time: group.create_time,
        status: group.status,
        join_status: i32::from(!is_member),
        group_remark: member.and_then(|member| member.group_remark.clone()),
        silent: member.map(|member| member.silent),
        pinned_messages: (is_member && !pinned.is_empty()).then_some(pinned),
    }
}

/// A pinned message; a recalled one stays in the list, without its content.
fn pinned_body(row: &GroupMessageRow) -> GroupMessageBody {
    let is_recalled = row.status == STATUS_RECALLED;
    GroupMessageBody {
        id: Some(row.id),
        client_message_id: row.client_message_id.clone(),
        sender_id: row.sender_id,
        group_id: row.group_id,
        r#type: row.type_,
        content: if is_recalled { RECALLED_CONTENT.to_owned() } else { row.content.clone() },
        status: row.status,
        send_time: row.send_time,
        at_user_ids: row.mentions(),
        receiver_user_ids: None,
        receipt_status: row.receipt_status,
        read_count: None,
    }
}

/// All members of a group, former ones too, for a present member (`contract/04` M3).
pub async fn list_members(db: &mut Db, user: UserId, group: GroupId) -> Result<Vec<MemberBody>, AppError> {
    active_member(db, group, user).await?;
    let members = group_members::list(db, group).await?;
    Ok(member_bodies(db, user, members).await?)
}

/// One member row, for a present member of its group (`contract/04` M2).
pub async fn get_member(
    db: &mut Db,
    user: UserId,
    group: GroupId,
    member: UserId,
) -> Result<Option<MemberBody>, AppError> {
    let row = group_members::get(db, group, member).await?;
    show_member(db, user, row).await
}

/// As [`get_member`], by the id of the row.
pub async fn get_member_by_id(db: &mut Db, user: UserId, id: i64) -> Result<Option<MemberBody>, AppError> {
    let row = group_members::get_by_id(db, id).await?;
    show_member(db, user, row).await
}

async fn show_member(db: &mut Db, user: UserId, row: Option<Member>) -> Result<Option<MemberBody>, AppError> {
    let Some(row) = row else { return Ok(None) };
    active_member(db, row.group_id, user).await?;
    Ok(member_bodies(db, user, vec![row]).await?.pop())
}

async fn member_bodies(db: &mut Db, viewer: UserId, members: Vec<Member>) -> QueryResult<Vec<MemberBody>> {
    let ids: Vec<UserId> = members.iter().map(|member| member.user_id).collect();
    let users: HashMap<UserId, User> =
        users::list_by_ids(db, &ids).await?.into_iter().map(|user| (user.id, user)).collect();
    let show = |member: Member| {
        let user = users.get(&member.user_id);
        let is_own = member.user_id == viewer;
        MemberBody {
            id: member.id,
            group_id: member.group_id,
            user_id: member.user_id,
            display_user_name: member.display_user_name,
            group_remark: member.group_remark.filter(|_| is_own),
            silent: is_own.then_some(member.silent),
            status: member.status,
            role: member.role,
            join_time: member.join_time,
            quit_time: member.quit_time,
            mute_end_time: member.mute_end_time,
            create_time: member.create_time,
            nickname: user.map(|user| user.nickname.clone()),
            avatar: user.and_then(|user| user.avatar.clone()),
        }
    };
    Ok(members.into_iter().map(show).collect())
}
