//! Requests to join groups (`contract/04` section 5.5).

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params, StatePullParams, check_length, check_source};
use super::response::{Answer, Reply};
use crate::domain::ids::{GroupId, RequestId, deserialize_optional_integer};
use crate::domain::refusal::Refusal;
use crate::protocol::group_payload::GroupRequestBody;
use crate::service::group_requests::{self as service, Agreement};
use crate::service::groups::LOCKS;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyRequest {
    group_id: GroupId,
    apply_content: Option<String>,
    #[serde(default, deserialize_with = "deserialize_optional_integer")]
    add_source: Option<i64>,
}

/// POST `/im/group-request/apply`. `data` is null when the caller is a member at once.
pub async fn apply(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<ApplyRequest>,
) -> Answer<Option<RequestId>> {
    check_length("applyContent", body.apply_content.as_deref().unwrap_or_default(), 255)?;
    let add_source = check_source(body.add_source)?;
    let id = state
        .writer
        .run(Some(caller.user), "group_request.apply", LOCKS, async move |tx| {
            service::apply(tx, caller.user, body.group_id, body.apply_content.as_deref(), add_source).await
        })
        .await?;
    Ok(Reply(id))
}

#[derive(Deserialize)]
pub struct IdParams {
    id: RequestId,
}

/// PUT `/im/group-request/agree?id=`.
pub async fn agree(state: web::Data<AppState>, caller: Caller, Params(params): Params<IdParams>) -> Answer<bool> {
    let agreement = state
        .writer
        .run(Some(caller.user), "group_request.agree", LOCKS, async move |tx| {
            service::agree(tx, caller.user, params.id).await
        })
        .await?;
    match agreement {
        Agreement::Joined => Ok(Reply(true)),
        Agreement::AlreadyMember => Err(Refusal::AlreadyGroupMember.into()),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefuseParams {
    id: RequestId,
    handle_content: Option<String>,
}

/// PUT `/im/group-request/refuse?id=&handleContent=`.
pub async fn refuse(state: web::Data<AppState>, caller: Caller, Params(params): Params<RefuseParams>) -> Answer<bool> {
    check_length("handleContent", params.handle_content.as_deref().unwrap_or_default(), 255)?;
    state
        .writer
        .run(Some(caller.user), "group_request.refuse", LOCKS, async move |tx| {
            service::refuse(tx, caller.user, params.id, params.handle_content.as_deref()).await
        })
        .await?;
    Ok(Reply(true))
}

/// GET `/im/group-request/unhandled-list`.
pub async fn unhandled(state: web::Data<AppState>, caller: Caller) -> Answer<Vec<GroupRequestBody>> {
    Ok(Reply(state.readers.run(async move |db| Ok(service::list_unhandled(db, caller.user).await?)).await?))
}

/// GET `/im/group-request/pull`.
pub async fn pull(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<StatePullParams>,
) -> Answer<Vec<GroupRequestBody>> {
    let cursor = params.cursor();
    Ok(Reply(state.readers.run(async move |db| service::pull(db, caller.user, cursor, params.limit).await).await?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupParams {
    group_id: GroupId,
}

/// GET `/im/group-request/list-by-group?groupId=`.
pub async fn list_by_group(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<GroupParams>,
) -> Answer<Vec<GroupRequestBody>> {
    Ok(Reply(state.readers.run(async move |db| service::list_of_group(db, caller.user, params.group_id).await).await?))
}

/// GET `/im/group-request/get?id=`.
pub async fn get(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<IdParams>,
) -> Answer<Option<GroupRequestBody>> {
    Ok(Reply(state.readers.run(async move |db| Ok(service::get(db, caller.user, params.id).await?)).await?))
}
