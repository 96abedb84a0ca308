//! Downloads, GET `/infra/file/{configId}/get/{path}` (`contract/01` section 7, row 16): open to everybody who knows the
//! URL, which cannot be guessed. Plain HTTP, not the wrapper: pages show these answers.
//!
//! Nothing from a stranger runs as script in our origin: only pictures are shown inline, the type comes from the name's
//! extension, browsers may not guess another one, and a policy forbids everything else.

use actix_web::body::SizedStream;
use actix_web::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
use http_range::HttpRange;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tracing::error;

use super::AppState;
use crate::domain::file_path::FilePath;
use crate::service::files::CONFIG_ID;
use crate::storage::StorageError;

/// A path never holds anything else.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// The file, or the part of it that the `Range` header names. HTTP 404 without a body where there is none.
pub async fn download(state: web::Data<AppState>, request: HttpRequest) -> HttpResponse {
    match answer(&state, &request).await {
        Ok(response) => response.unwrap_or_else(|| HttpResponse::NotFound().finish()),
        Err(cause) => {
            error!(cause = %cause, "a file cannot be read");
            HttpResponse::ServiceUnavailable().finish()
        }
    }
}

/// `None` where there is no such file.
async fn answer(state: &AppState, request: &HttpRequest) -> Result<Option<HttpResponse>, StorageError> {
    let Some(path) = requested(request) else { return Ok(None) };
    let Some(size) = state.uploads.store.size(&path.key()).await? else { return Ok(None) };
    let tag = format!("\"{}\"", path.random());
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if header(IF_NONE_MATCH).is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag || known.trim() == "*"))
    {
        return Ok(Some(describe(&mut HttpResponse::NotModified(), &path, &tag).finish()));
    }
    let wanted = header(RANGE).filter(|_| header(IF_RANGE).is_none_or(|known| known == tag));
    let range = match part(wanted, size) {
        Part::Whole => 0..size,
        Part::Of(range) => range,
        Part::Outside => {
            let length = format!("bytes */{size}");
            return Ok(Some(HttpResponse::RangeNotSatisfiable().insert_header((CONTENT_RANGE, length)).finish()));
        }
    };
    let Some(file) = state.uploads.store.read(&path.key(), range.clone()).await? else { return Ok(None) };
    let mut response = if range == (0..size) { HttpResponse::Ok() } else { HttpResponse::PartialContent() };
    if range != (0..size) {
        let last = range.end.saturating_sub(1);
        response.insert_header((CONTENT_RANGE, format!("bytes {}-{last}/{}", range.start, file.size)));
    }
    let body = SizedStream::new(range.end - range.start, file.content);
    Ok(Some(describe(&mut response, &path, &tag).body(body)))
}

/// The path of a request, taken apart.
fn requested(request: &HttpRequest) -> Option<FilePath> {
    let config: i64 = request.match_info().get("config")?.parse().ok()?;
    if config != CONFIG_ID {
        return None;
    }
    // What actix has decoded already cannot hold a percent sign that means something else: names are encoded whole.
    let path = request.match_info().get("path")?;
    FilePath::parse(&percent_decode_str(path).decode_utf8().ok()?)
}

/// Which bytes an answer holds.
#[derive(Debug, PartialEq)]
enum Part {
    Whole,
    Of(std::ops::Range<u64>),
    Outside,
}

/// One range is served; several in one request, or a header that is none, get the whole file.
fn part(header: Option<&str>, size: u64) -> Part {
    let Some(header) = header else { return Part::Whole };
    match HttpRange::parse(header, size).as_deref() {
        Ok([range]) => Part::Of(range.start..range.start + range.length),
        Err(http_range::HttpRangeParseError::NoOverlap) => Part::Outside,
        Ok(_) | Err(_) => Part::Whole,
    }
}

/// The headers that say what the file is, and what a browser must not do with it.
fn describe<'a>(response: &'a mut HttpResponseBuilder, path: &FilePath, tag: &str) -> &'a mut HttpResponseBuilder {
    let shown = path.presentation();
    let kind = if shown.is_inline { "inline" } else { "attachment" };
    let name = utf8_percent_encode(path.name(), NON_ALPHANUMERIC);
    response
        .insert_header((CONTENT_TYPE, shown.media_type))
        .insert_header((CONTENT_DISPOSITION, format!("{kind}; filename*=UTF-8''{name}")))
        .insert_header((CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header(("cross-origin-resource-policy", "cross-origin"))
        .insert_header((ACCEPT_RANGES, "bytes"))
        .insert_header((CACHE_CONTROL, FOR_EVER))
        .insert_header((ETAG, tag.to_owned()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::absent(None, Part::Whole)]
    #[case::middle(Some("bytes=2-4"), Part::Of(2..5))]
    #[case::from(Some("bytes=7-"), Part::Of(7..10))]
    #[case::last(Some("bytes=-3"), Part::Of(7..10))]
    #[case::beyond_the_end(Some("bytes=5-100"), Part::Of(5..10))]
    #[case::outside(Some("bytes=10-"), Part::Outside)]
    #[case::several(Some("bytes=0-1,3-4"), Part::Whole)]
    #[case::no_range(Some("lines=1-2"), Part::Whole)]
    #[case::nonsense(Some("bytes=b-a"), Part::Whole)]
    fn ranges(#[case] header: Option<&str>, #[case] expected: Part) {
        assert_eq!(part(header, 10), expected);
    }
}
