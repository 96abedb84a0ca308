//! Messages in the eyes of operators (`contract/05` E3). Whoever looks leaves a line in the log: who, and at whose.

use actix_web::{HttpRequest, web};
use serde::Deserialize;
use tracing::info;

use super::page::{PageParams, time_range};
use crate::domain::ids::MessageId;
use crate::http::AppState;
use crate::http::caller::Caller;
use crate::http::input::{Params, check_length, optional_integer};
use crate::http::response::{Answer, Reply};
use crate::protocol::manager_payload::{ManagedGroupMessageBody, ManagedPrivateMessageBody, PageBody};
use crate::service::manager::messages::{self as service, GroupMessageFilter, PrivateMessageFilter};

/// Longest text that contents are searched for.
const MAX_SEARCHED: usize = 200;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivateParams {
    #[serde(default, deserialize_with = "optional_integer")]
    sender_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    receiver_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    r#type: Option<i64>,
    content: Option<String>,
    #[serde(default, deserialize_with = "optional_integer")]
    status: Option<i64>,
}

/// GET `/im/manager/message/private/page`.
pub async fn private_page(
    state: web::Data<AppState>,
    caller: Caller,
    request: HttpRequest,
    Params(page): Params<PageParams>,
    Params(params): Params<PrivateParams>,
) -> Answer<PageBody<ManagedPrivateMessageBody>> {
    let page = page.page()?;
    let send_time = time_range(request.query_string(), "sendTime", state.utc_offset())?;
    check_length("content", params.content.as_deref().unwrap_or_default(), MAX_SEARCHED)?;
    let PrivateParams { sender_id, receiver_id, r#type, content, status } = params;
    info!(operator = caller.user.0, sender = sender_id, receiver = receiver_id, "an operator reads private messages");
    let filter = PrivateMessageFilter { sender_id, receiver_id, content_type: r#type, content, status, send_time };
    let paged = state.manager_readers.run(async move |db| Ok(service::list_private(db, &filter, page).await?)).await?;
    Ok(Reply(paged.into()))
}

#[derive(Deserialize)]
pub struct IdParams {
    id: MessageId,
}

/// GET `/im/manager/message/private/get?id=`.
pub async fn get_private(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<IdParams>,
) -> Answer<Option<ManagedPrivateMessageBody>> {
    let id = params.id;
    info!(operator = caller.user.0, message = id.0, "an operator reads a private message");
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::get_private(db, id).await?)).await?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupParams {
    #[serde(default, deserialize_with = "optional_integer")]
    group_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    sender_id: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    r#type: Option<i64>,
    content: Option<String>,
    #[serde(default, deserialize_with = "optional_integer")]
    status: Option<i64>,
}

/// GET `/im/manager/message/group/page`.
pub async fn group_page(
    state: web::Data<AppState>,
    caller: Caller,
    request: HttpRequest,
    Params(page): Params<PageParams>,
    Params(params): Params<GroupParams>,
) -> Answer<PageBody<ManagedGroupMessageBody>> {
    let page = page.page()?;
    let send_time = time_range(request.query_string(), "sendTime", state.utc_offset())?;
    check_length("content", params.content.as_deref().unwrap_or_default(), MAX_SEARCHED)?;
    let GroupParams { group_id, sender_id, r#type, content, status } = params;
    info!(operator = caller.user.0, group = group_id, sender = sender_id, "an operator reads group messages");
    let filter = GroupMessageFilter { group_id, sender_id, content_type: r#type, content, status, send_time };
    let paged = state.manager_readers.run(async move |db| Ok(service::list_group(db, &filter, page).await?)).await?;
    Ok(Reply(paged.into()))
}

/// GET `/im/manager/message/group/get?id=`.
pub async fn get_group(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<IdParams>,
) -> Answer<Option<ManagedGroupMessageBody>> {
    let id = params.id;
    info!(operator = caller.user.0, message = id.0, "an operator reads a group message");
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::get_group(db, id).await?)).await?))
}
