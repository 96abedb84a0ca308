//! The id that a client gives to a message before the server knows it, and under which it repeats a send.

/// Longest `clientMessageId`, in characters.
pub const MAX_CLIENT_MESSAGE_ID_LENGTH: usize = 64;

/// Whether `text` can be a `clientMessageId`: 1–64 printable ASCII characters without spaces (`design.md` section 4).
/// Narrower than the contract so that every database compares it the same way.
pub fn check_client_message_id(text: &str) -> bool {
    (1..=MAX_CLIENT_MESSAGE_ID_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::uuid("0d4b9e52-6f6f-4c8b-9b1e-7b8d4f1f2a33", true)]
    #[case::hex("0d4b9e526f6f4c8b9b1e7b8d4f1f2a33", true)]
    #[case::one("x", true)]
    #[case::punctuation("!~/\\\"'", true)]
    #[case::empty("", false)]
    #[case::space("a b", false)]
    #[case::trailing_space("a ", false)]
    #[case::tab("a\tb", false)]
    #[case::nul("a\0", false)]
    #[case::delete("a\u{7f}", false)]
    #[case::umlaut("ä", false)]
    fn characters(#[case] text: &str, #[case] good: bool) {
        assert_eq!(check_client_message_id(text), good);
    }

    #[test]
    fn sixty_four_characters_are_the_limit() {
        assert!(check_client_message_id(&"x".repeat(64)));
        assert!(!check_client_message_id(&"x".repeat(65)));
    }

    proptest! {
        #[test]
        fn any_text_can_be_asked_about(text in ".*") {
            let good = check_client_message_id(&text);
            prop_assert!(!good || (text.is_ascii() && text.trim() == text));
        }
    }
}
