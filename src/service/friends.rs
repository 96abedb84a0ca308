//! Friendships: applying and agreeing (`contract/03` R1, R2).

use super::Tx;
use super::private_messages::store_server_message;
pub use crate::db::friend_requests::Application;
use crate::db::friend_requests::{self, AGREED, UNHANDLED};
use crate::db::friends::{self, NewFriend};
use crate::db::users::{self, STATUS_ENABLED};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::friendship::{self, check_apply};
use crate::domain::ids::{RequestId, UserId};
use crate::domain::private_message::{RECEIPT_NONE, STATUS_NORMAL};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::frame::FrameClass;
use crate::protocol::payload::{
    FriendAddContent, FriendRequestApprovedPayload, FriendRequestReceivedPayload, PrivateMessageBody,
};

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

/// The target still has the applicant as a friend: only the applicant's own devices hear of it.
async fn re_add(tx: &mut Tx<'_>, application: &Application) -> Result<(), AppError> {
    let (from, to) = (application.from, application.to);
    let stamp = tx.stamp()?;
    let display_name = application.display_name.as_deref().unwrap_or_default();
    let row = NewFriend { user: from, friend: to, display_name, add_source: application.add_source, stamp };
    friends::become_friend(tx.db, &row).await?;
    let content = FriendAddContent { operator_user_id: to, friend_user_id: to };
    let body = PrivateMessageBody {
        id: None,
        client_message_id: super::private_messages::server_message_id(),
        sender_id: from,
        receiver_id: to,
        r#type: ContentType::FriendAdd.number(),
        content: to_json(&content)?,
        status: STATUS_NORMAL,
        receipt_status: RECEIPT_NONE,
        send_time: tx.now,
    };
    tx.notify(vec![from], FrameClass::State, ConversationType::Private, ContentType::FriendAdd, &body)?;
    Ok(())
}

async fn request(tx: &mut Tx<'_>, application: &Application) -> Result<RequestId, AppError> {
    let (from, to) = (application.from, application.to);
    let stamp = tx.stamp()?;
    let id = friend_requests::apply(tx.db, application, stamp).await?;
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

/// Agrees to a request addressed to me: both rows become active, and a line in the chat says so. Needs `clock` and
/// `private`.
pub async fn agree(tx: &mut Tx<'_>, user: UserId, id: RequestId) -> Result<(), AppError> {
    let request = friend_requests::get_by_id(tx.db, id).await?.ok_or(Refusal::FriendRequestNotFound)?;
    if request.to_user_id != user {
        return Err(Refusal::FriendRequestNotToMe.into());
    }
    if request.handle_result != UNHANDLED {
        return Err(Refusal::FriendRequestHandled.into());
    }
    let stamp = tx.stamp()?;
    if !friend_requests::handle(tx.db, id, AGREED, None, stamp).await? {
        return Err(Refusal::FriendRequestHandled.into());
    }
    let (from, to, add_source) = (request.from_user_id, request.to_user_id, request.add_source);
    let remark = request.display_name.unwrap_or_default();
    let rows = [
        NewFriend { user: from, friend: to, display_name: &remark, add_source, stamp },
        NewFriend { user: to, friend: from, display_name: "", add_source, stamp },
    ];
    for row in &rows {
        friends::become_friend(tx.db, row).await?;
    }
    let content = to_json(&FriendAddContent { operator_user_id: from, friend_user_id: to })?;
    store_server_message(tx, from, to, ContentType::FriendAdd, content).await?;
    let payload = FriendRequestApprovedPayload { operator_user_id: to, friend_user_id: to, request_id: id };
    let content_type = ContentType::FriendRequestApproved;
    tx.notify(vec![from], FrameClass::State, ConversationType::None, content_type, &payload)?;
    Ok(())
}

fn to_json(value: &impl serde::Serialize) -> Result<String, AppError> {
    serde_json::to_string(value).map_err(|error| AppError::Internal(error.to_string()))
}
