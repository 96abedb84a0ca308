//! Friends (`contract/03` F1–F7), and telling them of a changed profile (1209).

use std::sync::Arc;

use actix_web::web;
use serde::Deserialize;
use tracing::warn;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params, StatePullParams, check_length, check_limit, optional_boolean};
use super::response::{Answer, Reply};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::ids::UserId;
use crate::domain::pinyin::to_pinyin;
use crate::error::AppError;
use crate::protocol::frame::{Frame, FrameClass, Notification};
use crate::protocol::friend::{FriendBody, FriendPayload};
use crate::service::Locks;
use crate::service::friends::{self as service, Friend, FriendChange};

impl From<Friend> for FriendBody {
    fn from(Friend { row, nickname, avatar }: Friend) -> Self {
        FriendBody {
            id: row.id,
            friend_user_id: row.friend_user_id,
            silent: row.silent,
            display_name_pinyin: to_pinyin(&row.display_name),
            display_name: row.display_name,
            add_source: row.add_source,
            pinned: row.pinned,
            blocked: row.blocked,
            status: row.status,
            add_time: row.add_time,
            delete_time: row.delete_time,
            update_time: row.update_time,
            nickname_pinyin: nickname.as_deref().and_then(to_pinyin),
            nickname,
            avatar,
        }
    }
}

/// GET `/im/friend/list`.
pub async fn list(state: web::Data<AppState>, caller: Caller) -> Answer<Vec<FriendBody>> {
    let friends = state.readers.run(async move |db| service::list(db, caller.user).await).await?;
    Ok(Reply(friends.into_iter().map(FriendBody::from).collect()))
}

/// GET `/im/friend/pull?lastUpdateTime=&lastId=&limit=`.
pub async fn pull(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<StatePullParams>,
) -> Answer<Vec<FriendBody>> {
    check_limit(params.limit)?;
    let cursor = params.cursor();
    let page = state.readers.run(async move |db| service::pull(db, caller.user, cursor, params.limit).await).await?;
    Ok(Reply(page.into_iter().map(FriendBody::from).collect()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendParams {
    friend_user_id: UserId,
}

/// GET `/im/friend/get?friendUserId=`: null where there never was a row.
pub async fn get(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<FriendParams>,
) -> Answer<Option<FriendBody>> {
    let friend = state.readers.run(async move |db| service::get(db, caller.user, params.friend_user_id).await).await?;
    Ok(Reply(friend.map(FriendBody::from)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteParams {
    friend_user_id: UserId,
    /// Absent is `false`: the notification always carries a boolean, since the web client handles null badly
    /// (`contract/03` section 11, D4).
    #[serde(default, deserialize_with = "optional_boolean")]
    clear: Option<bool>,
}

/// DELETE `/im/friend/delete?friendUserId=&clear=`.
pub async fn delete(state: web::Data<AppState>, caller: Caller, Params(params): Params<DeleteParams>) -> Answer<bool> {
    let clear = params.clear.unwrap_or(false);
    state
        .writer
        .run(Some(caller.user), "friend.delete", Locks::CLOCK, async move |tx| {
            service::delete(tx, caller.user, params.friend_user_id, clear).await
        })
        .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRequest {
    friend_user_id: UserId,
    silent: Option<bool>,
    display_name: Option<String>,
    pinned: Option<bool>,
}

/// PUT `/im/friend/update`. An empty `displayName` removes the remark.
pub async fn update(state: web::Data<AppState>, caller: Caller, Body(body): Body<UpdateRequest>) -> Answer<bool> {
    check_length("displayName", body.display_name.as_deref().unwrap_or_default(), 16)?;
    let UpdateRequest { friend_user_id: friend, silent, display_name, pinned } = body;
    let change = FriendChange { silent, display_name, pinned };
    state
        .writer
        .run(Some(caller.user), "friend.update", Locks::CLOCK, async move |tx| {
            service::update(tx, caller.user, friend, &change).await
        })
        .await?;
    Ok(Reply(true))
}

/// PUT `/im/friend/block?friendUserId=`.
pub async fn block(state: web::Data<AppState>, caller: Caller, Params(params): Params<FriendParams>) -> Answer<bool> {
    state
        .writer
        .run(Some(caller.user), "friend.block", Locks::CLOCK, async move |tx| {
            service::block(tx, caller.user, params.friend_user_id).await
        })
        .await?;
    Ok(Reply(true))
}

/// PUT `/im/friend/unblock?friendUserId=`.
pub async fn unblock(state: web::Data<AppState>, caller: Caller, Params(params): Params<FriendParams>) -> Answer<bool> {
    state
        .writer
        .run(Some(caller.user), "friend.unblock", Locks::CLOCK, async move |tx| {
            service::unblock(tx, caller.user, params.friend_user_id).await
        })
        .await?;
    Ok(Reply(true))
}

/// Tells the mutual friends of users whose nickname or avatar has changed. To be called after the commit. It goes on
/// when the caller is dropped, and a failure is only logged: the change itself is done.
pub async fn announce_profiles(state: web::Data<AppState>, users: Vec<UserId>) {
    let telling = actix_web::rt::spawn(async move {
        for user in users {
            if let Err(error) = announce_profile(&state, user).await {
                warn!(error = %error, "friends were not told of a changed profile");
            }
        }
    });
    // Waited for, so that whoever changes many profiles is slowed down by the work he makes.
    let _ = telling.await;
}

/// Reads the receivers on a reader, in steps: one user can have thousands.
async fn announce_profile(state: &AppState, user: UserId) -> Result<(), AppError> {
    let payload = FriendPayload { operator_user_id: user, friend_user_id: user };
    let content_type = ContentType::FriendInfoUpdated.number();
    let frame = Frame::im_notification(FrameClass::State, ConversationType::None, content_type, &payload)
        .map_err(|error| AppError::Internal(error.to_string()))?;
    let mut position = Some(UserId(i64::MIN));
    while let Some(after) = position {
        let (friends, next) =
            state.readers.run(async move |db| service::mutual_friends_after(db, user, after).await).await?;
        position = next;
        if friends.is_empty() {
            continue;
        }
        let notification = Notification { receivers: Arc::from(friends), frame: frame.clone() };
        state.registry.notify(vec![notification]).map_err(|error| AppError::Internal(error.to_string()))?;
    }
    Ok(())
}
