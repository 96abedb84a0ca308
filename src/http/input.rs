//! Reading requests: JSON bodies and query strings, with every malformed input answered by code 400
//! (`contract/01` section 2.3). No string with U+0000 gets past here, since PostgreSQL cannot store one.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{FromRequest, HttpRequest, web};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::domain::ids::deserialize_integer;
use crate::error::AppError;

/// Largest JSON body, bytes (`design.md` section 4).
pub const MAX_BODY_BYTES: usize = 256 << 10;

/// The JSON body.
pub struct Body<T>(pub T);

/// The query string.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = AppError;
    type Future = LocalBoxFuture<'static, Result<Self, AppError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let is_json = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.to_ascii_lowercase().contains("json"));
        let body = web::Payload::from_request(request, payload).into_inner();
        async move {
            if !is_json {
                return Err(AppError::Malformed("request type incorrect, expected application/json".into()));
            }
            let payload = body.map_err(|_| AppError::Malformed("request body missing".into()))?;
            let bytes = payload.to_bytes_limited(MAX_BODY_BYTES).await;
            let bytes = bytes
                .map_err(|_| AppError::Malformed("request body too large".into()))?
                .map_err(|_| AppError::Malformed("request body could not be read".into()))?;
            parse_body(&bytes).map(Body)
        }
        .boxed_local()
    }
}

fn parse_body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, AppError> {
    if bytes.is_empty() {
        return Err(AppError::Malformed("request body missing".into()));
    }
    if has_nul(bytes) {
        return Err(AppError::Malformed("parameter incorrect: character U+0000".into()));
    }
    // The parser would not look into the texts of fields that it ignores.
    let text = std::str::from_utf8(bytes).map_err(|_| AppError::Malformed("parameter incorrect: not UTF-8".into()))?;
    // Every body is an object; the parser would also take a list of its fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(AppError::Malformed("parameter incorrect: not an object".into()));
    }
    serde_json::from_str(text).map_err(|error| AppError::Malformed(format!("parameter incorrect: {error}")))
}

/// Whether JSON text holds U+0000, as itself or escaped.
fn has_nul(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, tail) {
            (0, _) => return true,
            (b'\\', [b'u', b'0', b'0', b'0', b'0', ..]) => return true,
            (b'\\', [_, after @ ..]) => rest = after,
            _ => rest = tail,
        }
    }
    false
}

impl<T: DeserializeOwned> FromRequest for Params<T> {
    type Error = AppError;
    type Future = Ready<Result<Self, AppError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(parse_query(request.query_string()).map(Params))
    }
}

fn parse_query<T: DeserializeOwned>(query: &str) -> Result<T, AppError> {
    if query.contains("%00") {
        return Err(AppError::Malformed("parameter incorrect: character U+0000".into()));
    }
    let parsed = web::Query::<T>::from_query(query);
    parsed.map(web::Query::into_inner).map_err(|error| AppError::Malformed(format!("parameter incorrect: {error}")))
}

/// An optional integer of a query string; the web client writes an absent one as `key=`.
pub fn optional_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| serde::de::Error::custom("not an integer")),
    }
}

/// An optional boolean of a query string; written as `key=` it is absent.
pub fn optional_boolean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match String::deserialize(deserializer)?.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| serde::de::Error::custom("not a boolean")),
    }
}

/// The parameters of a state pull.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatePullParams {
    #[serde(default, deserialize_with = "optional_integer")]
    last_update_time: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    last_id: Option<i64>,
    #[serde(deserialize_with = "deserialize_integer")]
    pub limit: i64,
}

impl StatePullParams {
    /// The cursor (stamp, id): it counts only when both halves are given (`contract/03` F2).
    pub fn cursor(&self) -> Option<(i64, i64)> {
        self.last_update_time.zip(self.last_id)
    }
}

/// Checks the length of a page.
pub fn check_limit(limit: i64) -> Result<(), AppError> {
    if (1..=200).contains(&limit) {
        return Ok(());
    }
    Err(AppError::Malformed("parameter incorrect: limit must be 1 to 200".into()))
}

/// Checks where somebody was found (`addSource`): 1 to 4.
pub fn check_source(source: Option<i64>) -> Result<Option<i32>, AppError> {
    match source {
        None => Ok(None),
        Some(number @ 1..=4) => Ok(i32::try_from(number).ok()),
        Some(_) => Err(AppError::Malformed("parameter incorrect: addSource must be 1 to 4".into())),
    }
}

/// Checks a text's length in UTF-16 code units, as the contract counts.
pub fn check_length(name: &str, text: &str, max: usize) -> Result<(), AppError> {
    if text.encode_utf16().count() > max {
        return Err(AppError::Malformed(format!("parameter incorrect: {name} has more than {max} characters")));
    }
    Ok(())
}

/// [`check_length`], and the text must hold something else than blanks.
pub fn check_text(name: &str, text: &str, max: usize) -> Result<(), AppError> {
    if text.trim().is_empty() {
        return Err(AppError::Malformed(format!("parameter incorrect: {name} is blank")));
    }
    check_length(name, text, max)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"a":"x"}"#, false)]
    #[case(r#"{"a":"\u0000"}"#, true)]
    #[case("{\"a\":\"\0\"}", true)]
    #[case(r#"{"a":"\\u0000"}"#, false)]
    #[case(r#"{"a":"\\\u0000"}"#, true)]
    #[case(r#"{"a":"\"#, false)]
    fn nul_is_found_in_every_form(#[case] json: &str, #[case] expected: bool) {
        assert_eq!(has_nul(json.as_bytes()), expected);
    }

    #[test]
    fn an_empty_optional_number_is_absent() {
        #[derive(Deserialize, Debug, PartialEq)]
        struct Query {
            #[serde(default, deserialize_with = "optional_integer")]
            a: Option<i64>,
        }
        for (query, expected) in [("", Some(None)), ("a=", Some(None)), ("a=5", Some(Some(5))), ("a=x", None)] {
            assert_eq!(parse_query::<Query>(query).ok().map(|query| query.a), expected, "{query}");
        }
    }
}
