//! `POST /im/sync` and `POST /im/unread` (`design.md` section 12): what a returning device asks, in one call each.

use actix_web::web;
use serde::{Deserialize, Serialize};

use super::AppState;
use super::caller::Caller;
use super::input::{Body, check_limit};
use super::response::{Answer, Reply};
use crate::domain::ids::{MessageId, deserialize_integer, deserialize_optional_integer};
use crate::protocol::friend::{FriendBody, FriendRequestBody};
use crate::protocol::group_payload::{GroupBody, GroupMessageBody, GroupRequestBody};
use crate::protocol::payload::{ConversationReadBody, PrivateMessageBody};
use crate::service::sync::{self as service, Cursors, MessagePage, StateCursor, StatePage};
use crate::service::unread::{self, Windows};

/// Rows of a page where the request names no size.
const DEFAULT_SIZE: i64 = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateCursorRequest {
    #[serde(deserialize_with = "deserialize_integer")]
    last_update_time: i64,
    #[serde(deserialize_with = "deserialize_integer")]
    last_id: i64,
}

/// Every cursor that a device has; what is absent begins at the beginning.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncRequest {
    #[serde(default, deserialize_with = "deserialize_optional_integer")]
    private_min_id: Option<i64>,
    #[serde(default, deserialize_with = "deserialize_optional_integer")]
    group_min_id: Option<i64>,
    #[serde(default, deserialize_with = "deserialize_optional_integer")]
    channel_min_id: Option<i64>,
    friend: Option<StateCursorRequest>,
    friend_request: Option<StateCursorRequest>,
    group_request: Option<StateCursorRequest>,
    read: Option<StateCursorRequest>,
    #[serde(default, deserialize_with = "deserialize_optional_integer")]
    group_list_time: Option<i64>,
    #[serde(default, deserialize_with = "deserialize_optional_integer")]
    size: Option<i64>,
}

impl From<SyncRequest> for Cursors {
    fn from(request: SyncRequest) -> Cursors {
        let state = |cursor: Option<StateCursorRequest>| cursor.map(|cursor| (cursor.last_update_time, cursor.last_id));
        let message = |id: Option<i64>| MessageId(id.unwrap_or(0));
        Cursors {
            private: message(request.private_min_id),
            group: message(request.group_min_id),
            channel: message(request.channel_min_id),
            friends: state(request.friend),
            friend_requests: state(request.friend_request),
            group_requests: state(request.group_request),
            reads: state(request.read),
            group_list_time: request.group_list_time.unwrap_or(0),
            size: request.size.unwrap_or(DEFAULT_SIZE),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageStream<T> {
    list: Vec<T>,
    min_id: MessageId,
    more: bool,
    truncated: bool,
}

impl<T> MessageStream<T> {
    fn of<R>(page: MessagePage<R>) -> MessageStream<T>
    where
        T: From<R>,
    {
        MessageStream {
            list: page.rows.into_iter().map(T::from).collect(),
            min_id: page.cursor,
            more: page.more,
            truncated: page.truncated,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateStream<T> {
    list: Vec<T>,
    last_update_time: Option<i64>,
    last_id: Option<i64>,
    more: bool,
}

impl<T> StateStream<T> {
    fn of<R>(page: StatePage<R>) -> StateStream<T>
    where
        T: From<R>,
    {
        let cursor: Option<StateCursor> = page.cursor;
        StateStream {
            list: page.rows.into_iter().map(T::from).collect(),
            last_update_time: cursor.map(|(time, _)| time),
            last_id: cursor.map(|(_, id)| id),
            more: page.more,
        }
    }
}

#[derive(Serialize)]
pub struct GroupList {
    list: Vec<GroupBody>,
    time: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncBody {
    private: MessageStream<PrivateMessageBody>,
    group: MessageStream<GroupMessageBody>,
    /// Channels are not built yet: always empty.
    channel: MessageStream<PrivateMessageBody>,
    friend: StateStream<FriendBody>,
    friend_request: StateStream<FriendRequestBody>,
    group_request: StateStream<GroupRequestBody>,
    read: StateStream<ConversationReadBody>,
    /// Null when the client's list is as new as ours.
    group_list: Option<GroupList>,
}

/// POST `/im/sync`.
pub async fn sync(state: web::Data<AppState>, caller: Caller, Body(body): Body<SyncRequest>) -> Answer<SyncBody> {
    let cursors = Cursors::from(body);
    check_limit(cursors.size)?;
    let channel = cursors.channel;
    let (rules, now) = (state.config.message.clone(), state.clock.now());
    let (private, group) = (state.private_window.clone(), state.group_window.clone());
    let news = state
        .readers
        .run(async move |db| {
            let windows = Windows { now, private: &private, group: &group };
            service::news(db, caller.user, &cursors, &rules, &windows).await
        })
        .await?;
    Ok(Reply(SyncBody {
        private: MessageStream::of(news.private),
        group: MessageStream::of(news.group),
        channel: MessageStream { list: Vec::new(), min_id: channel, more: false, truncated: false },
        friend: StateStream::of(news.friends),
        friend_request: StateStream::of(news.friend_requests),
        group_request: StateStream::of(news.group_requests),
        read: StateStream::of(news.reads),
        group_list: news.groups.map(|(list, time)| GroupList { list, time }),
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnreadEntry {
    conversation_type: i32,
    target_id: i64,
    count: i64,
    more: bool,
}

#[derive(Serialize)]
pub struct UnreadBody {
    /// Of all conversations that are not silenced.
    total: i64,
    conversations: Vec<UnreadEntry>,
}

#[derive(Deserialize)]
pub struct UnreadRequest {}

/// POST `/im/unread`.
pub async fn unread(state: web::Data<AppState>, caller: Caller, Body(_): Body<UnreadRequest>) -> Answer<UnreadBody> {
    let (rules, now) = (state.config.message.clone(), state.clock.now());
    let (private, group) = (state.private_window.clone(), state.group_window.clone());
    let counted = state
        .readers
        .run(async move |db| {
            let windows = Windows { now, private: &private, group: &group };
            Ok(unread::count_unread(db, caller.user, &rules, &windows).await?)
        })
        .await?;
    let total = counted.iter().filter(|conversation| !conversation.silent).map(|conversation| conversation.count).sum();
    let conversations = counted.into_iter().map(|conversation| UnreadEntry {
        conversation_type: conversation.conversation_type,
        target_id: conversation.target,
        count: conversation.count,
        more: conversation.more,
    });
    Ok(Reply(UnreadBody { total, conversations: conversations.collect() }))
}
