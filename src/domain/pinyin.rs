//! Chinese names in Latin letters, by which clients sort and search the contact list (`contract/03` section 3.1).

use pinyin::ToPinyin;

/// The reading of a text, or `None` for a blank one: lower case, no tones, `v` for `ü`, one space after each Chinese
/// character except a trailing one; everything else, and the few characters without a known reading, is copied as it
/// is.
///
/// Characters are read one by one, each by its most common reading. Not covered: phrase readings (重庆 gives
/// "zhong qing", where the phrase is "chong qing") and characters that are read differently as a surname. The crates
/// that know phrases were too young to trust with names that anybody may choose.
pub fn to_pinyin(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    let mut latin = String::with_capacity(text.len() * 2);
    let mut is_after_chinese = false;
    for character in text.chars() {
        if is_after_chinese {
            latin.push(' ');
        }
        let reading = character.to_pinyin();
        match reading {
            Some(reading) => {
                latin.extend(reading.plain().chars().map(|letter| if letter == 'ü' { 'v' } else { letter }))
            }
            None => latin.push(character),
        }
        is_after_chinese = reading.is_some();
    }
    Some(latin)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::chinese("张三", "zhang san")]
    #[case::one("王", "wang")]
    #[case::umlaut("吕绿", "lv lv")]
    #[case::traditional("張三豐", "zhang san feng")]
    #[case::without_a_known_reading("𠮷瓼张", "𠮷瓼zhang")]
    #[case::latin("Bob", "Bob")]
    #[case::latin_with_spaces(" Bob  B ", " Bob  B ")]
    #[case::latin_after_chinese("张San", "zhang San")]
    #[case::latin_before_chinese("A张三", "Azhang san")]
    #[case::digits_and_signs("李4·五!", "li 4·wu !")]
    #[case::a_space_of_the_text_stays("张 三", "zhang  san")]
    #[case::other_scripts("Ünal あ Ж 😀", "Ünal あ Ж 😀")]
    #[case::full_width("Ａ张", "Ａzhang")]
    fn readings(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(to_pinyin(text).as_deref(), Some(expected));
    }

    #[rstest]
    #[case("")]
    #[case("  \t")]
    #[case("\u{3000}")]
    fn blank_texts_have_none(#[case] text: &str) {
        assert_eq!(to_pinyin(text), None);
    }

    proptest! {
        #[test]
        fn what_is_not_chinese_is_copied(text in "[ -~à-ÿ]{1,20}") {
            prop_assert_eq!(to_pinyin(&text), Some(text.clone()).filter(|text| !text.trim().is_empty()));
        }

        #[test]
        fn chinese_text_becomes_syllables(text in "[一-龥]{1,20}") {
            prop_assume!(text.chars().all(|character| character.to_pinyin().is_some()));
            let latin = to_pinyin(&text).unwrap_or_default();
            let syllables: Vec<&str> = latin.split(' ').collect();
            prop_assert_eq!(syllables.len(), text.chars().count());
            prop_assert!(!syllables.contains(&""), "{}", latin);
            prop_assert!(!latin.contains('ü') && latin == latin.to_lowercase(), "{}", latin);
        }
    }
}
