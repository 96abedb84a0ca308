//! The rows and payloads that this client reads, as in `contract/01` section 11 and `contract/02`. Unknown fields are
//! ignored everywhere, and fields that older or newer servers leave out have defaults.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::content::ContentType;
use crate::domain::ids::{GroupId, LoginId, MessageId, UserId, deserialize_optional_integer};

/// Message status 2: recalled.
pub const STATUS_RECALLED: i32 = 2;

/// What a sign-in gives.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    pub user_id: UserId,
    /// For HTTP; lives about half an hour and is renewed with the refresh token.
    pub access_token: String,
    /// For the socket and for renewal; one per sign-in.
    pub refresh_token: String,
    /// When the access token ends, in epoch milliseconds.
    #[serde(default)]
    pub expires_time: i64,
}

/// Without the tokens, so that they reach no log.
impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tokens").field("user_id", &self.user_id).finish_non_exhaustive()
    }
}

/// One private message, from pulls, lists, pushes and the answers to sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivateMessage {
    pub id: MessageId,
    #[serde(default)]
    pub client_message_id: Option<String>,
    pub sender_id: UserId,
    pub receiver_id: UserId,
    /// A [`ContentType`] number.
    pub r#type: i32,
    /// A JSON object as text.
    #[serde(default)]
    pub content: String,
    /// 0 normal, 2 recalled.
    #[serde(default)]
    pub status: i32,
    /// 0 no receipt asked for, 1 pending, 2 done.
    #[serde(default)]
    pub receipt_status: i32,
    /// Epoch milliseconds.
    pub send_time: i64,
}

impl PrivateMessage {
    /// Of a RECALL row the message that it takes back.
    pub fn recalled_message(&self) -> Option<MessageId> {
        recalled_message(self.r#type, &self.content)
    }
}

fn recalled_message(content_type: i32, content: &str) -> Option<MessageId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Recalled {
        message_id: MessageId,
    }

    if content_type != ContentType::Recall.number() {
        return None;
    }
    serde_json::from_str::<Recalled>(content).ok().map(|recalled| recalled.message_id)
}

/// One group message, from pulls, lists, pushes and the answers to sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupMessage {
    pub id: MessageId,
    #[serde(default)]
    pub client_message_id: Option<String>,
    pub sender_id: UserId,
    pub group_id: GroupId,
    /// A [`ContentType`] number.
    pub r#type: i32,
    /// A JSON object as text.
    #[serde(default)]
    pub content: String,
    /// 0 normal, 2 recalled.
    #[serde(default)]
    pub status: i32,
    /// 0 no receipt asked for, 1 pending, 2 done.
    #[serde(default)]
    pub receipt_status: i32,
    /// Of a message of mine that asks for a receipt: how many have read it.
    #[serde(default)]
    pub read_count: Option<i64>,
    /// Epoch milliseconds.
    pub send_time: i64,
    /// -1 is everybody.
    #[serde(default)]
    pub at_user_ids: Option<Vec<i64>>,
}

impl GroupMessage {
    /// Of a RECALL row the message that it takes back.
    pub fn recalled_message(&self) -> Option<MessageId> {
        recalled_message(self.r#type, &self.content)
    }

    /// Whether the server made it: an event that may change who is in the group.
    pub fn is_event(&self) -> bool {
        !ContentType::from_number(self.r#type).is_some_and(ContentType::is_normal) && self.recalled_message().is_none()
    }
}

/// What a user asks to be sent to a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupDraft {
    /// Never used for two messages: the server stores one message per sender and client id.
    pub client_message_id: String,
    pub group_id: GroupId,
    /// The number of a [`ContentType`] that users may send.
    pub r#type: i32,
    /// A JSON object as text.
    pub content: String,
    /// -1 is everybody.
    pub at_user_ids: Vec<i64>,
    pub receipt: bool,
}

impl GroupDraft {
    /// A text message with a fresh client id, without mentions and receipt.
    pub fn text(group: GroupId, text: &str) -> GroupDraft {
        GroupDraft {
            client_message_id: format!("{:032x}", rand::random::<u128>()),
            group_id: group,
            r#type: ContentType::Text.number(),
            content: serde_json::json!({ "content": text }).to_string(),
            at_user_ids: Vec::new(),
            receipt: false,
        }
    }
}

/// What a user asks to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivateDraft {
    /// Never used for two messages: the server stores one message per sender and client id.
    pub client_message_id: String,
    pub receiver_id: UserId,
    /// The number of a [`ContentType`] that users may send.
    pub r#type: i32,
    /// A JSON object as text.
    pub content: String,
    /// `None` leaves it to the server (private messages: yes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<bool>,
}

impl PrivateDraft {
    /// A draft with a fresh client id.
    pub fn new(receiver: UserId, content_type: ContentType, content: impl Into<String>) -> PrivateDraft {
        PrivateDraft {
            client_message_id: format!("{:032x}", rand::random::<u128>()),
            receiver_id: receiver,
            r#type: content_type.number(),
            content: content.into(),
            receipt: None,
        }
    }

    /// A text message with a fresh client id.
    pub fn text(receiver: UserId, text: &str) -> PrivateDraft {
        PrivateDraft::new(receiver, ContentType::Text, serde_json::json!({ "content": text }).to_string())
    }
}

/// How far I have read one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationRead {
    pub id: i64,
    /// 1 private, 2 group, 3 channel.
    pub conversation_type: i32,
    /// The peer, the group or the channel.
    pub target_id: i64,
    pub message_id: MessageId,
    /// Epoch milliseconds; with `id` the cursor of the next pull.
    pub update_time: i64,
}

/// Payload of 2201: I have read up to `id` on another device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadPayload {
    pub id: MessageId,
    /// Of a private conversation the peer.
    #[serde(default)]
    pub receiver_id: Option<UserId>,
    #[serde(default)]
    pub group_id: Option<GroupId>,
    #[serde(default, deserialize_with = "deserialize_optional_integer")]
    pub channel_id: Option<i64>,
}

/// Payload of 2200. Private: `sender_id` has read my messages up to `id`. Group: how many have read message `id`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptPayload {
    pub id: MessageId,
    #[serde(default)]
    pub sender_id: Option<UserId>,
    #[serde(default)]
    pub group_id: Option<GroupId>,
    #[serde(default)]
    pub read_count: Option<i64>,
    #[serde(default)]
    pub receipt_status: Option<i32>,
}

/// Payload of 2301: `sender_id` is writing to me, or in a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypingPayload {
    pub sender_id: UserId,
    #[serde(default)]
    pub receiver_id: Option<UserId>,
    #[serde(default)]
    pub group_id: Option<GroupId>,
}

/// One of my sign-ins.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Session {
    pub id: LoginId,
    /// Whatever else the server tells: device, times, whether it is this one.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// A user to create through the server API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewUser {
    /// The id of the user in the calling system.
    pub external_id: String,
    pub nickname: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
}

/// A user of the calling system and its account here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedUser {
    pub external_id: String,
    pub user_id: UserId,
}

/// Tokens that the server API gives out for a user.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedTokens {
    pub external_id: String,
    #[serde(flatten)]
    pub tokens: Tokens,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_more_or_fewer_fields_are_read() {
        let row = r#"{"id":"5","senderId":1,"receiverId":2,"type":101,"sendTime":9,"new":{}}"#;
        let message: PrivateMessage = serde_json::from_str(row).unwrap();
        assert_eq!((message.id, message.status, message.client_message_id), (MessageId(5), 0, None));
    }

    #[test]
    fn tokens_of_the_server_api_are_flat() {
        let row = r#"{"externalId":"e","userId":7,"accessToken":"a","refreshToken":"r","expiresTime":9}"#;
        let tokens: ImportedTokens = serde_json::from_str(row).unwrap();
        assert_eq!((tokens.external_id.as_str(), tokens.tokens.user_id), ("e", UserId(7)));
        assert_eq!(format!("{tokens:?}").matches("\"a\"").count(), 0);
    }

    #[test]
    fn only_a_recall_row_recalls() {
        let mut row: PrivateMessage = serde_json::from_str(
            r#"{"id":5,"senderId":1,"receiverId":2,"type":2101,"sendTime":9,"content":"{\"messageId\":4}"}"#,
        )
        .unwrap();
        assert_eq!(row.recalled_message(), Some(MessageId(4)));
        row.r#type = 101;
        assert_eq!(row.recalled_message(), None);
    }

    #[test]
    fn drafts_leave_out_an_unset_receipt() {
        let draft = PrivateDraft::text(UserId(2), "a\"b");
        let body = serde_json::to_value(&draft).unwrap();
        assert_eq!(body["content"], r#"{"content":"a\"b"}"#);
        assert!(body.get("receipt").is_none());
        assert_ne!(draft.client_message_id, PrivateDraft::text(UserId(2), "x").client_message_id);
    }
}
