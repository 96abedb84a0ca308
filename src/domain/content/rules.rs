//! What each type of user message must contain (`contract/02` section 2.3). Other fields are kept and not looked at.

use serde_json::{Map, Value};

use super::{ContentInvalid, ContentType};

/// Longest text, in UTF-16 units, which is how JavaScript counts.
const MAX_TEXT_UNITS: usize = 4096;
/// Longest URL, in UTF-16 units.
const MAX_URL_UNITS: usize = 2048;
/// Most messages in one merged forward.
const MAX_MERGED_MESSAGES: usize = 100;
/// Schemes that a browser would execute or read from its own machine.
const FORBIDDEN_SCHEMES: [&str; 4] = ["javascript:", "data:", "vbscript:", "file:"];

type Fields = Map<String, Value>;
type Checked = Result<(), ContentInvalid>;

/// Checks the fields of a user message.
pub(super) fn check_fields(content_type: ContentType, fields: &Fields) -> Checked {
    match content_type {
        ContentType::Text => check_text(fields),
        ContentType::Image | ContentType::Video | ContentType::Face => check_url(fields, "url"),
        ContentType::Voice => check_voice(fields),
        ContentType::File => {
            check_url(fields, "url")?;
            check_not_blank(fields, "name")
        }
        ContentType::Merge => check_merge(fields),
        ContentType::Card => check_card(fields),
        ContentType::Material => check_material(fields),
        _ => Err(ContentInvalid("users may not send this type")),
    }
}

fn check_text(fields: &Fields) -> Checked {
    check_not_blank(fields, "content")?;
    match text(fields, "content").encode_utf16().count() {
        0..=MAX_TEXT_UNITS => Ok(()),
        _ => Err(ContentInvalid("text is too long")),
    }
}

/// A duration may be a fraction or a numeric string: recorders differ.
fn check_voice(fields: &Fields) -> Checked {
    check_url(fields, "url")?;
    let duration = match fields.get("duration") {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    match duration {
        Some(seconds) if (0.0..=f64::from(i32::MAX)).contains(&seconds) => Ok(()),
        _ => Err(ContentInvalid("duration is not a number of seconds")),
    }
}

fn check_merge(fields: &Fields) -> Checked {
    check_not_blank(fields, "title")?;
    match fields.get("messages").and_then(Value::as_array).map(Vec::len) {
        Some(1..=MAX_MERGED_MESSAGES) => Ok(()),
        _ => Err(ContentInvalid("messages is not a list of 1 to 100")),
    }
}

fn check_card(fields: &Fields) -> Checked {
    check_not_blank(fields, "name")?;
    if integer(fields.get("targetType")).is_none() || integer(fields.get("targetId")).is_none() {
        return Err(ContentInvalid("targetType and targetId are not integers"));
    }
    Ok(())
}

fn check_material(fields: &Fields) -> Checked {
    if !is_present(fields, "materialId") {
        check_not_blank(fields, "title")?;
    }
    for name in ["url", "coverUrl"] {
        let is_blank_text = matches!(fields.get(name), Some(Value::String(text)) if text.trim().is_empty());
        if is_present(fields, name) && !is_blank_text {
            check_url(fields, name)?;
        }
    }
    Ok(())
}

fn check_not_blank(fields: &Fields, name: &str) -> Checked {
    if text(fields, name).trim().is_empty() {
        return Err(ContentInvalid("a required text is blank"));
    }
    Ok(())
}

/// Spaces and control characters are left out before the scheme is looked at, because browsers leave them out too:
/// a URL parser reads `java\nscript:` as `javascript:`.
fn check_url(fields: &Fields, name: &str) -> Checked {
    let url = text(fields, name).trim();
    if url.is_empty() {
        return Err(ContentInvalid("a required url is blank"));
    }
    if url.encode_utf16().count() > MAX_URL_UNITS {
        return Err(ContentInvalid("url is too long"));
    }
    let start: String = url
        .chars()
        .filter(|character| !character.is_whitespace() && !character.is_control())
        .take(16)
        .flat_map(char::to_lowercase)
        .collect();
    if FORBIDDEN_SCHEMES.iter().any(|scheme| start.starts_with(scheme)) {
        return Err(ContentInvalid("url has a forbidden scheme"));
    }
    Ok(())
}

/// The string under this name; empty when there is none.
fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_present(fields: &Fields, name: &str) -> bool {
    fields.get(name).is_some_and(|value| !value.is_null())
}

/// An integer, as a JSON number or a numeric string (`contract/01` section 3).
pub(super) fn integer(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn is_valid(content_type: ContentType, raw: &str) -> bool {
        super::super::parse_content(content_type, raw).is_ok()
    }

    #[rstest]
    #[case::text(ContentType::Text, r#"{"content":"hi"}"#, true)]
    #[case::text_blank(ContentType::Text, r#"{"content":" \n"}"#, false)]
    #[case::text_missing(ContentType::Text, r#"{}"#, false)]
    #[case::text_number(ContentType::Text, r#"{"content":5}"#, false)]
    #[case::image(ContentType::Image, r#"{"url":"https://x.example/a.png","width":1}"#, true)]
    #[case::image_relative(ContentType::Image, r#"{"url":"/a.png"}"#, true)]
    #[case::image_blob(ContentType::Image, r#"{"url":"blob:abc"}"#, true)]
    #[case::image_missing(ContentType::Image, r#"{"width":1}"#, false)]
    #[case::image_blank(ContentType::Image, r#"{"url":"  "}"#, false)]
    #[case::image_null(ContentType::Image, r#"{"url":null}"#, false)]
    #[case::face(ContentType::Face, r#"{"url":"/f.gif"}"#, true)]
    #[case::face_script(ContentType::Face, r#"{"url":"javascript:alert(1)"}"#, false)]
    #[case::video(ContentType::Video, r#"{"url":"/v.mp4"}"#, true)]
    #[case::video_missing(ContentType::Video, r#"{"coverUrl":"/v.png"}"#, false)]
    #[case::script_upper(ContentType::Image, r#"{"url":" JavaScript:x"}"#, false)]
    #[case::script_split(ContentType::Image, r#"{"url":"java\nscript:x"}"#, false)]
    #[case::script_control(ContentType::Image, r#"{"url":"\u0001javascript:x"}"#, false)]
    #[case::data(ContentType::Image, r#"{"url":"data:image/png;base64,x"}"#, false)]
    #[case::vbscript(ContentType::Image, r#"{"url":"vbscript:x"}"#, false)]
    #[case::local_file(ContentType::Image, r#"{"url":"file:///etc/passwd"}"#, false)]
    #[case::voice(ContentType::Voice, r#"{"url":"/a.mp3","duration":3}"#, true)]
    #[case::voice_zero(ContentType::Voice, r#"{"url":"/a.mp3","duration":0}"#, true)]
    #[case::voice_fraction(ContentType::Voice, r#"{"url":"/a.mp3","duration":3.5}"#, true)]
    #[case::voice_string(ContentType::Voice, r#"{"url":"/a.mp3","duration":"3"}"#, true)]
    #[case::voice_negative(ContentType::Voice, r#"{"url":"/a.mp3","duration":-1}"#, false)]
    #[case::voice_missing(ContentType::Voice, r#"{"url":"/a.mp3"}"#, false)]
    #[case::voice_word(ContentType::Voice, r#"{"url":"/a.mp3","duration":"x"}"#, false)]
    #[case::voice_nan(ContentType::Voice, r#"{"url":"/a.mp3","duration":"NaN"}"#, false)]
    #[case::voice_huge(ContentType::Voice, r#"{"url":"/a.mp3","duration":1e300}"#, false)]
    #[case::voice_no_url(ContentType::Voice, r#"{"duration":3}"#, false)]
    #[case::file(ContentType::File, r#"{"url":"/a.pdf","name":"a.pdf","size":1}"#, true)]
    #[case::file_no_name(ContentType::File, r#"{"url":"/a.pdf","name":" "}"#, false)]
    #[case::file_no_url(ContentType::File, r#"{"name":"a.pdf"}"#, false)]
    #[case::merge(ContentType::Merge, r#"{"title":"t","messages":[{}]}"#, true)]
    #[case::merge_any_item(ContentType::Merge, r#"{"title":"t","messages":[null]}"#, true)]
    #[case::merge_empty(ContentType::Merge, r#"{"title":"t","messages":[]}"#, false)]
    #[case::merge_no_list(ContentType::Merge, r#"{"title":"t","messages":{}}"#, false)]
    #[case::merge_no_title(ContentType::Merge, r#"{"messages":[{}]}"#, false)]
    #[case::card(ContentType::Card, r#"{"targetType":1,"targetId":7,"name":"n"}"#, true)]
    #[case::card_strings(ContentType::Card, r#"{"targetType":"9","targetId":"7","name":"n"}"#, true)]
    #[case::card_word(ContentType::Card, r#"{"targetType":1,"targetId":"x","name":"n"}"#, false)]
    #[case::card_no_type(ContentType::Card, r#"{"targetId":7,"name":"n"}"#, false)]
    #[case::card_no_name(ContentType::Card, r#"{"targetType":1,"targetId":7}"#, false)]
    #[case::material_id(ContentType::Material, r#"{"materialId":1}"#, true)]
    #[case::material_title(ContentType::Material, r#"{"materialId":null,"title":"t","url":""}"#, true)]
    #[case::material_neither(ContentType::Material, r#"{"title":" "}"#, false)]
    #[case::material_null_url(ContentType::Material, r#"{"materialId":1,"url":null}"#, true)]
    #[case::material_script(ContentType::Material, r#"{"materialId":1,"url":"javascript:x"}"#, false)]
    #[case::material_cover(ContentType::Material, r#"{"materialId":1,"coverUrl":"data:x"}"#, false)]
    #[case::material_url_object(ContentType::Material, r#"{"materialId":1,"url":{}}"#, false)]
    #[case::recall(ContentType::Recall, r#"{"messageId":1}"#, false)]
    #[case::event(ContentType::GroupCreate, r#"{"memberUserIds":[]}"#, false)]
    fn per_type(#[case] content_type: ContentType, #[case] raw: &str, #[case] good: bool) {
        assert_eq!(is_valid(content_type, raw), good, "{raw}");
    }

    #[rstest]
    #[case::text(ContentType::Text, r#"{"content":"#, 4096)]
    #[case::url(ContentType::Image, r#"{"url":"#, 2048)]
    fn lengths_count_utf16_units(#[case] content_type: ContentType, #[case] head: &str, #[case] limit: usize) {
        let content = |value: &str| format!("{head}\"{value}\"}}");
        assert!(is_valid(content_type, &content(&"ä".repeat(limit))));
        assert!(!is_valid(content_type, &content(&"ä".repeat(limit + 1))));
        assert!(is_valid(content_type, &content(&"😀".repeat(limit / 2))));
        assert!(!is_valid(content_type, &content(&"😀".repeat(limit / 2 + 1))));
    }

    #[test]
    fn a_merge_holds_a_hundred_messages() {
        let merge = |count: usize| format!(r#"{{"title":"t","messages":[{}]}}"#, vec!["{}"; count].join(","));
        assert!(is_valid(ContentType::Merge, &merge(100)));
        assert!(!is_valid(ContentType::Merge, &merge(101)));
    }

    #[test]
    fn every_type_that_users_send_has_a_rule() {
        for content_type in ContentType::ALL {
            let refused =
                check_fields(*content_type, &Map::new()) == Err(ContentInvalid("users may not send this type"));
            assert_eq!(refused, !content_type.is_normal(), "{}", content_type.name());
        }
    }
}
