//! The built-in web chat as files: what is served, with which headers, and what is not. How it behaves is tested in a
//! browser (tests/browser).

use reqwest::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS,
};
use reqwest::{Method, Response, StatusCode};

use crate::support::app::TestApp;
use crate::support::databases::Backend;
use crate::support::raw::{answer, code};

// No data is touched, so one database is enough.
async fn app() -> TestApp {
    TestApp::start(Backend::Sqlite).await
}

async fn fetch(app: &TestApp, method: Method, path: &str) -> Response {
    app.http.request(method, format!("{}{path}", app.base)).send().await.unwrap()
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> &str {
    response.headers()[name].to_str().unwrap()
}

#[actix_web::test]
async fn the_page_and_its_files_have_their_types() {
    let app = app().await;
    for (path, content_type, text) in [
        ("/", "text/html; charset=utf-8", "/assets/app/main.js"),
        ("/assets/app/main.js", "text/javascript; charset=utf-8", "NudgeClient"),
        ("/assets/sdk/nudge.js", "text/javascript; charset=utf-8", "export class NudgeClient"),
        ("/assets/sdk/nudge.d.ts", "text/plain; charset=utf-8", "export class NudgeClient"),
        ("/assets/style.css", "text/css; charset=utf-8", ":root"),
        ("/assets/icon.svg", "image/svg+xml", "<svg"),
    ] {
        let response = fetch(&app, Method::GET, path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(header(&response, CONTENT_TYPE), content_type, "{path}");
        assert_eq!(header(&response, X_CONTENT_TYPE_OPTIONS), "nosniff", "{path}");
        let policy = header(&response, CONTENT_SECURITY_POLICY);
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{path}: {policy}");
        assert!(response.text().await.unwrap().contains(text), "{path}");
    }
}

#[actix_web::test]
async fn a_browser_that_has_the_present_copy_gets_no_second_one() {
    let app = app().await;
    let url = format!("{}/assets/style.css", app.base);
    let first = app.http.get(&url).send().await.unwrap();
    assert_eq!(header(&first, CACHE_CONTROL), "no-cache");
    let tag = header(&first, ETAG).to_owned();
    for (known, expected) in [
        (tag.clone(), StatusCode::NOT_MODIFIED),
        (format!("\"other\", {tag}"), StatusCode::NOT_MODIFIED),
        (format!("W/{tag}"), StatusCode::NOT_MODIFIED),
        ("\"other\"".to_owned(), StatusCode::OK),
    ] {
        let response = app.http.get(&url).header(IF_NONE_MATCH, &known).send().await.unwrap();
        assert_eq!(response.status(), expected, "{known}");
        assert_eq!(header(&response, ETAG), tag);
        assert_eq!(response.bytes().await.unwrap().is_empty(), expected == StatusCode::NOT_MODIFIED, "{known}");
    }
}

#[actix_web::test]
async fn head_answers_as_get_without_a_body_and_other_methods_are_refused() {
    let app = app().await;
    for path in ["/", "/assets/style.css"] {
        let (head, get) = (fetch(&app, Method::HEAD, path).await, fetch(&app, Method::GET, path).await);
        assert_eq!(head.status(), StatusCode::OK);
        for name in [CONTENT_TYPE, ETAG, reqwest::header::CONTENT_LENGTH] {
            assert_eq!(head.headers()[&name], get.headers()[&name], "{path} {name}");
        }
        assert!(head.bytes().await.unwrap().is_empty());
        let posted = app.http.post(format!("{}{path}", app.base));
        assert_eq!(code(&answer(posted).await), 405, "{path}");
    }
}

#[actix_web::test]
async fn what_is_not_part_of_the_page_is_an_unknown_path() {
    let app = app().await;
    let alice = app.user("alice").await;
    for path in [
        "/assets/",
        "/assets/none.js",
        "/assets/app",
        "/assets/../Cargo.toml",
        "/assets/%2e%2e/Cargo.toml",
        "/index.html",
    ] {
        let url = format!("{}{path}", app.base);
        assert_eq!(code(&answer(app.http.get(&url)).await), 401, "{path}");
        assert_eq!(code(&answer(app.http.get(&url).bearer_auth(&alice.access_token)).await), 404, "{path}");
    }
}
