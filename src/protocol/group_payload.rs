//! JSON objects of groups: the group, its members, join requests, messages and events (`contract/04` sections 5.2 and 6).

use serde::Serialize;

use crate::domain::group_message::GroupMessage;
use crate::domain::ids::{GroupId, MessageId, RequestId, UserId};

/// A group message in answers, pulls and pushes. `id` is null for events that are not stored.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupMessageBody {
    pub id: Option<MessageId>,
    pub client_message_id: String,
    pub sender_id: UserId,
    pub group_id: GroupId,
    pub r#type: i32,
    /// A JSON object as text.
    pub content: String,
    pub status: i32,
    pub send_time: i64,
    pub at_user_ids: Option<Vec<i64>>,
    /// Null means all members.
    pub receiver_user_ids: Option<Vec<UserId>>,
    pub receipt_status: i32,
    pub read_count: Option<usize>,
}

impl From<GroupMessage> for GroupMessageBody {
    fn from(message: GroupMessage) -> Self {
        GroupMessageBody {
            id: Some(message.id),
            client_message_id: message.client_message_id,
            sender_id: message.sender_id,
            group_id: message.group_id,
            r#type: message.content_type,
            content: message.content,
            status: message.status,
            send_time: message.send_time,
            at_user_ids: message.at_user_ids,
            receiver_user_ids: message.receiver_user_ids.map(|receivers| receivers.to_vec()),
            receipt_status: message.receipt_status,
            read_count: message.read_count,
        }
    }
}

/// A group as one user sees it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupBody {
    pub id: GroupId,
    pub name: String,
    pub owner_user_id: UserId,
    pub avatar: Option<String>,
    pub notice: Option<String>,
    pub banned: bool,
    pub muted_all: bool,
    pub join_approval: bool,
    pub banned_time: Option<i64>,
    pub dissolved_time: Option<i64>,
    pub create_time: i64,
    pub status: i32,
    /// 0: the user is a member now; 1: not, or no more.
    pub join_status: i32,
    pub group_remark: Option<String>,
    pub silent: Option<bool>,
    pub pinned_messages: Option<Vec<GroupMessageBody>>,
}

/// A member, of now or of former times.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberBody {
    pub id: i64,
    pub group_id: GroupId,
    pub user_id: UserId,
    pub display_user_name: Option<String>,
    /// Null but for the reader's own row, as `silent`.
    pub group_remark: Option<String>,
    pub silent: Option<bool>,
    pub status: i32,
    pub role: i32,
    pub join_time: Option<i64>,
    pub quit_time: Option<i64>,
    pub mute_end_time: Option<i64>,
    pub create_time: i64,
    pub nickname: Option<String>,
    pub avatar: Option<String>,
}

/// A request to join a group.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupRequestBody {
    pub id: RequestId,
    pub group_id: GroupId,
    pub user_id: UserId,
    pub inviter_user_id: Option<UserId>,
    pub handle_user_id: Option<UserId>,
    pub handle_result: i32,
    pub add_source: Option<i32>,
    pub apply_content: Option<String>,
    pub handle_content: Option<String>,
    pub handle_time: Option<i64>,
    pub create_time: i64,
    pub update_time: i64,
    pub user_nickname: Option<String>,
    pub user_avatar: Option<String>,
    pub inviter_nickname: Option<String>,
    pub inviter_avatar: Option<String>,
    pub group_name: Option<String>,
    pub group_avatar: Option<String>,
}

/// Content of events that name nobody but who did it: 1504, 1511, 1514, 1515.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorContent {
    pub operator_user_id: UserId,
}

/// Content of GROUP_BANNED (1533).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BannedContent {
    pub operator_user_id: UserId,
    pub banned: bool,
}

/// Content of events about members: 1501, 1508, 1509, 1517, 1518.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MembersContent {
    pub operator_user_id: UserId,
    pub member_user_ids: Vec<UserId>,
}

/// Content of GROUP_INFO_UPDATE (1502); the pair that is not concerned is null.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InfoContent {
    pub operator_user_id: UserId,
    pub old_avatar: Option<String>,
    pub new_avatar: Option<String>,
    pub old_join_approval: Option<bool>,
    pub new_join_approval: Option<bool>,
}

/// Content of GROUP_OWNER_TRANSFER (1507).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferContent {
    pub operator_user_id: UserId,
    pub new_owner_user_id: UserId,
}

/// Content of GROUP_MEMBER_ENTER (1510).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnterContent {
    pub operator_user_id: UserId,
    pub entrant_user_id: UserId,
    pub add_source: Option<i32>,
}

/// Content of GROUP_MEMBER_MUTED (1512).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MutedContent {
    pub operator_user_id: UserId,
    pub muted_user_id: UserId,
    pub mute_end_time: i64,
}

/// Content of GROUP_MEMBER_CANCEL_MUTED (1513).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmutedContent {
    pub operator_user_id: UserId,
    pub muted_user_id: UserId,
}

/// Content of GROUP_MEMBER_NICKNAME_UPDATE (1516).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberNameContent {
    pub operator_user_id: UserId,
    pub display_user_name: String,
}

/// Content of GROUP_NOTICE_UPDATE (1519).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoticeContent {
    pub operator_user_id: UserId,
    pub old_notice: Option<String>,
    pub new_notice: String,
}

/// Content of GROUP_NAME_UPDATE (1520).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NameContent {
    pub operator_user_id: UserId,
    pub old_name: String,
    pub new_name: String,
}

/// Content of GROUP_MEMBER_SETTING_UPDATE (1530); null means unchanged.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingContent {
    pub operator_user_id: UserId,
    pub silent: Option<bool>,
    pub group_remark: Option<String>,
}

/// A message inside GROUP_MESSAGE_PIN.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PinnedMessage {
    pub id: MessageId,
    pub sender_id: UserId,
    pub group_id: GroupId,
    pub r#type: i32,
    pub content: String,
    pub send_time: i64,
    pub at_user_ids: Option<Vec<i64>>,
    pub receiver_user_ids: Option<Vec<UserId>>,
}

/// Content of GROUP_MESSAGE_PIN (1531).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PinContent {
    pub operator_user_id: UserId,
    pub message_id: MessageId,
    pub message: PinnedMessage,
}

/// Content of GROUP_MESSAGE_UNPIN (1532).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnpinContent {
    pub operator_user_id: UserId,
    pub message_id: MessageId,
}

/// Notification GROUP_REQUEST_RECEIVED (1503).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupRequestReceivedPayload {
    pub operator_user_id: UserId,
    pub request_id: RequestId,
    pub group_id: GroupId,
    pub user_id: UserId,
    pub inviter_user_id: Option<UserId>,
    pub apply_content: Option<String>,
    pub add_source: Option<i32>,
    pub user_nickname: Option<String>,
    pub user_avatar: Option<String>,
}

/// Notification GROUP_REQUEST_APPROVED (1505).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupRequestApprovedPayload {
    pub operator_user_id: UserId,
    pub request_id: RequestId,
    pub group_id: GroupId,
    pub user_id: UserId,
}

/// Notification GROUP_REQUEST_REJECTED (1506).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupRequestRejectedPayload {
    pub operator_user_id: UserId,
    pub request_id: RequestId,
    pub group_id: GroupId,
    pub user_id: UserId,
    pub handle_content: Option<String>,
}

/// Group typing (2301): not stored.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupTypingPayload {
    pub sender_id: UserId,
    pub group_id: GroupId,
}
