//! Quotes: which message a content answers, and the copy of it that the server puts in (`contract/02` section 2.2).
//!
//! A client's own quote is never trusted, only its `messageId`. All other bytes of a content stay as they were sent:
//! members are cut out of the text and added to it, the text is not written anew.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Content, ContentInvalid, rules};
use crate::domain::ids::{MAX_ID, MessageId, UserId};

/// The key under which a content holds its quote.
pub(super) const QUOTE_KEY: &str = "quote";

/// Longest content with its quote, in bytes. 64 KiB sent, and 64 KiB quoted, which escaping can double.
pub const MAX_STORED_CONTENT_BYTES: usize = 192 * 1024;

/// The copy of a quoted message as it was stored at that moment; a later recall does not change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quote {
    pub message_id: MessageId,
    pub sender_id: UserId,
    pub r#type: i32,
    /// The stored content of the original without its own quote, see [`strip_quote`].
    pub content: String,
}

impl Content {
    /// The message that this content quotes: `quote.messageId`, a number or a numeric string. `None` when there is no
    /// quote or it is not usable; it is then removed, not refused.
    pub fn quoted_message_id(&self) -> Option<i64> {
        let id = rules::integer(self.fields().get(QUOTE_KEY)?.get("messageId"))?;
        (1..=MAX_ID).contains(&id).then_some(id)
    }

    /// The text without its quote; byte for byte as it was sent when there is none.
    pub fn without_quote(&self) -> String {
        if !self.fields().contains_key(QUOTE_KEY) {
            return self.raw().to_owned();
        }
        join(&members_without_quote(self.raw()))
    }

    /// The text with `quote` in place of the client's.
    ///
    /// # Errors
    /// [`ContentInvalid`] when the result is over [`MAX_STORED_CONTENT_BYTES`].
    pub fn with_quote(&self, quote: &Quote) -> Result<String, ContentInvalid> {
        let quote = serde_json::to_string(quote).map_err(|_| ContentInvalid("quote cannot be written"))?;
        let member = format!("\"{QUOTE_KEY}\":{quote}");
        let mut members = members_without_quote(self.raw());
        members.push(&member);
        let content = join(&members);
        if content.len() > MAX_STORED_CONTENT_BYTES {
            return Err(ContentInvalid("too long with its quote"));
        }
        Ok(content)
    }
}

/// A stored content without its own quote, as it goes into another message's quote. What is no JSON object, or has no
/// quote, comes back unchanged.
pub fn strip_quote(stored: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(stored) {
        Ok(fields) if fields.contains_key(QUOTE_KEY) => join(&members_without_quote(stored)),
        _ => stored.to_owned(),
    }
}

fn join(members: &[&str]) -> String {
    format!("{{{}}}", members.join(","))
}

/// The texts `"key": value` of all members of a valid JSON object but `quote`, also where that key is repeated or
/// written with escapes.
fn members_without_quote(object: &str) -> Vec<&str> {
    let mut members = members(object);
    members.retain(|member| key(member).as_deref() != Some(QUOTE_KEY));
    members
}

/// The key with which a member begins.
fn key(member: &str) -> Option<String> {
    serde_json::Deserializer::from_str(member).into_iter::<String>().next()?.ok()
}

/// The members of a valid JSON object, trimmed. Only the nesting and the strings matter, so a scan is enough.
fn members(object: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for (index, byte) in object.bytes().enumerate() {
        if in_string {
            in_string = byte != b'"' || is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        if depth == 1 && matches!(byte, b',' | b'}') {
            found.extend(object.get(start..index).map(str::trim).filter(|member| !member.is_empty()));
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 1 && matches!(byte, b'{' | b',') {
            start = index + 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::super::{ContentType, parse_content};
    use super::*;

    fn text(raw: &str) -> Content {
        parse_content(ContentType::Text, raw).unwrap()
    }

    fn quote(content: &str) -> Quote {
        Quote { message_id: MessageId(7), sender_id: UserId(2), r#type: 101, content: content.to_owned() }
    }

    #[rstest]
    #[case::number(r#"{"content":"x","quote":{"messageId":7,"content":"lie"}}"#, Some(7))]
    #[case::string(r#"{"content":"x","quote":{"messageId":"7"}}"#, Some(7))]
    #[case::largest(r#"{"content":"x","quote":{"messageId":9007199254740991}}"#, Some(MAX_ID))]
    #[case::last_of_two(r#"{"content":"x","quote":{"messageId":6},"quote":{"messageId":7}}"#, Some(7))]
    #[case::escaped_key(r#"{"content":"x","\u0071uote":{"messageId":7}}"#, Some(7))]
    #[case::too_large(r#"{"content":"x","quote":{"messageId":9007199254740992}}"#, None)]
    #[case::zero(r#"{"content":"x","quote":{"messageId":0}}"#, None)]
    #[case::negative(r#"{"content":"x","quote":{"messageId":-7}}"#, None)]
    #[case::fraction(r#"{"content":"x","quote":{"messageId":7.5}}"#, None)]
    #[case::word(r#"{"content":"x","quote":{"messageId":"x"}}"#, None)]
    #[case::no_id(r#"{"content":"x","quote":{}}"#, None)]
    #[case::null_id(r#"{"content":"x","quote":{"messageId":null}}"#, None)]
    #[case::null(r#"{"content":"x","quote":null}"#, None)]
    #[case::list(r#"{"content":"x","quote":[7]}"#, None)]
    #[case::missing(r#"{"content":"x"}"#, None)]
    #[case::deeper(r#"{"content":"x","y":{"quote":{"messageId":7}}}"#, None)]
    fn quoted_id(#[case] raw: &str, #[case] id: Option<i64>) {
        assert_eq!(text(raw).quoted_message_id(), id);
    }

    #[rstest]
    #[case::none(r#" { "content" : "x" } "#, r#" { "content" : "x" } "#)]
    #[case::only_the_word(r#"{"content":"a \"quote\" b"}"#, r#"{"content":"a \"quote\" b"}"#)]
    #[case::deeper(r#"{"content":"x","y":{"quote":1}}"#, r#"{"content":"x","y":{"quote":1}}"#)]
    #[case::last(r#"{"content":"x","quote":{"a":[1,{"b":"}"}]}}"#, r#"{"content":"x"}"#)]
    #[case::first(r#"{ "quote":null , "content":"x" }"#, r#"{"content":"x"}"#)]
    #[case::between(r#"{"a":1.00,"quote":"\"}","content":"x\\"}"#, r#"{"a":1.00,"content":"x\\"}"#)]
    #[case::repeated(r#"{"quote":1,"content":"x","quote":2}"#, r#"{"content":"x"}"#)]
    #[case::escaped_key(r#"{"content":"x","\u0071uote":2}"#, r#"{"content":"x"}"#)]
    #[case::with_a_list(
        r#"{"quote":1,"l":[1,2,[3,{"quote":4}]],"content":"x"}"#,
        r#"{"l":[1,2,[3,{"quote":4}]],"content":"x"}"#
    )]
    fn removed(#[case] raw: &str, #[case] expected: &str) {
        assert_eq!(text(raw).without_quote(), expected);
        assert_eq!(strip_quote(raw), expected);
    }

    #[rstest]
    #[case::empty("")]
    #[case::plain("quote")]
    #[case::list(r#"["quote"]"#)]
    #[case::broken(r#"{"quote":"#)]
    #[case::recalled("{}")]
    fn what_holds_no_quote_is_left_alone(#[case] stored: &str) {
        assert_eq!(strip_quote(stored), stored);
    }

    #[test]
    fn an_object_of_nothing_but_a_quote_becomes_empty() {
        assert_eq!(strip_quote(r#"{"quote":{}}"#), "{}");
    }

    #[test]
    fn the_servers_quote_replaces_the_clients() {
        let content = text(r#"{"quote":{"messageId":"7","content":"lie"},"content":"x"}"#);
        let expected =
            r#"{"content":"x","quote":{"messageId":7,"senderId":2,"type":101,"content":"{\"content\":\"true\"}"}}"#;
        assert_eq!(content.with_quote(&quote(r#"{"content":"true"}"#)).unwrap(), expected);
    }

    #[test]
    fn a_quote_can_be_too_long_to_store() {
        let content = text(r#"{"content":"x"}"#);
        assert!(content.with_quote(&quote(&"\"".repeat(64 * 1024))).is_ok());
        assert!(content.with_quote(&quote(&"\"".repeat(96 * 1024))).is_err());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            r#"[a-z"\\{}\[\],: ]*"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(r#"quote|[a-z"\\]{0,3}"#, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn removing_a_quote_changes_nothing_else(
            mut fields in prop::collection::btree_map(r#"quote|[a-z"\\,]{0,3}"#, any_json(), 0..5),
            pretty in any::<bool>(),
        ) {
            let raw = if pretty { serde_json::to_string_pretty(&fields) } else { serde_json::to_string(&fields) }.unwrap();
            let stripped = strip_quote(&raw);
            // Compared after one more round through text, because floats may be written shorter than they were made.
            let original: std::collections::BTreeMap<String, Value> = serde_json::from_str(&raw).unwrap();
            fields = original.into_iter().filter(|(name, _)| name != "quote").collect();
            let left: std::collections::BTreeMap<String, Value> = serde_json::from_str(&stripped).unwrap();
            prop_assert_eq!(left, fields);
        }

        #[test]
        fn no_text_makes_it_panic(stored in r#"[\\"{}\[\],:quote ä]*"#) {
            strip_quote(&stored);
            members_without_quote(&stored);
        }
    }
}
