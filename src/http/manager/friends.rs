//! Friendships and friend requests in the eyes of operators (`contract/05` E1).

use actix_web::{HttpRequest, web};
use serde::Deserialize;

use super::page::{PageParams, time_range};
use crate::http::AppState;
use crate::http::input::{Params, optional_boolean, optional_integer};
use crate::http::response::{Answer, Reply};
use crate::protocol::manager_payload::{ManagedFriendBody, ManagedFriendRequestBody, PageBody};
use crate::service::manager::friends::{self as service, FriendFilter, FriendRequestFilter};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendParams {
    #[serde(default, deserialize_with = "optional_integer")]
    user_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    friend_user_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    status: Option<i64>,
    #[serde(default, deserialize_with = "optional_boolean")]
    silent: Option<bool>,
}

/// GET `/im/manager/friend/page`.
pub async fn page(
    state: web::Data<AppState>,
    request: HttpRequest,
    Params(page): Params<PageParams>,
    Params(params): Params<FriendParams>,
) -> Answer<PageBody<ManagedFriendBody>> {
    let page = page.page()?;
    let add_time = time_range(request.query_string(), "addTime", state.utc_offset())?;
    let FriendParams { user_id, friend_user_id, status, silent } = params;
    let filter = FriendFilter { user_id, friend_user_id, status, silent, add_time };
    let paged = state.manager_readers.run(async move |db| Ok(service::list_friends(db, &filter, page).await?)).await?;
    Ok(Reply(paged.into()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestParams {
    #[serde(default, deserialize_with = "optional_integer")]
    from_user_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    to_user_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    handle_result: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    add_source: Option<i64>,
}

/// GET `/im/manager/friend-request/page`.
pub async fn request_page(
    state: web::Data<AppState>,
    request: HttpRequest,
    Params(page): Params<PageParams>,
    Params(params): Params<RequestParams>,
) -> Answer<PageBody<ManagedFriendRequestBody>> {
    let page = page.page()?;
    let create_time = time_range(request.query_string(), "createTime", state.utc_offset())?;
    let RequestParams { from_user_id, to_user_id, handle_result, add_source } = params;
    let filter = FriendRequestFilter { from_user_id, to_user_id, handle_result, add_source, create_time };
    let paged = state.manager_readers.run(async move |db| Ok(service::list_requests(db, &filter, page).await?)).await?;
    Ok(Reply(paged.into()))
}
