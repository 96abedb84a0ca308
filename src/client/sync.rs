//! Bodies of `POST /im/sync` and `POST /im/unread` (`design.md` section 12).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::types::{ConversationRead, GroupMessage, PrivateMessage};

/// What pulls brought and was not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pulled {
    pub private: Vec<Arc<PrivateMessage>>,
    pub group: Vec<Arc<GroupMessage>>,
}

impl Pulled {
    pub fn is_empty(&self) -> bool {
        self.private.is_empty() && self.group.is_empty()
    }

    pub(super) fn extend(&mut self, more: Pulled) {
        self.private.extend(more.private);
        self.group.extend(more.group);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Position {
    last_update_time: i64,
    last_id: i64,
}

impl From<(i64, i64)> for Position {
    fn from((last_update_time, last_id): (i64, i64)) -> Position {
        Position { last_update_time, last_id }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SyncRequest {
    pub private_min_id: i64,
    pub group_min_id: i64,
    pub friend: Option<Position>,
    pub friend_request: Option<Position>,
    pub group_request: Option<Position>,
    pub read: Option<Position>,
    pub group_list_time: i64,
    pub size: usize,
}

impl SyncRequest {
    /// The request for the pages after an answer's.
    pub fn after(&self, answer: &SyncAnswer) -> SyncRequest {
        SyncRequest {
            private_min_id: self.private_min_id.max(answer.private.min_id),
            group_min_id: self.group_min_id.max(answer.group.min_id),
            friend: answer.friend.position().or(self.friend),
            friend_request: answer.friend_request.position().or(self.friend_request),
            group_request: answer.group_request.position().or(self.group_request),
            read: answer.read.position().or(self.read),
            group_list_time: answer.group_list.as_ref().map_or(self.group_list_time, |list| list.time),
            size: self.size,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessagePage<T> {
    pub list: Vec<T>,
    pub min_id: i64,
    pub more: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatePage<T> {
    pub list: Vec<T>,
    pub last_update_time: Option<i64>,
    pub last_id: Option<i64>,
    pub more: bool,
}

impl<T> StatePage<T> {
    fn position(&self) -> Option<Position> {
        Some(Position { last_update_time: self.last_update_time?, last_id: self.last_id? })
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct GroupList {
    pub list: Vec<Value>,
    pub time: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SyncAnswer {
    pub private: MessagePage<PrivateMessage>,
    pub group: MessagePage<GroupMessage>,
    pub friend: StatePage<Value>,
    pub friend_request: StatePage<Value>,
    pub group_request: StatePage<Value>,
    pub read: StatePage<ConversationRead>,
    pub group_list: Option<GroupList>,
}

impl SyncAnswer {
    /// Whether any stream has another page.
    pub fn has_more(&self) -> bool {
        let messages = self.private.more || self.group.more;
        messages || self.friend.more || self.friend_request.more || self.group_request.more || self.read.more
    }
}

/// My unread messages as the server counts them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Unread {
    /// Of all conversations that are not silenced.
    pub total: i64,
    pub conversations: Vec<UnreadConversation>,
}

/// Unread messages of one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnreadConversation {
    /// 1 private, 2 group.
    pub conversation_type: i32,
    /// The peer or the group.
    pub target_id: i64,
    pub count: i64,
    /// There are more than `count`.
    pub more: bool,
}
