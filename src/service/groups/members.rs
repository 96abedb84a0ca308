//! Who is in a group: inviting, removing, quitting, and a member's own settings.

use super::info::BY_INVITATION;
use super::{active_member, distinct, open_as_manager, open_group};
use crate::db::group_members::{self, Joining, Member, MemberChange};
use crate::db::groups::{self as table, Group};
use crate::db::sequence::Counter;
use crate::db::{friends, group_spans, users};
use crate::domain::content::ContentType;
use crate::domain::group::{Role, check_capacity, check_exists, check_kick};
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::group_payload::{MemberNameContent, MembersContent, OperatorContent, SettingContent};
use crate::service::Tx;
use crate::service::group_messages::{announce, store_server_message};
use crate::service::group_requests::request_for;

/// Refuses when somebody is no active friend on `user`'s own side; the peer's side does not matter (S8).
pub(crate) async fn check_friends(tx: &mut Tx<'_>, user: UserId, others: &[UserId]) -> Result<(), AppError> {
    let pairs: Vec<(UserId, UserId)> = others.iter().map(|other| (user, *other)).collect();
    let sides = friends::list_sides(tx.db, &pairs).await?;
    let strangers: Vec<UserId> =
        others.iter().copied().filter(|other| !sides.get(&(user, *other)).is_some_and(|side| side.is_active)).collect();
    if strangers.is_empty() {
        return Ok(());
    }
    // Ten names tell enough. Whoever has no account, or whose name nobody may learn this way, is called by the id.
    let shown: Vec<UserId> = strangers.into_iter().take(10).collect();
    let names = users::list_by_ids(tx.db, &shown).await?;
    let name = |id: &UserId| {
        names.iter().find(|user| user.id == *id).map_or_else(|| id.to_string(), |user| user.nickname.clone())
    };
    let text = shown.iter().map(name).collect::<Vec<_>>().join(",");
    Err(Refusal::InviteesNotFriends(text).into())
}

/// Makes users members from the next message on. The caller has checked that none of them is one.
pub(crate) async fn join_members(tx: &mut Tx<'_>, joining: &Joining, users: &[UserId]) -> Result<(), AppError> {
    if users.is_empty() {
        return Ok(());
    }
    let stamp = tx.stamp()?;
    group_members::join_all(tx.db, joining, users, stamp).await?;
    let from = tx.last_id(Counter::Group)?;
    group_spans::open(tx.db, joining.group, users, from).await?;
    table::raise_member_version(tx.db, joining.group, stamp).await?;
    Ok(())
}

/// Ends memberships with the event that the leavers still see.
async fn remove_members(tx: &mut Tx<'_>, group: GroupId, users: Vec<UserId>, event: MessageId) -> Result<(), AppError> {
    let stamp = tx.stamp()?;
    group_members::leave(tx.db, group, users.clone(), stamp).await?;
    group_spans::close(tx.db, group, users, event).await?;
    table::raise_member_version(tx.db, group, stamp).await?;
    Ok(())
}

/// Invites friends (`contract/04` G6): they are members at once, or, where a normal member invites into a group with
/// approval, each becomes a join request.
pub async fn invite(tx: &mut Tx<'_>, user: UserId, id: GroupId, invited: &[UserId]) -> Result<(), AppError> {
    let group = open_group(tx, id).await?;
    let inviter = active_member(tx.db, id, user).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let mut new = distinct(invited.to_vec());
    new.retain(|invited| members.binary_search(invited).is_err());
    if new.is_empty() {
        return Ok(());
    }
    check_friends(tx, user, &new).await?;
    check_capacity(members.len(), new.len(), tx.config.group.max_member)?;
    if group.join_approval && inviter.role == Role::Normal {
        for invitee in new {
            request_for(tx, &group, invitee, Some(user), None, Some(BY_INVITATION)).await?;
        }
        return Ok(());
    }
    let joining = Joining { group: id, role: Role::Normal, add_source: Some(BY_INVITATION), inviter: Some(user) };
    join_members(tx, &joining, &new).await?;
    let content = MembersContent { operator_user_id: user, member_user_ids: new.clone() };
    let receivers = distinct([members, new].concat());
    store_server_message(tx, user, id, ContentType::GroupMemberInvite, &content, receivers).await?;
    Ok(())
}

/// Leaves a group (`contract/04` G7). A ban does not stop it; the owner cannot.
pub async fn quit(tx: &mut Tx<'_>, user: UserId, id: GroupId) -> Result<(), AppError> {
    let group = table::get(tx.db, id).await?;
    let state = check_exists(group.as_ref().map(Group::state))?;
    if state.owner == user {
        return Err(Refusal::OwnerCannotQuit.into());
    }
    active_member(tx.db, id, user).await?;
    let members = group_members::list_active_ids(tx.db, id).await?;
    let content = OperatorContent { operator_user_id: user };
    let event = store_server_message(tx, user, id, ContentType::GroupMemberQuit, &content, members).await?;
    remove_members(tx, id, vec![user], event.id).await
}

/// Removes members (`contract/04` G8). Users who are not in the group are passed over; one who may not be removed
/// refuses all.
pub async fn kick(tx: &mut Tx<'_>, user: UserId, id: GroupId, targets: &[UserId]) -> Result<(), AppError> {
    let (_, actor) = open_as_manager(tx, id, user).await?;
    if targets.contains(&user) {
        return Err(Refusal::CannotKickSelf.into());
    }
    let rows = group_members::list_of(tx.db, id, distinct(targets.to_vec())).await?;
    let active: Vec<&Member> = rows.iter().filter(|member| member.is_active()).collect();
    let roles: Vec<Role> = active.iter().map(|member| Role::from_number(member.role)).collect();
    check_kick(actor, &roles)?;
    let kicked: Vec<UserId> = active.iter().map(|member| member.user_id).collect();
    if kicked.is_empty() {
        return Ok(());
    }
    let members = group_members::list_active_ids(tx.db, id).await?;
    let content = MembersContent { operator_user_id: user, member_user_ids: kicked.clone() };
    let event = store_server_message(tx, user, id, ContentType::GroupMemberKick, &content, members).await?;
    remove_members(tx, id, kicked, event.id).await
}

/// My own settings in a group; `None` leaves one as it is.
#[derive(Clone, Debug)]
pub struct MemberUpdate {
    pub group: GroupId,
    pub display_user_name: Option<String>,
    pub group_remark: Option<String>,
    pub silent: Option<bool>,
}

/// Changes my name in the group, which members hear of, and my own settings, which only my devices do
/// (`contract/04` M1).
pub async fn update_member(tx: &mut Tx<'_>, user: UserId, wanted: &MemberUpdate) -> Result<(), AppError> {
    let member = group_members::get(tx.db, wanted.group, user).await?.filter(Member::is_active);
    let member = member.ok_or(Refusal::NotGroupMember)?;
    let name = wanted.display_user_name.clone().filter(|name| Some(name) != member.display_user_name.as_ref());
    let remark = wanted.group_remark.clone().filter(|remark| Some(remark) != member.group_remark.as_ref());
    let silent = wanted.silent.filter(|silent| *silent != member.silent);
    if name.is_none() && remark.is_none() && silent.is_none() {
        return Ok(());
    }
    let change = MemberChange {
        display_user_name: name.clone(),
        group_remark: remark.clone(),
        silent,
        update_time: Some(tx.stamp()?),
        ..MemberChange::default()
    };
    group_members::update(tx.db, wanted.group, vec![user], &change).await?;
    if let Some(display_user_name) = name {
        let members = group_members::list_active_ids(tx.db, wanted.group).await?;
        let content = MemberNameContent { operator_user_id: user, display_user_name };
        announce(tx, user, wanted.group, ContentType::GroupMemberNicknameUpdate, &content, members)?;
    }
    if remark.is_some() || silent.is_some() {
        let content =
            SettingContent { operator_user_id: user, silent: wanted.silent, group_remark: wanted.group_remark.clone() };
        announce(tx, user, wanted.group, ContentType::GroupMemberSettingUpdate, &content, vec![user])?;
    }
    Ok(())
}
