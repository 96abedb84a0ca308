//! Groups (`contract/04` section 5.3).

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params, check_length, check_text};
use super::response::{Answer, Reply};
use crate::domain::ids::{GroupId, MessageId, UserId, deserialize_integer};
use crate::error::AppError;
use crate::protocol::group_payload::GroupBody;
use crate::service::Tx;
use crate::service::groups::{self as service, GroupUpdate, LOCKS};

/// Users that one call may name (`design.md` section 4: what one command may touch).
const MAX_USERS: usize = 1_000;

/// Runs a verb of groups for the caller.
async fn run<T, F>(state: &AppState, caller: Caller, kind: &'static str, verb: F) -> Result<T, AppError>
where
    T: Send + 'static,
    F: AsyncFn(&mut Tx<'_>) -> Result<T, AppError> + Send + 'static,
{
    state.writer.run(Some(caller.user), kind, LOCKS, verb).await
}

/// The group as the caller sees it after a change.
async fn show(state: &AppState, caller: Caller, id: GroupId) -> Result<GroupBody, AppError> {
    let group = state.readers.run(async move |db| Ok(service::get_group(db, caller.user, id).await?)).await?;
    group.ok_or_else(|| AppError::Internal("a group is gone".into()))
}

fn check_users(users: &[UserId], allow_none: bool) -> Result<(), AppError> {
    if users.is_empty() && !allow_none {
        return Err(AppError::Malformed("parameter incorrect: no users".into()));
    }
    if users.len() > MAX_USERS {
        return Err(AppError::Malformed(format!("parameter incorrect: more than {MAX_USERS} users")));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateRequest {
    name: String,
    member_user_ids: Option<Vec<UserId>>,
    join_approval: Option<bool>,
}

/// POST `/im/group/create`.
pub async fn create(state: web::Data<AppState>, caller: Caller, Body(body): Body<CreateRequest>) -> Answer<GroupBody> {
    check_text("name", &body.name, 64)?;
    let members = body.member_user_ids.unwrap_or_default();
    check_users(&members, true)?;
    let group = run(&state, caller, "group.create", async move |tx| {
        let approval = body.join_approval.unwrap_or(false);
        service::create(tx, caller.user, &body.name, &members, approval).await
    });
    let id = group.await?.id;
    Ok(Reply(show(&state, caller, id).await?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRequest {
    id: GroupId,
    name: Option<String>,
    avatar: Option<String>,
    notice: Option<String>,
    join_approval: Option<bool>,
}

/// PUT `/im/group/update`.
pub async fn update(state: web::Data<AppState>, caller: Caller, Body(body): Body<UpdateRequest>) -> Answer<GroupBody> {
    if let Some(name) = &body.name {
        check_text("name", name, 64)?;
    }
    if let Some(avatar) = &body.avatar {
        check_text("avatar", avatar, 512)?;
    }
    check_length("notice", body.notice.as_deref().unwrap_or_default(), 2_048)?;
    let UpdateRequest { id, name, avatar, notice, join_approval } = body;
    let update = GroupUpdate { id, name, avatar, notice, join_approval };
    run(&state, caller, "group.update", async move |tx| service::update(tx, caller.user, &update).await).await?;
    Ok(Reply(show(&state, caller, id).await?))
}

#[derive(Deserialize)]
pub struct IdParams {
    id: GroupId,
}

/// DELETE `/im/group/dissolve?id=`.
pub async fn dissolve(state: web::Data<AppState>, caller: Caller, Params(params): Params<IdParams>) -> Answer<bool> {
    run(&state, caller, "group.dissolve", async move |tx| service::dissolve(tx, caller.user, params.id).await).await?;
    Ok(Reply(true))
}

/// GET `/im/group/get?id=`.
pub async fn get(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<IdParams>,
) -> Answer<Option<GroupBody>> {
    Ok(Reply(state.readers.run(async move |db| Ok(service::get_group(db, caller.user, params.id).await?)).await?))
}

/// GET `/im/group/list`.
pub async fn list(state: web::Data<AppState>, caller: Caller) -> Answer<Vec<GroupBody>> {
    Ok(Reply(state.readers.run(async move |db| Ok(service::list_groups(db, caller.user).await?)).await?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MembersRequest {
    group_id: GroupId,
    member_user_ids: Vec<UserId>,
}

/// POST `/im/group/invite`.
pub async fn invite(state: web::Data<AppState>, caller: Caller, Body(body): Body<MembersRequest>) -> Answer<bool> {
    check_users(&body.member_user_ids, false)?;
    run(&state, caller, "group.invite", async move |tx| {
        service::invite(tx, caller.user, body.group_id, &body.member_user_ids).await
    })
    .await?;
    Ok(Reply(true))
}

/// DELETE `/im/group/kicking`, with a JSON body.
pub async fn kick(state: web::Data<AppState>, caller: Caller, Body(body): Body<MembersRequest>) -> Answer<bool> {
    check_users(&body.member_user_ids, false)?;
    run(&state, caller, "group.kick", async move |tx| {
        service::kick(tx, caller.user, body.group_id, &body.member_user_ids).await
    })
    .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupParams {
    group_id: GroupId,
}

/// DELETE `/im/group/quit?groupId=`.
pub async fn quit(state: web::Data<AppState>, caller: Caller, Params(params): Params<GroupParams>) -> Answer<bool> {
    run(&state, caller, "group.quit", async move |tx| service::quit(tx, caller.user, params.group_id).await).await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdminsRequest {
    id: GroupId,
    user_ids: Vec<UserId>,
}

/// PUT `/im/group/add-admin`.
pub async fn add_admins(state: web::Data<AppState>, caller: Caller, Body(body): Body<AdminsRequest>) -> Answer<bool> {
    check_users(&body.user_ids, false)?;
    run(&state, caller, "group.add_admins", async move |tx| {
        service::add_admins(tx, caller.user, body.id, &body.user_ids).await
    })
    .await?;
    Ok(Reply(true))
}

/// PUT `/im/group/remove-admin`.
pub async fn remove_admins(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<AdminsRequest>,
) -> Answer<bool> {
    check_users(&body.user_ids, false)?;
    run(&state, caller, "group.remove_admins", async move |tx| {
        service::remove_admins(tx, caller.user, body.id, &body.user_ids).await
    })
    .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferRequest {
    id: GroupId,
    new_owner_user_id: UserId,
}

/// PUT `/im/group/transfer-owner`.
pub async fn transfer_owner(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<TransferRequest>,
) -> Answer<bool> {
    run(&state, caller, "group.transfer_owner", async move |tx| {
        service::transfer_owner(tx, caller.user, body.id, body.new_owner_user_id).await
    })
    .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinRequest {
    id: GroupId,
    message_id: MessageId,
}

/// PUT `/im/group/pin-message`.
pub async fn pin_message(state: web::Data<AppState>, caller: Caller, Body(body): Body<PinRequest>) -> Answer<bool> {
    run(&state, caller, "group.pin_message", async move |tx| {
        service::pin_message(tx, caller.user, body.id, body.message_id).await
    })
    .await?;
    Ok(Reply(true))
}

/// PUT `/im/group/unpin-message`.
pub async fn unpin_message(state: web::Data<AppState>, caller: Caller, Body(body): Body<PinRequest>) -> Answer<bool> {
    run(&state, caller, "group.unpin_message", async move |tx| {
        service::unpin_message(tx, caller.user, body.id, body.message_id).await
    })
    .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MuteAllRequest {
    id: GroupId,
    muted_all: bool,
}

/// PUT `/im/group/mute-all`.
pub async fn mute_all(state: web::Data<AppState>, caller: Caller, Body(body): Body<MuteAllRequest>) -> Answer<bool> {
    run(&state, caller, "group.mute_all", async move |tx| {
        service::mute_all(tx, caller.user, body.id, body.muted_all).await
    })
    .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MuteMemberRequest {
    id: GroupId,
    user_id: UserId,
    #[serde(deserialize_with = "deserialize_integer")]
    muted_seconds: i64,
}

/// PUT `/im/group/mute-member`.
pub async fn mute_member(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<MuteMemberRequest>,
) -> Answer<bool> {
    if !(0..=i64::from(i32::MAX)).contains(&body.muted_seconds) {
        return Err(AppError::Malformed("parameter incorrect: mutedSeconds must be 0 to 2147483647".into()));
    }
    run(&state, caller, "group.mute_member", async move |tx| {
        service::mute_member(tx, caller.user, body.id, body.user_id, body.muted_seconds).await
    })
    .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelMuteRequest {
    id: GroupId,
    user_id: UserId,
}

/// PUT `/im/group/cancel-mute-member`.
pub async fn cancel_mute_member(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<CancelMuteRequest>,
) -> Answer<bool> {
    run(&state, caller, "group.cancel_mute_member", async move |tx| {
        service::cancel_mute_member(tx, caller.user, body.id, body.user_id).await
    })
    .await?;
    Ok(Reply(true))
}
