//! From a text frame to a [`Push`] (`contract/01` sections 9.2 and 10).

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::types::{GroupMessage, PrivateMessage, ReadPayload, ReceiptPayload, TypingPayload};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::ids::MessageId;

/// A notification of the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Push {
    /// A row of the private message table other than a recall: a user's message, or an event such as FRIEND_ADD.
    PrivateMessage(PrivateMessage),
    /// A RECALL row, and the message that it takes back.
    Recall { row: PrivateMessage, recalled: MessageId },
    /// A row of the group message table other than a recall.
    GroupMessage(GroupMessage),
    /// A RECALL row of a group, and the message that it takes back.
    GroupRecall { row: GroupMessage, recalled: MessageId },
    /// I have read on another device; of any conversation type.
    Read { conversation_type: i32, payload: ReadPayload },
    /// Somebody has read what I wrote.
    Receipt { conversation_type: i32, payload: ReceiptPayload },
    /// Somebody is writing.
    Typing(TypingPayload),
    /// Everything else, as it came.
    Other { conversation_type: i32, content_type: i32, payload: Value },
}

/// What a text frame was.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Incoming {
    Pong,
    Push(Push),
    /// Not for us: another frame type, or something unreadable. Ignored, as clients must be able to do.
    Unknown,
}

/// `content` is the envelope as a JSON text, or (tolerated) the envelope itself.
#[derive(Deserialize)]
struct TextFrame<'a, C> {
    r#type: &'a str,
    content: C,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    conversation_type: i32,
    content_type: i32,
    #[expect(dead_code, reason = "must be there")]
    payload: IgnoredAny,
}

#[derive(Deserialize)]
struct Body<P> {
    payload: P,
}

/// Reads a text frame. The envelope is read twice, first its numbers and then the payload in its own form: that costs
/// less than building a tree of values of it.
pub(super) fn parse_frame(text: &str) -> Incoming {
    if text == "pong" {
        return Incoming::Pong;
    }
    let push = match serde_json::from_str::<TextFrame<'_, String>>(text) {
        Ok(frame) if frame.r#type == "im-notification" => parse_envelope(&frame.content),
        Ok(_) => None,
        Err(_) => match serde_json::from_str::<TextFrame<'_, Value>>(text) {
            Ok(frame) if frame.r#type == "im-notification" => parse_envelope(&frame.content.to_string()),
            _ => None,
        },
    };
    push.map_or(Incoming::Unknown, Incoming::Push)
}

fn parse_envelope(envelope: &str) -> Option<Push> {
    let head: Head = serde_json::from_str(envelope).ok()?;
    let conversation_type = head.conversation_type;
    let known = match ContentType::from_number(head.content_type) {
        Some(ContentType::Read) => payload(envelope).map(|payload| Push::Read { conversation_type, payload }),
        Some(ContentType::Receipt) => payload(envelope).map(|payload| Push::Receipt { conversation_type, payload }),
        Some(ContentType::Typing) => payload(envelope).map(Push::Typing),
        Some(stored) if stored.is_persistent() && conversation_type == ConversationType::Private.number() => {
            payload(envelope)
                .map(|row: PrivateMessage| private_row(PrivateMessage { r#type: head.content_type, ..row }))
        }
        Some(stored) if stored.is_persistent() && conversation_type == ConversationType::Group.number() => {
            payload(envelope).map(|row: GroupMessage| group_row(GroupMessage { r#type: head.content_type, ..row }))
        }
        _ => None,
    };
    // Also where a known type has another form, such as the silent FRIEND_ADD, whose id is null.
    known.or_else(|| {
        let payload = payload(envelope)?;
        Some(Push::Other { conversation_type, content_type: head.content_type, payload })
    })
}

fn private_row(row: PrivateMessage) -> Push {
    match row.recalled_message() {
        Some(recalled) => Push::Recall { row, recalled },
        None => Push::PrivateMessage(row),
    }
}

fn group_row(row: GroupMessage) -> Push {
    match row.recalled_message() {
        Some(recalled) => Push::GroupRecall { row, recalled },
        None => Push::GroupMessage(row),
    }
}

fn payload<P: DeserializeOwned>(envelope: &str) -> Option<P> {
    serde_json::from_str::<Body<P>>(envelope).ok().map(|body| body.payload)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::domain::ids::{GroupId, UserId};

    fn frame(conversation_type: i32, content_type: i32, payload: Value) -> String {
        let envelope =
            json!({ "conversationType": conversation_type, "contentType": content_type, "payload": payload });
        json!({ "type": "im-notification", "content": envelope.to_string() }).to_string()
    }

    fn message(content: &str) -> Value {
        json!({ "id": 5, "clientMessageId": "c", "senderId": 1, "receiverId": 2, "type": 0, "content": content,
                "status": 0, "receiptStatus": 1, "sendTime": 9 })
    }

    fn push(text: &str) -> Push {
        match parse_frame(text) {
            Incoming::Push(push) => push,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_private_message_has_the_type_of_its_envelope() {
        let Push::PrivateMessage(row) = push(&frame(1, 101, message(r#"{"content":"ä"}"#))) else { panic!() };
        assert_eq!((row.id, row.r#type, row.content.as_str()), (MessageId(5), 101, r#"{"content":"ä"}"#));
    }

    #[test]
    fn the_envelope_may_be_an_object() {
        let envelope = json!({ "conversationType": 1, "contentType": 101, "payload": message("{}") });
        let text = json!({ "type": "im-notification", "content": envelope }).to_string();
        assert!(matches!(push(&text), Push::PrivateMessage(_)));
    }

    #[test]
    fn a_recall_names_its_message() {
        let Push::Recall { recalled, .. } = push(&frame(1, 2101, message(r#"{"messageId":4}"#))) else { panic!() };
        assert_eq!(recalled, MessageId(4));
    }

    #[test]
    fn group_messages_and_their_recalls() {
        let row = |content: &str| {
            json!({ "id": 5, "clientMessageId": "c", "senderId": 1, "groupId": 3, "content": content, "status": 0,
                    "type": 0, "sendTime": 9, "receiverUserIds": null })
        };
        let Push::GroupMessage(message) = push(&frame(2, 101, row("{}"))) else { panic!() };
        assert_eq!((message.group_id, message.r#type), (GroupId(3), 101));
        let Push::GroupRecall { recalled, .. } = push(&frame(2, 2101, row(r#"{"messageId":4}"#))) else { panic!() };
        assert_eq!(recalled, MessageId(4));
    }

    #[test]
    fn reads_and_receipts() {
        let read = push(&frame(
            1,
            2201,
            json!({ "id": 7, "senderId": 1, "receiverId": 2, "groupId": null,
                                                 "channelId": null, "readId": 7 }),
        ));
        let Push::Read { conversation_type: 1, payload } = read else { panic!("{read:?}") };
        assert_eq!((payload.id, payload.receiver_id), (MessageId(7), Some(UserId(2))));

        let receipt = push(&frame(2, 2200, json!({ "id": 7, "groupId": 3, "readCount": 2, "receiptStatus": 1 })));
        let Push::Receipt { conversation_type: 2, payload } = receipt else { panic!("{receipt:?}") };
        assert_eq!((payload.group_id, payload.read_count), (Some(GroupId(3)), Some(2)));
    }

    #[test]
    fn typing_belongs_to_no_conversation() {
        let Push::Typing(payload) = push(&frame(0, 2301, json!({ "senderId": 1, "receiverId": 2 }))) else { panic!() };
        assert_eq!((payload.sender_id, payload.receiver_id), (UserId(1), Some(UserId(2))));
    }

    #[rstest]
    #[case::friend_request(0, 1203, json!({ "requestId": 1 }))]
    #[case::silent_friend_add(1, 1204, json!({ "id": null, "senderId": 1, "receiverId": 2, "content": "{}" }))]
    #[case::group_nickname(2, 1516, json!({ "id": null, "groupId": 3 }))]
    #[case::future_type(1, 9999, message("{}"))]
    fn the_rest_comes_as_it_is(#[case] conversation: i32, #[case] content: i32, #[case] payload: Value) {
        let expected = Push::Other { conversation_type: conversation, content_type: content, payload: payload.clone() };
        assert_eq!(push(&frame(conversation, content, payload)), expected);
    }

    #[rstest]
    #[case::other_type(r#"{"type":"notice-push","content":"{}"}"#)]
    #[case::plain("hello")]
    #[case::empty("")]
    #[case::no_payload(r#"{"type":"im-notification","content":"{\"conversationType\":1,\"contentType\":101}"}"#)]
    #[case::bad_envelope(r#"{"type":"im-notification","content":"x"}"#)]
    fn what_is_not_for_us_is_ignored(#[case] text: &str) {
        assert_eq!(parse_frame(text), Incoming::Unknown);
    }

    #[test]
    fn pong_is_no_json() {
        assert_eq!(parse_frame("pong"), Incoming::Pong);
    }

    proptest! {
        #[test]
        fn no_frame_makes_it_panic(text in ".*", conversation in 0..4, content in 0..2400) {
            parse_frame(&text);
            parse_frame(&frame(conversation, content, json!(text)));
        }
    }
}
