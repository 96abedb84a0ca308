//! Members of groups (`contract/04` section 5.4).

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params, check_length, optional_integer};
use super::response::{Answer, Reply};
use crate::domain::ids::{GroupId, UserId};
use crate::error::AppError;
use crate::protocol::group_payload::MemberBody;
use crate::service::groups::{self as service, LOCKS, MemberUpdate};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRequest {
    group_id: GroupId,
    display_user_name: Option<String>,
    group_remark: Option<String>,
    silent: Option<bool>,
}

/// PUT `/im/group-member/update`.
pub async fn update(state: web::Data<AppState>, caller: Caller, Body(body): Body<UpdateRequest>) -> Answer<bool> {
    check_length("displayUserName", body.display_user_name.as_deref().unwrap_or_default(), 64)?;
    check_length("groupRemark", body.group_remark.as_deref().unwrap_or_default(), 64)?;
    let UpdateRequest { group_id, display_user_name, group_remark, silent } = body;
    let update = MemberUpdate { group: group_id, display_user_name, group_remark, silent };
    state
        .writer
        .run(Some(caller.user), "group.update_member", LOCKS, async move |tx| {
            service::update_member(tx, caller.user, &update).await
        })
        .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetParams {
    #[serde(default, deserialize_with = "optional_integer")]
    id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    group_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    user_id: Option<i64>,
}

/// GET `/im/group-member/get`, by `id` or by `groupId` and `userId`.
pub async fn get(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<GetParams>,
) -> Answer<Option<MemberBody>> {
    let user = caller.user;
    let member = match (params.id, params.group_id, params.user_id) {
        (Some(id), _, _) => state.readers.run(async move |db| service::get_member_by_id(db, user, id).await).await?,
        (None, Some(group), Some(member)) => {
            let (group, member) = (GroupId(group), UserId(member));
            state.readers.run(async move |db| service::get_member(db, user, group, member).await).await?
        }
        _ => return Err(AppError::Malformed("parameter missing: id, or groupId and userId".into())),
    };
    Ok(Reply(member))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupParams {
    group_id: GroupId,
}

/// GET `/im/group-member/list?groupId=`.
pub async fn list(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<GroupParams>,
) -> Answer<Vec<MemberBody>> {
    Ok(Reply(state.readers.run(async move |db| service::list_members(db, caller.user, params.group_id).await).await?))
}
