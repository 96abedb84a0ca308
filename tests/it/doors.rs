//! What every path does before its handler: tenant, login, path, method, CORS (`contract/01` sections 1 and 5).

use serde_json::Value;

use crate::support::app::TestApp;
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::{answer, code, visit};

on_every_database! {
    open_paths_need_the_tenant_and_closed_ones_take_it_from_the_token,
    unknown_paths_tell_strangers_nothing,
}

async fn open_paths_need_the_tenant_and_closed_ones_take_it_from_the_token(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let with = async |method: &str, path: &str, tenant: Option<&str>, token: Option<&str>| {
        let mut request = app.http.request(method.parse().unwrap(), format!("{}/admin-api{path}", app.base));
        if let Some(tenant) = tenant {
            request = request.header("tenant-id", tenant);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        code(&answer(request).await)
    };
    let refresh = format!("/system/auth/refresh-token?refreshToken={}", alice.refresh_token);
    for (tenant, expected) in
        [(Some("1"), 0), (None, 400), (Some("x"), 400), (Some(""), 400), (Some("1.0"), 400), (Some("2"), 1_002_015_000)]
    {
        assert_eq!(with("POST", &refresh, tenant, None).await, expected, "{tenant:?}");
    }
    let closed = "/im/session/list";
    let token = Some(alice.refresh_token.as_str());
    for (tenant, expected) in [(Some("1"), 0), (None, 0), (Some("x"), 0), (Some(""), 0), (Some("2"), 403)] {
        assert_eq!(with("GET", closed, tenant, token).await, expected, "{tenant:?}");
    }
    assert_eq!(with("GET", closed, Some("2"), None).await, 401, "without a login there is nothing to compare");
    for path in ["/system/tenant/get-id-by-name?name=x", "/system/tenant/get-by-website?website=a.b:80"] {
        assert_eq!(with("GET", path, None, None).await, 0, "{path}");
    }
}

async fn unknown_paths_tell_strangers_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    for path in ["/im/no-such-path", "/nothing", "/im/message/private/send/", "/system/auth"] {
        assert_eq!(code(&answer(visit(&app, "GET", path)).await), 401, "{path}");
        assert_eq!(code(&answer(visit(&app, "GET", path).bearer_auth("wrong")).await), 401, "{path}");
        assert_eq!(code(&answer(visit(&app, "GET", path).bearer_auth(&alice.access_token)).await), 404, "{path}");
    }
    let outside = app.http.get(format!("{}/elsewhere", app.base));
    assert_eq!(code(&answer(outside.bearer_auth(&alice.access_token)).await), 404);
}

#[actix_web::test]
async fn a_known_path_with_another_method_is_answered_405() {
    let app = TestApp::start(Backend::Sqlite).await;
    let alice = app.user("alice").await;
    for (method, path) in [
        ("GET", "/im/message/private/send"),
        ("DELETE", "/im/message/private/pull"),
        ("POST", "/im/message/private/read"),
        ("PUT", "/system/auth/login"),
        ("OPTIONS", "/system/auth/login"),
    ] {
        let request = visit(&app, method, path).bearer_auth(&alice.access_token);
        assert_eq!(code(&answer(request).await), 405, "{method} {path}");
        let strangers = if path.starts_with("/im/") { 401 } else { 405 };
        assert_eq!(code(&answer(visit(&app, method, path)).await), strangers, "{method} {path}");
    }
}

/// Any origin, any header, any method, with credentials.
#[actix_web::test]
async fn a_preflight_is_granted_what_it_asks_for() {
    let app = TestApp::start(Backend::Sqlite).await;
    let origin = "https://chat.example";
    let headers = "authorization,tenant-id,visit-tenant-id,content-type,cache-control,pragma";
    for path in ["/admin-api/im/message/private/send", "/admin-api/system/auth/login", "/admin-api/unknown"] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let request = app
                .http
                .request("OPTIONS".parse().unwrap(), format!("{}{path}", app.base))
                .header("origin", origin)
                .header("access-control-request-method", method)
                .header("access-control-request-headers", headers);
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 200, "{method} {path}");
            let granted = |name: &str| {
                let value = response.headers().get(format!("access-control-allow-{name}"));
                value.map(|value| value.to_str().unwrap().to_lowercase()).unwrap_or_default()
            };
            assert_eq!((granted("origin").as_str(), granted("credentials").as_str()), (origin, "true"));
            assert!(granted("methods").contains(&method.to_lowercase()), "{}", granted("methods"));
            for header in headers.split(',') {
                assert!(granted("headers").split(',').any(|granted| granted.trim() == header), "{header}");
            }
        }
    }
}

/// The browser hands an answer to the page only with these headers, refusals included.
#[actix_web::test]
async fn refusals_can_be_read_across_origins() {
    let app = TestApp::start(Backend::Sqlite).await;
    let response =
        visit(&app, "GET", "/im/session/list").header("origin", "https://chat.example").send().await.unwrap();
    assert_eq!(response.headers()["access-control-allow-origin"], "https://chat.example");
    assert_eq!(response.headers()["access-control-allow-credentials"], "true");
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("application/json"));
    assert_eq!(response.json::<Value>().await.unwrap()["code"], 401);
}
