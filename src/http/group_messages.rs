//! Group messages (`contract/02` section 4) and typing in groups.

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params, optional_integer};
use super::private_messages::{PullParams, check_form};
use super::response::{Answer, Reply};
use crate::domain::content::{ContentType, content_hash};
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{GroupId, MessageId, UserId, deserialize_integer};
use crate::error::AppError;
use crate::protocol::frame::{Frame, FrameClass, Notification};
use crate::protocol::group_payload::{GroupMessageBody, GroupTypingPayload};
use crate::service::conversation_reads::{Conversation, ReadReport, check_enabled};
use crate::service::group_messages::{self as service, GroupDraft};
use crate::service::groups::LOCKS;

/// Mentions in one message.
const MAX_MENTIONS: usize = 1_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendGroupMessageRequest {
    client_message_id: String,
    group_id: GroupId,
    #[serde(deserialize_with = "deserialize_integer")]
    r#type: i64,
    content: String,
    at_user_ids: Option<Vec<UserId>>,
    receipt: Option<bool>,
}

impl SendGroupMessageRequest {
    fn into_draft(self, sender: UserId) -> Result<GroupDraft, AppError> {
        let (content_type, content) = check_form(&self.client_message_id, self.r#type, &self.content)?;
        let mentions = self.at_user_ids.unwrap_or_default();
        if mentions.len() > MAX_MENTIONS {
            return Err(AppError::Malformed(format!("parameter incorrect: more than {MAX_MENTIONS} atUserIds")));
        }
        let content_hash = content_hash(self.group_id.0, content_type.number(), &content);
        Ok(GroupDraft {
            sender,
            group: self.group_id,
            client_message_id: self.client_message_id,
            content_type: content_type.number(),
            content,
            content_hash,
            at_user_ids: (!mentions.is_empty()).then(|| mentions.into_iter().map(|user| user.0).collect()),
            receipt: self.receipt,
        })
    }
}

/// POST `/im/message/group/send`.
pub async fn send(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<SendGroupMessageRequest>,
) -> Answer<GroupMessageBody> {
    let mut draft = body.into_draft(caller.user)?;
    state.words.mark(&state.readers, draft.content_type, &mut draft.content).await?;
    Ok(Reply(state.writer.send_group(draft).await?.into()))
}

/// GET `/im/message/group/pull`.
pub async fn pull(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<PullParams>,
) -> Answer<Vec<GroupMessageBody>> {
    let now = state.clock.now();
    let (rules, window) = (state.config.message.clone(), state.group_window.clone());
    let page = state
        .readers
        .run(async move |db| service::pull(db, caller.user, params.min_id, params.size, now, &rules, &window).await)
        .await?;
    Ok(Reply(page.into_iter().map(GroupMessageBody::from).collect()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryParams {
    group_id: GroupId,
    #[serde(default, deserialize_with = "optional_integer")]
    max_id: Option<i64>,
    #[serde(deserialize_with = "deserialize_integer")]
    limit: i64,
}

/// GET `/im/message/group/list`.
pub async fn list(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<HistoryParams>,
) -> Answer<Vec<GroupMessageBody>> {
    if !(1..=200).contains(&params.limit) {
        return Err(AppError::Malformed("parameter incorrect: limit must be 1 to 200".into()));
    }
    let before = params.max_id.map(MessageId);
    let page = state
        .readers
        .run(async move |db| service::list_history(db, caller.user, params.group_id, before, params.limit).await)
        .await?;
    Ok(Reply(page.into_iter().map(GroupMessageBody::from).collect()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageInGroupParams {
    group_id: GroupId,
    message_id: MessageId,
}

/// PUT `/im/message/group/read`.
pub async fn read(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<MessageInGroupParams>,
) -> Answer<bool> {
    let conversation = Conversation::In(params.group_id);
    check_enabled(conversation, &state.config.message)?;
    let report = ReadReport { reader: caller.user, conversation, message: params.message_id };
    state.writer.report_read(report).await?;
    Ok(Reply(true))
}

/// GET `/im/message/group/get-read-user-ids`.
pub async fn read_user_ids(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<MessageInGroupParams>,
) -> Answer<Vec<UserId>> {
    let rules = state.config.message.clone();
    let readers = state
        .readers
        .run(async move |db| service::read_user_ids(db, caller.user, params.group_id, params.message_id, &rules).await)
        .await?;
    Ok(Reply(readers))
}

#[derive(Deserialize)]
pub struct IdParams {
    id: MessageId,
}

/// DELETE `/im/message/group/recall?id=`.
pub async fn recall(
    state: web::Data<AppState>,
    caller: Caller,
    Params(params): Params<IdParams>,
) -> Answer<GroupMessageBody> {
    let message = state
        .writer
        .run(Some(caller.user), "group_message.recall", LOCKS, async move |tx| {
            service::recall_group_message(tx, caller.user, params.id).await
        })
        .await?;
    Ok(Reply(message.into()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypingParams {
    group_id: GroupId,
}

/// PUT `/im/message/group/typing?groupId=`: tells the other members' online devices, at most once per second; `true`
/// claims no delivery.
pub async fn typing(state: web::Data<AppState>, caller: Caller, Params(params): Params<TypingParams>) -> Answer<bool> {
    let (sender, group) = (caller.user, params.group_id);
    let now = state.clock.now();
    if state.group_typing.count(&(sender, group), now) > 0 {
        return Ok(Reply(true));
    }
    let receivers = state.readers.run(async move |db| service::typing_receivers(db, sender, group).await).await?;
    if state.group_typing.add((sender, group), now) > 1 {
        return Ok(Reply(true));
    }
    let payload = GroupTypingPayload { sender_id: sender, group_id: group };
    let content_type = ContentType::Typing.number();
    let frame = Frame::im_notification(FrameClass::Signal, ConversationType::None, content_type, &payload)
        .map_err(|error| AppError::Internal(error.to_string()))?;
    // A registry that cannot take it drops it: nobody relies on a signal.
    let _ = state.registry.notify(vec![Notification { receivers: receivers.into(), frame }]);
    Ok(Reply(true))
}
