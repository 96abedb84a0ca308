//! Sensitive words (`contract/05` part D): texts that hold one are refused. Words and texts are compared in a *folded*
//! form, which is the same for upper and lower case, full and half width, every style of digits, and traditional and
//! simplified Chinese.

use std::collections::HashMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, BuildError};

/// The Chinese characters of the Basic Multilingual Plane that are written in one way only where they are traditional.
const CHINESE: std::ops::RangeInclusive<char> = '\u{3400}'..='\u{9FFF}';

/// Traditional characters, each with its simplified one, whatever stands beside it: a word must fold as it does in a
/// text. Made once, in some milliseconds.
static SIMPLIFIED: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
    let pair = |traditional: char| {
        let converted = simplet2s::convert(traditional.encode_utf8(&mut [0; 4]));
        let mut characters = converted.chars();
        let simplified = characters.next()?;
        (characters.next().is_none() && simplified != traditional).then_some((traditional, simplified))
    };
    let once: HashMap<char, char> = CHINESE.filter_map(pair).collect();
    // Folding a folded text must change nothing.
    let last = |simplified: &char| *once.get(simplified).unwrap_or(simplified);
    let resolved = once.iter().map(|(traditional, simplified)| (*traditional, last(simplified)));
    resolved.filter(|(_, simplified)| !once.contains_key(simplified)).collect()
});

/// Runs of characters that mean the digits 0 to 9 or 1 to 9: the first character, and the digit that it means.
const DIGIT_RUNS: &[(char, u32)] =
    &[('₀', 0), ('①', 1), ('⑴', 1), ('⒈', 1), ('⓵', 1), ('❶', 1), ('➀', 1), ('➊', 1), ('㈠', 1), ('㊀', 1), ('⁴', 4)];
/// Those that stand alone, in the order of their digits, after simplification.
const SINGLE_DIGITS: &[(&str, u32)] = &[
    ("零〇⓪⓿⁰", 0),
    ("一壹¹", 1),
    ("二贰²", 2),
    ("三叁³", 3),
    ("四肆", 4),
    ("五伍", 5),
    ("六陆", 6),
    ("七柒", 7),
    ("八捌", 8),
    ("九玖", 9),
];
/// Bold, double-struck and other digits of mathematics: five alphabets of ten.
const MATHEMATICAL_DIGITS: std::ops::RangeInclusive<u32> = 0x1D7CE..=0x1D7FF;

/// A text in the form in which words are compared.
pub fn fold(text: &str) -> String {
    text.chars().map(half_width).flat_map(char::to_lowercase).map(simplified).map(ascii_digit).collect()
}

fn half_width(character: char) -> char {
    match u32::from(character) {
        0x3000 => ' ',
        code @ 0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0).unwrap_or(character),
        _ => character,
    }
}

fn simplified(character: char) -> char {
    if !CHINESE.contains(&character) {
        return character;
    }
    SIMPLIFIED.get(&character).copied().unwrap_or(character)
}

fn ascii_digit(character: char) -> char {
    if character.is_ascii() {
        return character;
    }
    let code = u32::from(character);
    let mut digit = None;
    if MATHEMATICAL_DIGITS.contains(&code) {
        digit = Some((code - MATHEMATICAL_DIGITS.start()) % 10);
    }
    for (first, value) in DIGIT_RUNS {
        let place = code.wrapping_sub(u32::from(*first));
        if place <= 9 - value {
            digit = Some(value + place);
        }
    }
    let single = SINGLE_DIGITS.iter().find(|(characters, _)| characters.contains(character));
    digit.or(single.map(|(_, value)| *value)).and_then(|digit| char::from_digit(digit, 10)).unwrap_or(character)
}

/// Words in the form in which many are looked for at once.
pub struct WordList(Option<AhoCorasick>);

impl WordList {
    /// Takes time in proportion to the length of all words.
    ///
    /// # Errors
    /// More words than the automaton has room for: some hundred million characters.
    pub fn build(words: &[String]) -> Result<WordList, BuildError> {
        let folded: Vec<String> = words.iter().map(|word| fold(word)).filter(|word| !word.is_empty()).collect();
        if folded.is_empty() {
            return Ok(WordList(None));
        }
        AhoCorasick::new(folded).map(|automaton| WordList(Some(automaton)))
    }

    /// Whether a text holds one of the words. Takes time in proportion to the text, however many words there are.
    pub fn is_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|automaton| automaton.is_match(&fold(text)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn list(words: &[&str]) -> WordList {
        WordList::build(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[rstest]
    #[case::as_it_is("spam", "buy spam now", true)]
    #[case::inside_a_word("spam", "antispammer", true)]
    #[case::upper_case("spam", "SpAm", true)]
    #[case::upper_case_of_the_word("SPAM", "spam", true)]
    #[case::umlaut("ÄRGER", "ärger", true)]
    #[case::full_width("spam!", "ｓｐａｍ！", true)]
    #[case::full_width_space("a b", "a\u{3000}b", true)]
    #[case::traditional("赌钱", "賭錢", true)]
    #[case::traditional_word("賭錢", "赌钱", true)]
    #[case::circled("110", "①①⓪", true)]
    #[case::chinese_digits("110", "一一〇", true)]
    #[case::financial_digits("163", "壹陸參", false)]
    #[case::financial_digits_simplified("16", "壹陸", true)]
    #[case::superscript("x23", "x²³", true)]
    #[case::superscript_above_three("x49", "x⁴⁹", true)]
    #[case::subscript("h2o", "H₂O", true)]
    #[case::bold("42", "\u{1D7D2}\u{1D7D0}", true)]
    #[case::full_width_digits("42", "４２", true)]
    #[case::parenthesized("9", "⑼", true)]
    #[case::ten_is_no_digit("0", "⑩", false)]
    #[case::spread_out("spam", "s p a m", false)]
    #[case::another_word("spam", "ham", false)]
    #[case::nothing("spam", "", false)]
    fn words_are_found_in_every_form(#[case] word: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(list(&[word]).is_in(text), expected);
    }

    #[test]
    fn one_of_many_words_is_enough_and_none_finds_nothing() {
        let words: Vec<String> = (0..5_000).map(|number| format!("word number {number}.")).collect();
        let list = WordList::build(&words).unwrap();
        assert!(list.is_in("this is WORD NUMBER ４７１1."));
        assert!(!list.is_in("this is word number 5000."));
        assert!(!WordList::build(&[]).unwrap().is_in("anything"));
    }

    #[test]
    fn characters_are_simplified_in_one_step() {
        assert!(SIMPLIFIED.len() > 2_000, "{}", SIMPLIFIED.len());
        assert!(SIMPLIFIED.values().all(|character| !SIMPLIFIED.contains_key(character)));
    }

    proptest! {
        #[test]
        fn folding_a_folded_text_changes_nothing(text in ".*") {
            // The capital dotted I becomes two characters, both of which stay.
            prop_assert_eq!(fold(&fold(&text)), fold(&text));
        }

        #[test]
        fn a_word_is_found_wherever_it_stands(word in "\\PC{1,8}", before in ".*", after in ".*") {
            let text = format!("{before}{word}{after}");
            prop_assert!(list(&[&word]).is_in(&text));
        }
    }
}
