//! Chinese names in Latin letters, by which clients sort and search the contact list (`contract/03` section 3.1).

use std::collections::HashMap;
use std::sync::LazyLock;

use pinyin::ToPinyin;

/// Words whose characters are not all read by their most common readings, one a line with its readings: everyday words,
/// places, surnames of two characters, and names that chats are full of. A list of our own, because the crates that
/// know phrases are too young to trust with names that anybody may choose, and large.
const PHRASES: &str = include_str!("phrases.txt");

/// Longest word of the list, characters.
const LONGEST_PHRASE: usize = 5;

static READINGS: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| PHRASES.lines().filter_map(|line| line.split_once(' ')).collect());

/// The reading of a text, or `None` for a blank one: lower case, no tones, `v` for `ü`, one space after each Chinese
/// character except a trailing one; everything else, and the few characters without a known reading, is copied as it
/// is.
///
/// Words of the list, longest first from left to right, have their phrase reading (重庆: "chong qing"); every other
/// character has its most common one. A single character is not taken for a surname (单 is "dan" in 单强).
pub fn to_pinyin(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    let mut latin = String::with_capacity(text.len() * 2);
    let mut is_after_chinese = false;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if is_after_chinese {
            latin.push(' ');
        }
        let phrase = phrase_at(rest);
        is_after_chinese = match phrase {
            Some((_, reading)) => {
                latin.push_str(reading);
                true
            }
            None => push_character(&mut latin, character),
        };
        let length = phrase.map_or(character.len_utf8(), |(word, _)| word.len());
        rest = rest.get(length..).unwrap_or_default();
    }
    Some(latin)
}

/// The longest word of the list with which a text begins, and its reading.
fn phrase_at(text: &str) -> Option<(&'static str, &'static str)> {
    let mut ends = [0; LONGEST_PHRASE];
    let mut count = 0;
    for (slot, (start, character)) in ends.iter_mut().zip(text.char_indices()) {
        // Nothing in the list is below U+4E00; most texts in other scripts end the search here.
        if character < '\u{4e00}' {
            break;
        }
        *slot = start + character.len_utf8();
        count += 1;
    }
    let ends = ends.get(1..count)?;
    ends.iter().rev().find_map(|end| READINGS.get_key_value(text.get(..*end)?)).map(|(word, reading)| (*word, *reading))
}

/// Adds one character by its most common reading; whether it has one.
fn push_character(latin: &mut String, character: char) -> bool {
    match character.to_pinyin() {
        Some(reading) => {
            latin.extend(reading.plain().chars().map(|letter| if letter == 'ü' { 'v' } else { letter }));
            true
        }
        None => {
            latin.push(character);
            false
        }
    }
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
    #[case::phrase("重庆", "chong qing")]
    #[case::phrase_among_others("我爱重庆火锅", "wo ai chong qing huo guo")]
    #[case::not_the_phrase("重量", "zhong liang")]
    #[case::longer_phrase_first("天长地久长城", "tian chang di jiu chang cheng")]
    #[case::phrase_after_latin("A银行B", "Ayin hang B")]
    #[case::surname_of_two("尉迟恭", "yu chi gong")]
    #[case::nickname("音乐小屋", "yin yue xiao wu")]
    #[case::half_a_phrase("银", "yin")]
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

    #[test]
    fn every_phrase_has_its_reading() {
        for line in PHRASES.lines() {
            let (word, reading) = line.split_once(' ').unwrap_or_default();
            let length = word.chars().count();
            assert!((2..=LONGEST_PHRASE).contains(&length) && reading.split(' ').count() == length, "{line}");
            assert!(reading.chars().all(|letter| letter == ' ' || letter.is_ascii_lowercase()), "{line}");
            assert_eq!(to_pinyin(word).as_deref(), Some(reading));
        }
        assert_eq!(READINGS.len(), PHRASES.lines().count(), "a word stands twice");
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
