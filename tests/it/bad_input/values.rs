//! Values of one JSON field that its endpoint must not take, or that mean nothing.

use super::endpoints::{Field, Kind};

/// Values of a JSON field, as text, that must be refused.
pub fn bad_values(field: &Field) -> Vec<String> {
    let long = format!("\"{}\"", "x".repeat(100_000));
    let nul = "\"a\\u0000b\"".to_owned();
    let mut values: Vec<String> = ["{}", r#"{"a":[1]}"#, "1e400", r#""\ud800""#, "nul"].map(String::from).into();
    let more: &[&str] = match field.kind {
        Kind::Integer | Kind::Amount | Kind::Cursor => &[
            "true",
            "[]",
            "[1]",
            "1.5",
            "-0.5",
            "1e3",
            r#""""#,
            r#""x""#,
            r#""1.5""#,
            "9223372036854775808",
            "-9223372036854775809",
            r#""9223372036854775808""#,
        ],
        Kind::Text => &["5", "-1", "true", "[]", r#"["x"]"#, "1.5"],
        Kind::Flag => &["1", "0", "[]", r#""true""#, "1.5"],
        Kind::List => &[
            "5",
            "true",
            r#""x""#,
            "[]",
            "[null]",
            "[5]",
            "[{}]",
            "[[]]",
            r#"[""]"#,
            r#"[{"externalId":"","nickname":""}]"#,
        ],
        Kind::Users | Kind::Mentions => &[
            "5",
            "true",
            r#""x""#,
            r#""5""#,
            "[null]",
            "[{}]",
            "[[]]",
            "[true]",
            "[1.5]",
            r#"[""]"#,
            "[9223372036854775808]",
        ],
        // Only in queries.
        Kind::Times | Kind::Ids => &[],
        Kind::StateCursor => &[
            "5",
            "true",
            r#""x""#,
            "[]",
            "[[]]",
            r#"{"lastUpdateTime":1}"#,
            r#"{"lastId":1}"#,
            r#"{"lastUpdateTime":null,"lastId":1}"#,
            r#"{"lastUpdateTime":1,"lastId":9223372036854775808}"#,
        ],
    };
    values.extend(more.iter().map(|value| (*value).to_owned()));
    // (Deep nesting of a field that nobody reads is skipped without recursion, and ignored.)
    let deep = format!("{}{}", "[".repeat(60_000), "]".repeat(60_000));
    let deep_objects = format!("{}1{}", r#"{"a":"#.repeat(20_000), "}".repeat(20_000));
    values.extend([long, nul, deep, deep_objects]);
    if matches!(field.kind, Kind::Users | Kind::Mentions) {
        values.push(format!("[{}]", vec!["1"; 1_001].join(",")));
    }
    if field.kind == Kind::Users && field.required {
        values.push("[]".into());
    }
    if field.required {
        values.push("null".into());
        values.extend((field.kind == Kind::Text).then(|| "\"\"".to_owned()));
    }
    values
}

/// Values that have the right form and mean nothing, and must be refused.
pub fn odd_values(field: &Field) -> &'static [&'static str] {
    match (field.kind, field.required) {
        (Kind::Integer, true) => {
            &["0", "-1", "9007199254740992", "9223372036854775807", "-9223372036854775808", r#""-1""#]
        }
        (Kind::Integer, false) | (Kind::Amount, _) => &["-1", "9007199254740992", "2147483648"],
        _ => &[],
    }
}

/// Values that have the right form and mean nothing: refused, or without any effect.
pub fn harmless_values(field: &Field) -> &'static [&'static str] {
    match field.kind {
        Kind::Users => {
            &["[0]", "[-1]", "[9007199254740992]", "[9223372036854775807]", "[-9223372036854775808]", "[-1,-1]"]
        }
        Kind::Cursor => &["-1", "9007199254740992", "9223372036854775807", "-9223372036854775808"],
        Kind::StateCursor => &[
            r#"{"lastUpdateTime":-9223372036854775808,"lastId":-9223372036854775808}"#,
            r#"{"lastUpdateTime":9223372036854775807,"lastId":9223372036854775807}"#,
            r#"{"lastUpdateTime":-1,"lastId":"9007199254740992"}"#,
        ],
        _ => &[],
    }
}
