//! Groups in the hands of operators (`contract/05` E2).

use actix_web::{HttpRequest, web};
use serde::Deserialize;
use tracing::info;

use super::page::{PageParams, time_range};
use crate::domain::ids::GroupId;
use crate::http::AppState;
use crate::http::caller::Caller;
use crate::http::input::{Body, Params, check_length, check_text, optional_boolean, optional_integer};
use crate::http::response::{Answer, Reply};
use crate::protocol::manager_payload::{ManagedGroupBody, ManagedGroupRequestBody, ManagedMemberBody, PageBody};
use crate::service::groups::{self as verbs, LOCKS};
use crate::service::manager::groups::{self as service, GroupFilter, GroupRequestFilter};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupParams {
    name: Option<String>,
    #[serde(default, deserialize_with = "optional_integer")]
    owner_user_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    status: Option<i64>,
    #[serde(default, deserialize_with = "optional_boolean")]
    banned: Option<bool>,
}

/// GET `/im/manager/group/page`.
pub async fn page(
    state: web::Data<AppState>,
    request: HttpRequest,
    Params(page): Params<PageParams>,
    Params(params): Params<GroupParams>,
) -> Answer<PageBody<ManagedGroupBody>> {
    let page = page.page()?;
    let create_time = time_range(request.query_string(), "createTime", state.utc_offset())?;
    check_length("name", params.name.as_deref().unwrap_or_default(), 64)?;
    let GroupParams { name, owner_user_id, status, banned } = params;
    let filter = GroupFilter { name, owner_user_id, status, banned, create_time };
    let paged = state.manager_readers.run(async move |db| Ok(service::list_groups(db, &filter, page).await?)).await?;
    Ok(Reply(paged.into()))
}

#[derive(Deserialize)]
pub struct IdParams {
    id: GroupId,
}

/// GET `/im/manager/group/get?id=`.
pub async fn get_one(state: web::Data<AppState>, Params(params): Params<IdParams>) -> Answer<Option<ManagedGroupBody>> {
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::get_group(db, params.id).await?)).await?))
}

#[derive(Deserialize)]
pub struct BanRequest {
    id: GroupId,
    reason: String,
}

/// PUT `/im/manager/group/ban`.
pub async fn ban(state: web::Data<AppState>, caller: Caller, Body(body): Body<BanRequest>) -> Answer<bool> {
    check_text("reason", &body.reason, 200)?;
    let (operator, group) = (caller.user, body.id);
    state
        .writer
        .run(Some(operator), "group.ban", LOCKS, async move |tx| verbs::ban(tx, operator, group, &body.reason).await)
        .await?;
    info!(operator = operator.0, group = group.0, "a group is banned");
    Ok(Reply(true))
}

/// PUT `/im/manager/group/unban?id=`.
pub async fn unban(state: web::Data<AppState>, caller: Caller, Params(params): Params<IdParams>) -> Answer<bool> {
    let (operator, group) = (caller.user, params.id);
    state
        .writer
        .run(Some(operator), "group.unban", LOCKS, async move |tx| verbs::unban(tx, operator, group).await)
        .await?;
    info!(operator = operator.0, group = group.0, "the ban of a group is lifted");
    Ok(Reply(true))
}

/// DELETE `/im/manager/group/dissolve?id=`.
pub async fn dissolve(state: web::Data<AppState>, caller: Caller, Params(params): Params<IdParams>) -> Answer<bool> {
    let (operator, group) = (caller.user, params.id);
    state
        .writer
        .run(Some(operator), "group.dissolve_as_operator", LOCKS, async move |tx| {
            verbs::dissolve_as_operator(tx, operator, group).await
        })
        .await?;
    info!(operator = operator.0, group = group.0, "a group is dissolved by an operator");
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberParams {
    group_id: GroupId,
}

/// GET `/im/manager/group/member/list?groupId=`.
pub async fn members(
    state: web::Data<AppState>,
    Params(params): Params<MemberParams>,
) -> Answer<Vec<ManagedMemberBody>> {
    let group = params.group_id;
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::list_members(db, group).await?)).await?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestParams {
    #[serde(default, deserialize_with = "optional_integer")]
    group_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    user_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    inviter_user_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    handle_result: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    add_source: Option<i64>,
}

/// GET `/im/manager/group-request/page`.
pub async fn request_page(
    state: web::Data<AppState>,
    request: HttpRequest,
    Params(page): Params<PageParams>,
    Params(params): Params<RequestParams>,
) -> Answer<PageBody<ManagedGroupRequestBody>> {
    let page = page.page()?;
    let create_time = time_range(request.query_string(), "createTime", state.utc_offset())?;
    let RequestParams { group_id, user_id, inviter_user_id, handle_result, add_source } = params;
    let filter = GroupRequestFilter { group_id, user_id, inviter_user_id, handle_result, add_source, create_time };
    let paged = state.manager_readers.run(async move |db| Ok(service::list_requests(db, &filter, page).await?)).await?;
    Ok(Reply(paged.into()))
}
