//! Friend requests: applying, agreeing, refusing, and reading them (`contract/03` R1–R6).

use std::collections::HashMap;

use super::friends::{re_add, to_json};
use super::private_messages::store_server_message;
use super::{Locks, Tx};
use crate::db::Db;
pub use crate::db::friend_requests::Application;
use crate::db::friend_requests::{self as table, AGREED, FriendRequest, REFUSED, UNHANDLED};
use crate::db::friends::{self, NewFriend};
use crate::db::sequence::{Counter, horizon};
use crate::db::users::{self, STATUS_ENABLED, User};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::friendship::{self, check_apply};
use crate::domain::ids::{MAX_ID, RequestId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::frame::FrameClass;
use crate::protocol::friend::{
    FriendPayload, FriendRequestApprovedPayload, FriendRequestReceivedPayload, FriendRequestRejectedPayload,
};

/// What [`agree`] locks: it changes relations and stores a chat line.
pub const AGREE_LOCKS: Locks = Locks::CLOCK.and(Locks::PRIVATE);

/// A request with what the accounts of both sides say now; `None` for an account that is gone.
#[derive(Clone, Debug)]
pub struct FriendRequestView {
    pub request: FriendRequest,
    pub from: Option<User>,
    pub to: Option<User>,
}

/// Asks `application.to` for friendship. `None` when the applicant's row came back without a request. Needs the clock.
pub async fn apply(tx: &mut Tx<'_>, application: &Application) -> Result<Option<RequestId>, AppError> {
    let (from, to) = (application.from, application.to);
    if from == to {
        return Err(Refusal::AddSelf.into());
    }
    let target = users::get_by_id(tx.db, to).await?.ok_or(Refusal::UserNotFound)?;
    if target.status != STATUS_ENABLED {
        return Err(Refusal::UserDisabled(target.nickname).into());
    }
    let mine = friends::get_side(tx.db, from, to).await?;
    let theirs = friends::get_side(tx.db, to, from).await?;
    match check_apply(from, to, mine, theirs)? {
        friendship::Application::ReAdd => re_add(tx, application).await.map(|()| None),
        friendship::Application::Request => request(tx, application).await.map(Some),
    }
}

async fn request(tx: &mut Tx<'_>, application: &Application) -> Result<RequestId, AppError> {
    let (from, to) = (application.from, application.to);
    let stamp = tx.stamp()?;
    let id = table::apply(tx.db, application, stamp).await?;
    let applicant = users::get_by_id(tx.db, from).await?;
    let payload = FriendRequestReceivedPayload {
        operator_user_id: from,
        friend_user_id: from,
        request_id: id,
        apply_content: application.apply_content.clone(),
        add_source: application.add_source,
        from_nickname: applicant.as_ref().map(|user| user.nickname.clone()),
        from_avatar: applicant.and_then(|user| user.avatar),
    };
    let content_type = ContentType::FriendRequestReceived;
    tx.notify(vec![to], FrameClass::State, ConversationType::None, content_type, &payload)?;
    Ok(id)
}

/// Agrees to a request addressed to me: both rows become active, and a line in the chat says so. Needs
/// [`AGREE_LOCKS`].
pub async fn agree(tx: &mut Tx<'_>, user: UserId, id: RequestId) -> Result<(), AppError> {
    let (request, stamp) = handle(tx, user, id, AGREED, None).await?;
    let (from, to, add_source) = (request.from_user_id, request.to_user_id, request.add_source);
    let remark = request.display_name.unwrap_or_default();
    let rows = [
        NewFriend { user: from, friend: to, display_name: &remark, add_source, stamp },
        NewFriend { user: to, friend: from, display_name: "", add_source, stamp },
    ];
    for row in &rows {
        friends::become_friend(tx.db, row).await?;
    }
    let content = to_json(&FriendPayload { operator_user_id: from, friend_user_id: to })?;
    store_server_message(tx, from, to, ContentType::FriendAdd, content).await?;
    let payload = FriendRequestApprovedPayload { operator_user_id: to, friend_user_id: to, request_id: id };
    let content_type = ContentType::FriendRequestApproved;
    tx.notify(vec![from], FrameClass::State, ConversationType::None, content_type, &payload)?;
    Ok(())
}

/// Refuses a request addressed to me, with a reason or without. Needs the clock.
pub async fn refuse(tx: &mut Tx<'_>, user: UserId, id: RequestId, reason: Option<&str>) -> Result<(), AppError> {
    let (request, _) = handle(tx, user, id, REFUSED, reason).await?;
    let payload = FriendRequestRejectedPayload {
        operator_user_id: user,
        friend_user_id: user,
        request_id: id,
        handle_content: reason.map(str::to_owned),
    };
    let content_type = ContentType::FriendRequestRejected;
    tx.notify(vec![request.from_user_id], FrameClass::State, ConversationType::None, content_type, &payload)?;
    Ok(())
}

/// Handles an unhandled request addressed to me, once; the request as it was, and the stamp of the change.
async fn handle(
    tx: &mut Tx<'_>,
    user: UserId,
    id: RequestId,
    result: i32,
    content: Option<&str>,
) -> Result<(FriendRequest, i64), AppError> {
    let request = table::get_by_id(tx.db, id).await?.ok_or(Refusal::FriendRequestNotFound)?;
    if request.to_user_id != user {
        return Err(Refusal::FriendRequestNotToMe.into());
    }
    if request.handle_result != UNHANDLED {
        return Err(Refusal::FriendRequestHandled.into());
    }
    let stamp = tx.stamp()?;
    if !table::handle(tx.db, id, result, content, stamp).await? {
        return Err(Refusal::FriendRequestHandled.into());
    }
    Ok((request, stamp))
}

/// The request, if I made or got it (R6).
pub async fn get(db: &mut Db, user: UserId, id: RequestId) -> Result<Option<FriendRequestView>, AppError> {
    let request = get_own(db, user, id).await?;
    Ok(present(db, request.into_iter().collect()).await?.pop())
}

async fn get_own(db: &mut Db, user: UserId, id: RequestId) -> Result<Option<FriendRequest>, AppError> {
    let request = table::get_by_id(db, id).await?;
    Ok(request.filter(|request| request.from_user_id == user || request.to_user_id == user))
}

/// The requests that I made or got, newest change first, after the request `max_id` of an earlier page (R4). Nothing
/// when that is none of mine.
pub async fn list(
    db: &mut Db,
    user: UserId,
    max_id: Option<RequestId>,
    limit: i64,
) -> Result<Vec<FriendRequestView>, AppError> {
    let position = match max_id {
        None => (i64::MAX, RequestId(MAX_ID)),
        Some(id) => match get_own(db, user, id).await? {
            Some(last) => (last.update_time, last.id),
            None => return Ok(Vec::new()),
        },
    };
    let page = table::list_before(db, user, position, limit).await?;
    present(db, page).await
}

/// The requests that I made or got, after the cursor (stamp, id) (R5). Nothing above the clock's value read first is
/// returned, since the statements of one read may see different states.
pub async fn pull(
    db: &mut Db,
    user: UserId,
    cursor: Option<(i64, i64)>,
    limit: i64,
) -> Result<Vec<FriendRequestView>, AppError> {
    let newest = horizon(db, Counter::Clock).await?;
    let page = table::list_after(db, user, cursor, newest, limit).await?;
    present(db, page).await
}

/// Adds the accounts of both sides.
async fn present(db: &mut Db, requests: Vec<FriendRequest>) -> Result<Vec<FriendRequestView>, AppError> {
    let mut ids: Vec<UserId> = requests.iter().flat_map(|request| [request.from_user_id, request.to_user_id]).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let accounts: HashMap<UserId, User> =
        users::list_by_ids(db, &ids).await?.into_iter().map(|user| (user.id, user)).collect();
    let view = |request: FriendRequest| FriendRequestView {
        from: accounts.get(&request.from_user_id).cloned(),
        to: accounts.get(&request.to_user_id).cloned(),
        request,
    };
    Ok(requests.into_iter().map(view).collect())
}
