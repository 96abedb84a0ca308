//! What answers and notifications about friends carry (`contract/03` sections 3 and 5). Absent values are written as
//! `null`; times are milliseconds since 1970.

use serde::Serialize;

use crate::domain::ids::{RequestId, UserId};

/// My row about a friend, with what the account of the friend says now.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendBody {
    pub id: i64,
    pub friend_user_id: UserId,
    pub silent: bool,
    /// My remark; empty without one.
    pub display_name: String,
    pub display_name_pinyin: Option<String>,
    pub add_source: Option<i32>,
    pub pinned: bool,
    pub blocked: bool,
    pub status: i32,
    pub add_time: Option<i64>,
    pub delete_time: Option<i64>,
    pub update_time: i64,
    /// `None` when the account is gone, as are the next two.
    pub nickname: Option<String>,
    pub nickname_pinyin: Option<String>,
    pub avatar: Option<String>,
}

/// A friend request, for applicant and receiver alike. The applicant's remark is not part of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendRequestBody {
    pub id: RequestId,
    pub from_user_id: UserId,
    pub to_user_id: UserId,
    pub handle_result: i32,
    pub apply_content: Option<String>,
    pub handle_content: Option<String>,
    pub add_source: Option<i32>,
    pub handle_time: Option<i64>,
    pub create_time: i64,
    pub update_time: i64,
    pub from_nickname: Option<String>,
    pub from_avatar: Option<String>,
    pub to_nickname: Option<String>,
    pub to_avatar: Option<String>,
}

/// Notification FRIEND_REQUEST_APPROVED (1201), to the applicant.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendRequestApprovedPayload {
    pub operator_user_id: UserId,
    pub friend_user_id: UserId,
    pub request_id: RequestId,
}

/// Notification FRIEND_REQUEST_REJECTED (1202), to the applicant.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendRequestRejectedPayload {
    pub operator_user_id: UserId,
    pub friend_user_id: UserId,
    pub request_id: RequestId,
    pub handle_content: Option<String>,
}

/// Notification FRIEND_REQUEST_RECEIVED (1203), to the receiver.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendRequestReceivedPayload {
    pub operator_user_id: UserId,
    pub friend_user_id: UserId,
    pub request_id: RequestId,
    pub apply_content: Option<String>,
    pub add_source: Option<i32>,
    pub from_nickname: Option<String>,
    pub from_avatar: Option<String>,
}

/// Content of FRIEND_ADD (1204), and payload of FRIEND_BLOCK (1207), FRIEND_UNBLOCK (1208) and FRIEND_INFO_UPDATED
/// (1209).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendPayload {
    pub operator_user_id: UserId,
    pub friend_user_id: UserId,
}

/// Content of FRIEND_DELETE (1205).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendDeleteContent {
    pub operator_user_id: UserId,
    pub friend_user_id: UserId,
    /// Whether my other devices drop the conversation, too.
    pub clear: bool,
}

/// Notification FRIEND_UPDATE (1210), to my own devices; `None` is unchanged.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendUpdatePayload {
    pub operator_user_id: UserId,
    pub friend_user_id: UserId,
    pub display_name: Option<String>,
    pub silent: Option<bool>,
    pub pinned: Option<bool>,
}
