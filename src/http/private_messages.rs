//! Private messages (`contract/02` section 3) and typing.

use std::sync::Arc;

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params, optional_integer};
use super::response::{Answer, Reply};
use crate::domain::content::{Content, ContentType, check_client_message_id, content_hash, parse_content};
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{MessageId, UserId, deserialize_integer};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::frame::{Frame, FrameClass, Notification};
use crate::protocol::payload::{PrivateMessageBody, TypingPayload};
use crate::service::Locks;
use crate::service::conversation_reads::{Conversation, ReadReport, check_enabled};
use crate::service::private_messages::{self as service, PrivateDraft};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendPrivateMessageRequest {
    client_message_id: String,
    receiver_id: UserId,
    #[serde(deserialize_with = "deserialize_integer")]
    r#type: i64,
    content: String,
    receipt: Option<bool>,
}

impl SendPrivateMessageRequest {
    fn into_draft(self, sender: UserId) -> Result<PrivateDraft, AppError> {
        let (content_type, content) = check_form(&self.client_message_id, self.r#type, &self.content)?;
        let content_hash = content_hash(self.receiver_id.0, content_type.number(), &content);
        Ok(PrivateDraft {
            sender,
            receiver: self.receiver_id,
            client_message_id: self.client_message_id,
            content_type: content_type.number(),
            content,
            content_hash,
            receipt: self.receipt,
        })
    }
}

/// Checks the form of a message that somebody wants to send, so that no single command can fail a batch.
pub fn check_form(client_message_id: &str, number: i64, content: &str) -> Result<(ContentType, Content), AppError> {
    if !check_client_message_id(client_message_id) {
        return Err(AppError::Malformed(
            "parameter incorrect: clientMessageId must be 1 to 64 printable ASCII characters without spaces".into(),
        ));
    }
    let content_type = ContentType::from_number(number)
        .filter(|content_type| content_type.is_normal())
        .ok_or_else(|| AppError::Malformed("parameter incorrect: type cannot be sent by users".into()))?;
    if content.is_empty() {
        return Err(AppError::Malformed("parameter incorrect: content is empty".into()));
    }
    let content = parse_content(content_type, content).map_err(|error| Refusal::ContentInvalid(error.0))?;
    Ok((content_type, content))
}

/// POST `/im/message/private/send`.
pub async fn send(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<SendPrivateMessageRequest>,
) -> Answer<PrivateMessageBody> {
    let mut draft = body.into_draft(caller.user)?;
    state.words.mark(&state.readers, draft.content_type, &mut draft.content).await?;
    Ok(Reply(state.writer.send_private(draft).await?.into()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullParams {
    pub min_id: MessageId,
    #[serde(deserialize_with = "deserialize_integer")]
    pub size: i64,
}

/// GET `/im/message/private/pull`.
pub async fn pull(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<PullParams>,
) -> Answer<Vec<PrivateMessageBody>> {
    let now = state.clock.now();
    let (rules, window) = (state.config.message.clone(), state.private_window.clone());
    let page = state
        .readers
        .run(async move |db| service::pull(db, caller.user, params.min_id, params.size, now, &rules, &window).await)
        .await?;
    Ok(Reply(page.into_iter().map(PrivateMessageBody::from).collect()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryParams {
    receiver_id: UserId,
    #[serde(default, deserialize_with = "optional_integer")]
    max_id: Option<i64>,
    #[serde(deserialize_with = "deserialize_integer")]
    limit: i64,
}

/// GET `/im/message/private/list`.
pub async fn list(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<HistoryParams>,
) -> Answer<Vec<PrivateMessageBody>> {
    if !(1..=200).contains(&params.limit) {
        return Err(AppError::Malformed("parameter incorrect: limit must be 1 to 200".into()));
    }
    let before = params.max_id.map(MessageId);
    let page = state
        .readers
        .run(
            async move |db| Ok(service::list_history(db, caller.user, params.receiver_id, before, params.limit).await?),
        )
        .await?;
    Ok(Reply(page.into_iter().map(PrivateMessageBody::from).collect()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    receiver_id: UserId,
    message_id: MessageId,
}

/// PUT `/im/message/private/read`.
pub async fn read(state: web::Data<AppState>, caller: Caller, Params(params): Params<ReadParams>) -> Answer<bool> {
    let conversation = Conversation::With(params.receiver_id);
    check_enabled(conversation, &state.config.message)?;
    let report = ReadReport { reader: caller.user, conversation, message: params.message_id };
    state.writer.report_read(report).await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerParams {
    peer_id: UserId,
}

/// GET `/im/message/private/max-read-message-id`.
pub async fn max_read_message_id(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<PeerParams>,
) -> Answer<Option<MessageId>> {
    let rules = state.config.message.clone();
    let position = state
        .readers
        .run(async move |db| service::max_read_message_id(db, caller.user, params.peer_id, &rules).await)
        .await?;
    Ok(Reply(position))
}

#[derive(Deserialize)]
pub struct MessageParams {
    id: MessageId,
}

/// DELETE `/im/message/private/recall`.
pub async fn recall(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<MessageParams>,
) -> Answer<PrivateMessageBody> {
    let locks = Locks::CLOCK.and(Locks::PRIVATE);
    let message = state
        .writer
        .run(Some(caller.user), "private_message.recall", locks, async move |tx| {
            service::recall_private_message(tx, caller.user, params.id).await
        })
        .await?;
    Ok(Reply(message.into()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypingParams {
    receiver_id: UserId,
}

/// PUT `/im/message/private/typing?receiverId=`: tells the friend's online devices, at most once per second; `true`
/// claims no delivery (`design.md` section 12).
pub async fn typing(state: web::Data<AppState>, caller: Caller, Params(params): Params<TypingParams>) -> Answer<bool> {
    let (sender, receiver) = (caller.user, params.receiver_id);
    let now = state.clock.now();
    if state.typing.count(&(sender, receiver), now) > 0 {
        return Ok(Reply(true));
    }
    state.readers.run(async move |db| service::check_may_type(db, sender, receiver).await).await?;
    if state.typing.add((sender, receiver), now) > 1 {
        return Ok(Reply(true));
    }
    let payload = TypingPayload { sender_id: sender, receiver_id: receiver };
    let content_type = ContentType::Typing.number();
    let frame = Frame::im_notification(FrameClass::Signal, ConversationType::None, content_type, &payload)
        .map_err(|error| AppError::Internal(error.to_string()))?;
    let receivers: Arc<[UserId]> = Arc::from([receiver]);
    // A registry that cannot take it drops it: nobody relies on a signal.
    let _ = state.registry.notify(vec![Notification { receivers, frame }]);
    Ok(Reply(true))
}
