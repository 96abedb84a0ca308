//! Requests to join a group: applying, agreeing, refusing, and who sees them (`contract/04` section 5.5).

use std::collections::HashMap;

use diesel::QueryResult;

use super::Tx;
use super::group_messages::store_server_message;
use super::groups::join_members;
use crate::db::Db;
use crate::db::group_members::{self, Joining};
use crate::db::group_requests::{self as table, AGREED, GroupRequest, NewRequest, REFUSED, UNHANDLED};
use crate::db::groups::{self, Group};
use crate::db::sequence::{Counter, horizon};
use crate::db::users::{self, User};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::group::{Role, check_capacity, check_gate};
use crate::domain::ids::{GroupId, RequestId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::frame::FrameClass;
use crate::protocol::group_payload::{
    EnterContent, GroupRequestApprovedPayload, GroupRequestBody, GroupRequestReceivedPayload,
    GroupRequestRejectedPayload, MembersContent,
};

/// Requests in a list without pages.
const MAX_LISTED: i64 = 1_000;

/// Asks to join (`contract/04` R1). `None` when the group takes everybody and the user is a member now.
pub async fn apply(
    tx: &mut Tx<'_>,
    user: UserId,
    group: GroupId,
    apply_content: Option<&str>,
    add_source: Option<i32>,
) -> Result<Option<RequestId>, AppError> {
    let found = groups::get(tx.db, group).await?;
    check_gate(found.as_ref().map(Group::state))?;
    let found = found.ok_or(Refusal::GroupNotFound)?;
    if group_members::get_state(tx.db, group, user).await?.is_some() {
        return Err(Refusal::AlreadyGroupMember.into());
    }
    if found.join_approval {
        return request_for(tx, &found, user, None, apply_content, add_source).await.map(Some);
    }
    enter(tx, group, user, None, add_source).await?;
    let content = EnterContent { operator_user_id: user, entrant_user_id: user, add_source };
    let members = group_members::list_active_ids(tx.db, group).await?;
    store_server_message(tx, user, group, ContentType::GroupMemberEnter, &content, members).await?;
    Ok(None)
}

/// Makes somebody a member unless the group is full.
async fn enter(
    tx: &mut Tx<'_>,
    group: GroupId,
    user: UserId,
    inviter: Option<UserId>,
    add_source: Option<i32>,
) -> Result<(), AppError> {
    let active = group_members::count_active(tx.db, group).await?;
    check_capacity(active, 1, tx.config.group.max_member)?;
    let joining = Joining { group, role: Role::Normal, add_source, inviter };
    join_members(tx, &joining, &[user]).await
}

/// Makes the request of a user and group, or makes it anew, and tells owner and admins.
pub(super) async fn request_for(
    tx: &mut Tx<'_>,
    group: &Group,
    user: UserId,
    inviter: Option<UserId>,
    apply_content: Option<&str>,
    add_source: Option<i32>,
) -> Result<RequestId, AppError> {
    let new =
        NewRequest { group: group.id, user, inviter, apply_content: apply_content.map(str::to_owned), add_source };
    let stamp = tx.stamp()?;
    let id = table::apply(tx.db, &new, stamp).await?;
    let account = users::get_by_id(tx.db, user).await?;
    let stored = table::get(tx.db, id).await?;
    let payload = GroupRequestReceivedPayload {
        operator_user_id: inviter.unwrap_or(user),
        request_id: id,
        group_id: group.id,
        user_id: user,
        inviter_user_id: inviter,
        apply_content: stored.and_then(|request| request.apply_content),
        add_source,
        user_nickname: account.as_ref().map(|user| user.nickname.clone()),
        user_avatar: account.and_then(|user| user.avatar),
    };
    let managers = group_members::list_manager_ids(tx.db, group.id).await?;
    let content_type = ContentType::GroupRequestReceived;
    tx.notify(managers, FrameClass::State, ConversationType::None, content_type, &payload)?;
    Ok(id)
}

/// The request, if it waits and `user` may handle it: checks in the order of `contract/04` R2 and R3.
async fn take(tx: &mut Tx<'_>, user: UserId, id: RequestId) -> Result<GroupRequest, AppError> {
    let request = table::get(tx.db, id).await?.ok_or(Refusal::GroupRequestNotFound)?;
    if request.handle_result != UNHANDLED {
        return Err(Refusal::GroupRequestHandled.into());
    }
    let member = group_members::get_state(tx.db, request.group_id, user).await?.ok_or(Refusal::NotGroupMember)?;
    if !member.role.is_manager() {
        return Err(Refusal::GroupRequestNotToMe.into());
    }
    Ok(request)
}

/// What became of an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    Joined,
    /// The user had joined another way; the request is closed all the same. The caller is told 1040510004.
    AlreadyMember,
}

/// Lets somebody in (`contract/04` R2). Needs `clock` and `group`.
pub async fn agree(tx: &mut Tx<'_>, user: UserId, id: RequestId) -> Result<Agreement, AppError> {
    let request = take(tx, user, id).await?;
    let group = groups::get(tx.db, request.group_id).await?;
    check_gate(group.as_ref().map(Group::state))?;
    let is_member = group_members::get_state(tx.db, request.group_id, request.user_id).await?.is_some();
    if !is_member {
        let active = group_members::count_active(tx.db, request.group_id).await?;
        check_capacity(active, 1, tx.config.group.max_member)?;
    }
    let stamp = tx.stamp()?;
    if !table::handle(tx.db, id, AGREED, user, None, stamp).await? {
        return Err(Refusal::GroupRequestHandled.into());
    }
    notify_approved(tx, user, &request).await?;
    if is_member {
        return Ok(Agreement::AlreadyMember);
    }
    enter(tx, request.group_id, request.user_id, request.inviter_user_id, request.add_source).await?;
    let members = group_members::list_active_ids(tx.db, request.group_id).await?;
    match request.inviter_user_id {
        Some(inviter) => {
            let content = MembersContent { operator_user_id: inviter, member_user_ids: vec![request.user_id] };
            let event = ContentType::GroupMemberInvite;
            store_server_message(tx, user, request.group_id, event, &content, members).await?;
        }
        None => {
            let content = EnterContent {
                operator_user_id: request.user_id,
                entrant_user_id: request.user_id,
                add_source: request.add_source,
            };
            let event = ContentType::GroupMemberEnter;
            store_server_message(tx, user, request.group_id, event, &content, members).await?;
        }
    }
    Ok(Agreement::Joined)
}

async fn notify_approved(tx: &mut Tx<'_>, user: UserId, request: &GroupRequest) -> Result<(), AppError> {
    let payload = GroupRequestApprovedPayload {
        operator_user_id: user,
        request_id: request.id,
        group_id: request.group_id,
        user_id: request.user_id,
    };
    let receivers = managers_and(tx, request).await?;
    let content_type = ContentType::GroupRequestApproved;
    tx.notify(receivers, FrameClass::State, ConversationType::None, content_type, &payload)?;
    Ok(())
}

/// Keeps somebody out (`contract/04` R3). Needs the clock.
pub async fn refuse(
    tx: &mut Tx<'_>,
    user: UserId,
    id: RequestId,
    handle_content: Option<&str>,
) -> Result<(), AppError> {
    let request = take(tx, user, id).await?;
    let stamp = tx.stamp()?;
    if !table::handle(tx.db, id, REFUSED, user, handle_content, stamp).await? {
        return Err(Refusal::GroupRequestHandled.into());
    }
    let payload = GroupRequestRejectedPayload {
        operator_user_id: user,
        request_id: id,
        group_id: request.group_id,
        user_id: request.user_id,
        handle_content: handle_content.map(str::to_owned),
    };
    let receivers = managers_and(tx, &request).await?;
    let content_type = ContentType::GroupRequestRejected;
    tx.notify(receivers, FrameClass::State, ConversationType::None, content_type, &payload)?;
    Ok(())
}

/// Owner, admins and the applicant.
async fn managers_and(tx: &mut Tx<'_>, request: &GroupRequest) -> QueryResult<Vec<UserId>> {
    let mut receivers = group_members::list_manager_ids(tx.db, request.group_id).await?;
    if !receivers.contains(&request.user_id) {
        receivers.push(request.user_id);
    }
    Ok(receivers)
}

/// Waiting requests of the groups that I manage, newest first (`contract/04` R4).
pub async fn list_unhandled(db: &mut Db, user: UserId) -> QueryResult<Vec<GroupRequestBody>> {
    let groups = group_members::list_managed_groups(db, user).await?;
    let requests = table::list_newest(db, groups, true, MAX_LISTED).await?;
    bodies(db, requests).await
}

/// Requests of the groups that I manage, handled ones too, after the cursor (`contract/04` R5).
pub async fn pull(
    db: &mut Db,
    user: UserId,
    cursor: Option<(i64, i64)>,
    limit: i64,
) -> Result<Vec<GroupRequestBody>, AppError> {
    if !(1..=200).contains(&limit) {
        return Err(AppError::Malformed("limit must be 1 to 200".into()));
    }
    let newest = horizon(db, Counter::Clock).await?;
    let groups = group_members::list_managed_groups(db, user).await?;
    let requests = table::list_after(db, groups, cursor, newest, limit).await?;
    Ok(bodies(db, requests).await?)
}

/// All requests of a group, newest first, for its owner and admins (`contract/04` R6).
pub async fn list_of_group(db: &mut Db, user: UserId, group: GroupId) -> Result<Vec<GroupRequestBody>, AppError> {
    let found = groups::get(db, group).await?;
    check_gate(found.as_ref().map(Group::state))?;
    let member = group_members::get_state(db, group, user).await?.ok_or(Refusal::NotGroupMember)?;
    if !member.role.is_manager() {
        return Err(Refusal::GroupRequestNotToMe.into());
    }
    let requests = table::list_newest(db, vec![group], false, MAX_LISTED).await?;
    Ok(bodies(db, requests).await?)
}

/// A request, for whom it concerns: applicant, inviter, owner and admins (`contract/04` R7).
pub async fn get(db: &mut Db, user: UserId, id: RequestId) -> QueryResult<Option<GroupRequestBody>> {
    let Some(request) = table::get(db, id).await? else { return Ok(None) };
    let is_party = request.user_id == user || request.inviter_user_id == Some(user);
    let member = group_members::get_state(db, request.group_id, user).await?;
    if !is_party && !member.is_some_and(|member| member.role.is_manager()) {
        return Ok(None);
    }
    Ok(bodies(db, vec![request]).await?.pop())
}

async fn bodies(db: &mut Db, requests: Vec<GroupRequest>) -> QueryResult<Vec<GroupRequestBody>> {
    let mut ids: Vec<UserId> = requests.iter().map(|request| request.user_id).collect();
    ids.extend(requests.iter().filter_map(|request| request.inviter_user_id));
    let users: HashMap<UserId, User> =
        users::list_by_ids(db, &ids).await?.into_iter().map(|user| (user.id, user)).collect();
    let group_ids = requests.iter().map(|request| request.group_id).collect();
    let groups: HashMap<GroupId, Group> =
        groups::list_by_ids(db, group_ids).await?.into_iter().map(|group| (group.id, group)).collect();
    let show = |request: GroupRequest| {
        let (user, inviter) = (users.get(&request.user_id), request.inviter_user_id.and_then(|id| users.get(&id)));
        let group = groups.get(&request.group_id);
        GroupRequestBody {
            id: request.id,
            group_id: request.group_id,
            user_id: request.user_id,
            inviter_user_id: request.inviter_user_id,
            handle_user_id: request.handle_user_id,
            handle_result: request.handle_result,
            add_source: request.add_source,
            apply_content: request.apply_content,
            handle_content: request.handle_content,
            handle_time: request.handle_time,
            create_time: request.create_time,
            update_time: request.update_time,
            user_nickname: user.map(|user| user.nickname.clone()),
            user_avatar: user.and_then(|user| user.avatar.clone()),
            inviter_nickname: inviter.map(|user| user.nickname.clone()),
            inviter_avatar: inviter.and_then(|user| user.avatar.clone()),
            group_name: group.map(|group| group.name.clone()),
            group_avatar: group.and_then(|group| group.avatar.clone()),
        }
    };
    Ok(requests.into_iter().map(show).collect())
}
