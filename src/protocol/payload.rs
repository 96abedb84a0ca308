//! What answers and notifications carry: the JSON objects of the contract. Absent values are written as `null`.

use serde::Serialize;

use crate::domain::ids::{GroupId, LoginId, MessageId, SessionId, UserId};
use crate::domain::private_message::PrivateMessage;

/// A private message in answers, pulls and pushes (`contract/01` section 11). `id` is null for types not stored.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivateMessageBody {
    pub id: Option<MessageId>,
    pub client_message_id: String,
    pub sender_id: UserId,
    pub receiver_id: UserId,
    pub r#type: i32,
    /// A JSON object as text.
    pub content: String,
    pub status: i32,
    pub receipt_status: i32,
    /// Milliseconds since 1970.
    pub send_time: i64,
}

impl From<PrivateMessage> for PrivateMessageBody {
    fn from(message: PrivateMessage) -> Self {
        PrivateMessageBody {
            id: Some(message.id),
            client_message_id: message.client_message_id,
            sender_id: message.sender_id,
            receiver_id: message.receiver_id,
            r#type: message.content_type,
            content: message.content,
            status: message.status,
            receipt_status: message.receipt_status,
            send_time: message.send_time,
        }
    }
}

/// Notification READ (2201): my position moved, told to my own devices.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadPayload {
    pub id: MessageId,
    pub sender_id: Option<UserId>,
    pub receiver_id: Option<UserId>,
    pub group_id: Option<GroupId>,
    pub channel_id: Option<i64>,
    pub read_id: MessageId,
}

/// Notification RECEIPT (2200): somebody has read what you sent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptPayload {
    pub id: MessageId,
    pub sender_id: Option<UserId>,
    pub receiver_id: Option<UserId>,
    pub group_id: Option<GroupId>,
    pub read_count: Option<i64>,
    pub receipt_status: Option<i32>,
}

/// Content of a RECALL row (2101).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecallContent {
    pub message_id: MessageId,
}

/// Typing (2301): not stored (`design.md` section 12).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TypingPayload {
    pub sender_id: UserId,
    pub receiver_id: UserId,
}

/// A read position (`contract/02` R1).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationReadBody {
    pub id: i64,
    pub conversation_type: i32,
    pub target_id: i64,
    pub message_id: MessageId,
    pub update_time: i64,
}

/// Answer to sign-in, registration and refresh (`contract/01` section 6.3).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginBody {
    pub user_id: UserId,
    pub access_token: String,
    pub refresh_token: String,
    /// When the access token expires; milliseconds since 1970.
    pub expires_time: i64,
}

/// A user as others see them (`contract/01` section 7, row 13).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SimpleUserBody {
    pub id: UserId,
    pub nickname: String,
    pub avatar: Option<String>,
    pub sex: i32,
    pub dept_id: Option<i64>,
    pub dept_name: Option<String>,
}

/// One of my open sessions.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionBody {
    pub id: SessionId,
    pub login_id: LoginId,
    pub device: Option<String>,
    pub platform: Option<String>,
    pub address: String,
    /// Milliseconds since 1970.
    pub connect_time: i64,
    /// Whether the session belongs to the login that asks.
    pub current_login: bool,
}
