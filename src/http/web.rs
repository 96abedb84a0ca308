//! The built-in web chat: the files of `web/`, compiled into the binary. `/` is its page, `/assets/…` all the others.
//!
//! Real HTTP statuses and no wrapper, like `/healthz`. What is not there is an unknown path like any other.

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, EntityTag, Header, IfNoneMatch, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, web};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::routes::unknown_path;
use crate::error::AppError;

/// The page uses nothing of other origins and no inline script or style, so whatever a message brings cannot run.
/// `blob:` is for pictures that are being uploaded.
const POLICY: &str = "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
/// Browsers ask each time whether their copy is the present one: a new server brings its own page.
const CACHING: &str = "no-cache";

#[derive(RustEmbed)]
#[folder = "web/"]
struct Files;

/// GET and HEAD `/`.
pub async fn page(request: HttpRequest) -> Result<HttpResponse, AppError> {
    serve(request, "index.html").await
}

/// GET and HEAD `/assets/{path}`.
pub async fn asset(request: HttpRequest, path: web::Path<String>) -> Result<HttpResponse, AppError> {
    serve(request, &path).await
}

async fn serve(request: HttpRequest, path: &str) -> Result<HttpResponse, AppError> {
    match (Files::get(path), content_type(path)) {
        (Some(file), Some(content_type)) => Ok(answer(&request, file, content_type)),
        _ => unknown_path(request).await,
    }
}

fn answer(request: &HttpRequest, file: EmbeddedFile, content_type: &'static str) -> HttpResponse {
    let tag = EntityTag::new_strong(hex(&file.metadata.sha256_hash()));
    let is_known = is_known(request, &tag);
    let mut response = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response
        .insert_header((ETAG, tag))
        .insert_header((CACHE_CONTROL, CACHING))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"));
    if is_known {
        return response.finish();
    }
    response.insert_header((CONTENT_TYPE, content_type)).body(file.data.into_owned())
}

fn is_known(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|known| known.weak_eq(tag)),
        Err(_) => false,
    }
}

/// None for files that are not part of the page.
fn content_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "ts" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
