//! Friend requests (`contract/03` R1–R6).

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params, StatePullParams, check_length, check_limit, check_source, optional_integer};
use super::response::{Answer, Reply};
use crate::domain::ids::{RequestId, UserId, deserialize_integer, deserialize_optional_integer};
use crate::error::AppError;
use crate::protocol::friend::FriendRequestBody;
use crate::service::Locks;
use crate::service::friend_requests::{self as service, Application, FriendRequestView};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyRequest {
    to_user_id: UserId,
    apply_content: Option<String>,
    display_name: Option<String>,
    #[serde(default, deserialize_with = "deserialize_optional_integer")]
    add_source: Option<i64>,
}

impl ApplyRequest {
    fn into_application(self, from: UserId) -> Result<Application, AppError> {
        check_length("applyContent", self.apply_content.as_deref().unwrap_or_default(), 255)?;
        check_length("displayName", self.display_name.as_deref().unwrap_or_default(), 16)?;
        Ok(Application {
            from,
            to: self.to_user_id,
            apply_content: self.apply_content,
            display_name: self.display_name,
            add_source: check_source(self.add_source)?,
        })
    }
}

impl From<FriendRequestView> for FriendRequestBody {
    fn from(FriendRequestView { request, from, to }: FriendRequestView) -> Self {
        let (from_nickname, from_avatar) = from.map_or((None, None), |user| (Some(user.nickname), user.avatar));
        let (to_nickname, to_avatar) = to.map_or((None, None), |user| (Some(user.nickname), user.avatar));
        FriendRequestBody {
            id: request.id,
            from_user_id: request.from_user_id,
            to_user_id: request.to_user_id,
            handle_result: request.handle_result,
            apply_content: request.apply_content,
            handle_content: request.handle_content,
            add_source: request.add_source,
            handle_time: request.handle_time,
            create_time: request.create_time,
            update_time: request.update_time,
            from_nickname,
            from_avatar,
            to_nickname,
            to_avatar,
        }
    }
}

/// POST `/im/friend-request/apply`. `data` is null when the friendship came back without a request.
pub async fn apply(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<ApplyRequest>,
) -> Answer<Option<RequestId>> {
    let application = body.into_application(caller.user)?;
    let target = application.to;
    let id = state
        .writer
        .run(Some(caller.user), "friend.apply", Locks::CLOCK, async move |tx| service::apply(tx, &application).await)
        .await?;
    if let (true, Some(id)) = (state.config.friend.auto_accept, id) {
        // A failure leaves a request that can be agreed to by hand.
        if let Err(error) = run_agree(&state, target, id).await {
            tracing::warn!(error = %error, "a friend request could not be accepted by itself");
        }
    }
    Ok(Reply(id))
}

#[derive(Deserialize)]
pub struct RequestParams {
    id: RequestId,
}

/// PUT `/im/friend-request/agree?id=`.
pub async fn agree(state: web::Data<AppState>, caller: Caller, Params(params): Params<RequestParams>) -> Answer<bool> {
    run_agree(&state, caller.user, params.id).await?;
    Ok(Reply(true))
}

async fn run_agree(state: &AppState, user: UserId, id: RequestId) -> Result<(), AppError> {
    let agree = async move |tx: &mut crate::service::Tx<'_>| service::agree(tx, user, id).await;
    state.writer.run(Some(user), "friend.agree", service::AGREE_LOCKS, agree).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefuseParams {
    id: RequestId,
    handle_content: Option<String>,
}

/// PUT `/im/friend-request/refuse?id=&handleContent=`.
pub async fn refuse(state: web::Data<AppState>, caller: Caller, Params(params): Params<RefuseParams>) -> Answer<bool> {
    check_length("handleContent", params.handle_content.as_deref().unwrap_or_default(), 255)?;
    state
        .writer
        .run(Some(caller.user), "friend.refuse", Locks::CLOCK, async move |tx| {
            service::refuse(tx, caller.user, params.id, params.handle_content.as_deref()).await
        })
        .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    #[serde(default, deserialize_with = "optional_integer")]
    max_id: Option<i64>,
    #[serde(deserialize_with = "deserialize_integer")]
    limit: i64,
}

/// GET `/im/friend-request/list?maxId=&limit=`: newest change first.
pub async fn list(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Answer<Vec<FriendRequestBody>> {
    check_limit(params.limit)?;
    let max_id = params.max_id.map(RequestId);
    let page = state.readers.run(async move |db| service::list(db, caller.user, max_id, params.limit).await).await?;
    Ok(Reply(page.into_iter().map(FriendRequestBody::from).collect()))
}

/// GET `/im/friend-request/pull?lastUpdateTime=&lastId=&limit=`.
pub async fn pull(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<StatePullParams>,
) -> Answer<Vec<FriendRequestBody>> {
    check_limit(params.limit)?;
    let cursor = params.cursor();
    let page = state.readers.run(async move |db| service::pull(db, caller.user, cursor, params.limit).await).await?;
    Ok(Reply(page.into_iter().map(FriendRequestBody::from).collect()))
}

/// GET `/im/friend-request/get?id=`: null for what I neither made nor got.
pub async fn get(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<RequestParams>,
) -> Answer<Option<FriendRequestBody>> {
    let view = state.readers.run(async move |db| service::get(db, caller.user, params.id).await).await?;
    Ok(Reply(view.map(FriendRequestBody::from)))
}
