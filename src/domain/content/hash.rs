//! The hash that tells a repeated send from another message under the same client id (`design.md` I2).
//!
//! It is stored with the row and compared for as long as the row lives: a change of the canonical form below would
//! turn repeats across an upgrade into errors.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Content;
use super::quote::QUOTE_KEY;

/// The first 16 bytes of SHA-256 over receiver or group, type, quoted message and content. Equal for contents that
/// differ only in key order, white space, or in what the client wrote into its quote beside `messageId`.
pub fn content_hash(receiver_or_group: i64, content_type: i32, content: &Content) -> [u8; 16] {
    let mut hasher = Sha256::new();
    hasher.update(receiver_or_group.to_be_bytes());
    hasher.update(content_type.to_be_bytes());
    // No message has the id 0, so it can stand for "no quote".
    hasher.update(content.quoted_message_id().unwrap_or(0).to_be_bytes());
    let mut canonical = String::with_capacity(content.raw().len());
    write_object(&mut canonical, content.fields(), Some(QUOTE_KEY));
    hasher.update(canonical);

    let mut hash = [0; 16];
    for (target, byte) in hash.iter_mut().zip(hasher.finalize()) {
        *target = byte;
    }
    hash
}

/// Canonical form: no white space, keys sorted by their bytes, strings and integers as `serde_json` writes them, other
/// numbers in Rust's shortest exponent form. Nothing is left to what may change outside of this crate: the order of
/// `serde_json`'s map is a feature that any dependency can switch on, and its float format has changed before.
/// Parsed values are at most 127 levels deep, so the recursion is bounded.
fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => write_object(text, fields, None),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(text, index);
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Number(number) if number.is_f64() => {
            text.push_str(&format!("{:e}", number.as_f64().unwrap_or_default()));
        }
        leaf => text.push_str(&leaf.to_string()),
    }
}

fn write_object(text: &mut String, fields: &Map<String, Value>, left_out: Option<&str>) {
    let mut members: Vec<_> = fields.iter().filter(|(key, _)| Some(key.as_str()) != left_out).collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        separate(text, index);
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        write_value(text, value);
    }
    text.push('}');
}

fn separate(text: &mut String, index: usize) {
    if index > 0 {
        text.push(',');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::super::{ContentType, parse_content};
    use super::*;

    fn hash(raw: &str) -> [u8; 16] {
        content_hash(2, 101, &parse_content(ContentType::Text, raw).unwrap())
    }

    #[rstest]
    #[case::order(r#"{"content":"x","a":{"c":1,"b":2}}"#, r#"{"a":{"b":2,"c":1},"content":"x"}"#)]
    #[case::white_space(r#"{"content":"x"}"#, " {\n\"content\" : \"x\" }\n")]
    #[case::escapes(r#"{"content":"ä/"}"#, r#"{"content":"\u00e4\/"}"#)]
    #[case::quote_reduced(
        r#"{"content":"x","quote":{"messageId":7,"content":"as sent first"}}"#,
        r#"{"quote":{"content":"as stored","messageId":"7","senderId":2},"content":"x"}"#
    )]
    #[case::useless_quote(r#"{"content":"x"}"#, r#"{"content":"x","quote":{"messageId":"?"}}"#)]
    fn equal(#[case] left: &str, #[case] right: &str) {
        assert_eq!(hash(left), hash(right));
    }

    #[rstest]
    #[case::text(r#"{"content":"x"}"#, r#"{"content":"y"}"#)]
    #[case::extra(r#"{"content":"x"}"#, r#"{"content":"x","a":null}"#)]
    #[case::kind(r#"{"content":"x","a":1}"#, r#"{"content":"x","a":"1"}"#)]
    #[case::list_order(r#"{"content":"x","a":[1,2]}"#, r#"{"content":"x","a":[2,1]}"#)]
    #[case::nesting(r#"{"content":"x","a":[[1],2]}"#, r#"{"content":"x","a":[[1,2]]}"#)]
    #[case::quote(r#"{"content":"x"}"#, r#"{"content":"x","quote":{"messageId":7}}"#)]
    #[case::quoted_id(r#"{"content":"x","quote":{"messageId":8}}"#, r#"{"content":"x","quote":{"messageId":7}}"#)]
    #[case::deeper_quote(r#"{"content":"x","a":{"quote":1}}"#, r#"{"content":"x","a":{"quote":2}}"#)]
    fn different(#[case] left: &str, #[case] right: &str) {
        assert_ne!(hash(left), hash(right));
    }

    #[test]
    fn receiver_and_type_count() {
        let content = parse_content(ContentType::Text, r#"{"content":"x"}"#).unwrap();
        assert_ne!(content_hash(2, 101, &content), content_hash(3, 101, &content));
        assert_ne!(content_hash(2, 101, &content), content_hash(2, 102, &content));
    }

    /// Hashes are stored: this value may never change.
    #[test]
    fn the_canonical_form_is_fixed() {
        let value =
            hash(r#"{"quote":{"messageId":7},"content":"ä\n\"","n":[1,-2,1.5,1e30,true,null],"o":{"b":{},"a":[]}}"#);
        assert_eq!(u128::from_be_bytes(value), 0xe3f99bb652e6fcb6ec5514a85584d980);
    }

    proptest! {
        #[test]
        fn order_and_white_space_do_not_matter(
            fields in prop::collection::btree_map("[a-z]{1,4}", any::<Option<i64>>(), 0..8),
        ) {
            let mut members: Vec<_> = fields.iter().map(|(key, value)| format!("{key:?}:{}", Value::from(*value))).collect();
            let forwards = hash(&format!(r#"{{{}}}"#, [members.clone(), vec![r#""content":"x""#.into()]].concat().join(",")));
            members.reverse();
            let backwards = hash(&format!(r#"{{ {} }}"#, [vec![r#""content" : "x""#.into()], members].concat().join(" , ")));
            prop_assert_eq!(forwards, backwards);
        }

        #[test]
        fn other_text_other_hash(left in "[a-z]{1,9}", right in "[a-z]{1,9}") {
            let content = |text: &str| format!(r#"{{"content":"{text}"}}"#);
            prop_assert_eq!(hash(&content(&left)) == hash(&content(&right)), left == right);
        }
    }
}
