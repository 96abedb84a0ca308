//! JSON objects of management pages (`contract/05` part E). They show everything to operators, as others see it or not.

use serde::Serialize;

use crate::domain::ids::{GroupId, MessageId, RequestId, UserId};
use crate::domain::page::Paged;

/// One page of a list.
#[derive(Clone, Debug, Serialize)]
pub struct PageBody<T> {
    pub list: Vec<T>,
    /// Rows of all pages.
    pub total: i64,
}

impl<T> From<Paged<T>> for PageBody<T> {
    fn from(paged: Paged<T>) -> Self {
        PageBody { list: paged.list, total: paged.total }
    }
}

/// A group.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedGroupBody {
    pub id: GroupId,
    pub name: String,
    pub avatar: Option<String>,
    pub notice: Option<String>,
    pub owner_user_id: UserId,
    /// Null where one group is asked for, as `member_count`.
    pub owner_nickname: Option<String>,
    pub member_count: Option<i64>,
    pub status: i32,
    pub dissolved_time: Option<i64>,
    pub banned: bool,
    pub muted_all: bool,
    pub banned_reason: Option<String>,
    pub banned_time: Option<i64>,
    pub create_time: i64,
}

/// A member of a group, of now or of former times.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedMemberBody {
    pub user_id: UserId,
    pub nickname: Option<String>,
    pub avatar: Option<String>,
    pub display_user_name: Option<String>,
    pub group_remark: Option<String>,
    pub silent: bool,
    pub status: i32,
    pub role: i32,
    pub join_time: Option<i64>,
    pub quit_time: Option<i64>,
    pub mute_end_time: Option<i64>,
}

/// A request to join a group.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedGroupRequestBody {
    pub id: RequestId,
    pub group_id: GroupId,
    pub group_name: Option<String>,
    pub user_id: UserId,
    pub user_nickname: Option<String>,
    pub inviter_user_id: Option<UserId>,
    pub inviter_nickname: Option<String>,
    pub apply_content: Option<String>,
    pub add_source: Option<i32>,
    pub handle_result: i32,
    pub handle_user_id: Option<UserId>,
    pub handle_nickname: Option<String>,
    pub handle_content: Option<String>,
    pub handle_time: Option<i64>,
    pub create_time: i64,
}

/// One side of a friendship.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedFriendBody {
    pub id: i64,
    pub user_id: UserId,
    pub user_nickname: Option<String>,
    pub friend_user_id: UserId,
    pub friend_nickname: Option<String>,
    pub display_name: String,
    pub add_source: Option<i32>,
    pub silent: bool,
    pub pinned: bool,
    pub blocked: bool,
    pub status: i32,
    pub add_time: Option<i64>,
    pub delete_time: Option<i64>,
    pub create_time: i64,
}

/// A friend request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedFriendRequestBody {
    pub id: RequestId,
    pub from_user_id: UserId,
    pub from_nickname: Option<String>,
    pub to_user_id: UserId,
    pub to_nickname: Option<String>,
    pub apply_content: Option<String>,
    pub display_name: Option<String>,
    pub add_source: Option<i32>,
    pub handle_result: i32,
    pub handle_content: Option<String>,
    pub handle_time: Option<i64>,
    pub create_time: i64,
}

/// A private message, with its content also where it is recalled.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedPrivateMessageBody {
    pub id: MessageId,
    pub client_message_id: String,
    pub sender_id: UserId,
    /// Null where one message is asked for, as `receiver_nickname`.
    pub sender_nickname: Option<String>,
    pub receiver_id: UserId,
    pub receiver_nickname: Option<String>,
    pub r#type: i32,
    pub content: String,
    pub status: i32,
    pub receipt_status: i32,
    pub send_time: i64,
    pub create_time: i64,
}

/// A group message, with its content also where it is recalled.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedGroupMessageBody {
    pub id: MessageId,
    pub client_message_id: String,
    pub group_id: GroupId,
    /// Null where one message is asked for, as `sender_nickname` and `at_user_nicknames`.
    pub group_name: Option<String>,
    pub sender_id: UserId,
    pub sender_nickname: Option<String>,
    pub r#type: i32,
    pub content: String,
    pub status: i32,
    pub at_user_ids: Option<Vec<i64>>,
    /// One for each of `at_user_ids`: null for everybody (-1) and for accounts that are gone.
    pub at_user_nicknames: Option<Vec<Option<String>>>,
    pub receipt_status: i32,
    pub send_time: i64,
    pub create_time: i64,
}

/// A sensitive word.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SensitiveWordBody {
    pub id: i64,
    pub word: String,
    pub status: i32,
    /// The operator's id, as text.
    pub creator: String,
    /// Null where one word is asked for.
    pub creator_name: Option<String>,
    pub create_time: i64,
}

/// Numbers of now. Days are those of the operators' zone.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OverviewBody {
    pub total_user: i64,
    pub new_user_today: i64,
    pub total_group: i64,
    pub new_group_today: i64,
    pub active_user_daily: i64,
    pub active_user_weekly: i64,
    pub active_user_monthly: i64,
    pub private_message_today: i64,
    pub group_message_today: i64,
    pub private_message_yesterday: i64,
    pub group_message_yesterday: i64,
}

/// Numbers of days, the oldest first, today last.
#[derive(Clone, Debug, Serialize)]
pub struct TrendBody<S> {
    /// `yyyy-MM-dd`.
    pub dates: Vec<String>,
    /// As many numbers each as there are dates.
    pub series: S,
}

#[derive(Clone, Debug, Serialize)]
pub struct MessageSeries {
    pub private: Vec<i64>,
    pub group: Vec<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct UserSeries {
    pub register: Vec<i64>,
    pub active: Vec<i64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct MessageTypeBody {
    pub r#type: i64,
    pub value: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct GroupSizeBody {
    pub range: &'static str,
    pub count: i64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopSenderBody {
    pub user_id: UserId,
    pub nickname: Option<String>,
    pub message_count: i64,
}
