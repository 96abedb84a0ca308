//! Parsing: from the text of a request to a checked [`Content`].

use serde_json::{Map, Value};

use super::{ContentInvalid, ContentType, rules};

/// Longest content that a client may send, in bytes (`design.md` section 4).
pub const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// A content that a user may send: a JSON object that obeys the rules of its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    raw: String,
    fields: Map<String, Value>,
    has_sensitive_word: bool,
}

impl Content {
    /// The text as it was sent, byte for byte.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// What a TEXT says.
    pub fn text(&self) -> Option<&str> {
        self.fields.get("content")?.as_str()
    }

    /// Notes that it holds a sensitive word, so that whoever wants to send it is refused.
    pub fn mark_sensitive(&mut self) {
        self.has_sensitive_word = true;
    }

    pub fn has_sensitive_word(&self) -> bool {
        self.has_sensitive_word
    }

    /// The parsed object. Of repeated keys it holds the last, as in JavaScript.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }
}

/// Checks what a user sent as a message of this type.
///
/// # Errors
/// [`ContentInvalid`] when the text is over [`MAX_CONTENT_BYTES`], is no JSON object (or one nested deeper than 127
/// levels), contains U+0000 in any form, breaks a rule of its type, or when users may not send this type at all.
pub fn parse_content(content_type: ContentType, raw: &str) -> Result<Content, ContentInvalid> {
    if raw.len() > MAX_CONTENT_BYTES {
        return Err(ContentInvalid("longer than 64 KiB"));
    }
    // serde_json stops at its recursion limit, so neither this nor anything that walks the value can use up the stack.
    let fields: Map<String, Value> = serde_json::from_str(raw).map_err(|_| ContentInvalid("not a JSON object"))?;
    if has_escaped_nul(raw) {
        return Err(ContentInvalid("contains U+0000"));
    }
    rules::check_fields(content_type, &fields)?;
    Ok(Content { raw: raw.to_owned(), fields, has_sensitive_word: false })
}

/// Whether valid JSON contains `\u0000`, which PostgreSQL cannot hold once it is decoded. A scan of the text, and not
/// of the value, because of a repeated key the value holds only the last. (A bare U+0000 is not valid JSON.)
fn has_escaped_nul(raw: &str) -> bool {
    let mut rest = raw;
    while let Some((_, escape)) = rest.split_once('\\') {
        if escape.starts_with("u0000") {
            return true;
        }
        let mut characters = escape.chars();
        characters.next();
        rest = characters.as_str();
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::empty("")]
    #[case::plain_text("hello")]
    #[case::array(r#"["content"]"#)]
    #[case::string(r#""content""#)]
    #[case::null("null")]
    #[case::unfinished(r#"{"content":"x""#)]
    #[case::trailing(r#"{"content":"x"} x"#)]
    #[case::bare_control("{\"content\":\"a\u{1}\"}")]
    #[case::lone_surrogate(r#"{"content":"\ud83d"}"#)]
    fn only_json_objects_are_contents(#[case] raw: &str) {
        assert_eq!(parse_content(ContentType::Text, raw), Err(ContentInvalid("not a JSON object")));
    }

    #[rstest]
    #[case::in_a_string(r#"{"content":"a\u0000"}"#)]
    #[case::in_a_key(r#"{"content":"a","\u0000":1}"#)]
    #[case::deep(r#"{"content":"a","x":[{"y":"\u0000"}]}"#)]
    #[case::hidden_by_a_repeated_key(r#"{"content":"\u0000","content":"a"}"#)]
    #[case::behind_an_escaped_backslash(r#"{"content":"\\\u0000"}"#)]
    #[case::bare("{\"content\":\"a\0\"}")]
    fn nul_is_refused_everywhere(#[case] raw: &str) {
        assert!(parse_content(ContentType::Text, raw).is_err());
    }

    #[rstest]
    #[case::escaped_backslash(r#"{"content":"\\u0000"}"#)]
    #[case::other_escape(r#"{"content":"\u0001 u0000"}"#)]
    fn look_alikes_of_nul_are_fine(#[case] raw: &str) {
        assert!(parse_content(ContentType::Text, raw).is_ok());
    }

    #[test]
    fn the_limit_counts_bytes() {
        let content = |padding: usize| format!(r#"{{"content":"x","padding":"{}"}}"#, "ä".repeat(padding));
        let frame = content(0).len();
        let fits = (MAX_CONTENT_BYTES - frame) / 2;
        assert!(parse_content(ContentType::Text, &content(fits)).is_ok());
        assert!(parse_content(ContentType::Text, &content(fits + 1)).is_err());
    }

    #[test]
    fn deep_nesting_is_refused_and_not_a_crash() {
        let deep = format!(r#"{{"content":"x","deep":{}{}}}"#, "[".repeat(30_000), "]".repeat(30_000));
        assert!(parse_content(ContentType::Text, &deep).is_err());
    }

    #[test]
    fn extra_fields_and_the_text_itself_are_kept() {
        let raw = r#" { "x" : 1.0, "content" : "a\/b" } "#;
        let content = parse_content(ContentType::Text, raw).unwrap();
        assert_eq!((content.raw(), content.fields().len()), (raw, 2));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(raw in ".*") {
            for content_type in ContentType::ALL {
                let _ = parse_content(*content_type, &raw);
            }
        }

        #[test]
        fn no_scan_makes_it_panic(raw in r#"[\\u0"{}a,:]*"#) {
            has_escaped_nul(&raw);
        }
    }
}
