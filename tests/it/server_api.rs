//! What a business system does with the API key (`/api/v1`): its own accounts, their logins, and nobody else's.

use nudge::config::Config;
use nudge::server::{Seams, Server};
use serde_json::{Value, json};

use crate::support::app::{API_KEY, SCHEMA, TestApp, data, http_client};
use crate::support::databases::{Backend, TestDatabase, on_every_database};
use crate::support::raw::{answer, code, code_of_token, visit};
use crate::support::server_api::{call, request, set_enabled};
use crate::support::tables::{fingerprint, number, open};

on_every_database! {
    an_upsert_makes_and_changes_accounts,
    an_unchanged_account_is_not_written,
    an_upsert_is_all_or_nothing,
    a_thousand_accounts_are_taken_at_once,
    an_account_that_registered_itself_is_out_of_reach,
    logins_are_issued_in_the_order_of_the_request,
    a_disabled_account_gets_no_login,
}

async fn upsert(app: &TestApp, users: Value) -> Value {
    call(app, "POST", "/users", &json!({"users": users})).await
}

async fn tokens(app: &TestApp, external_ids: Value) -> Value {
    call(app, "POST", "/tokens", &json!({"externalIds": external_ids})).await
}

async fn an_upsert_makes_and_changes_accounts(backend: Backend) {
    let app = TestApp::start(backend).await;
    let reader = app.user("reader").await;
    let profile = async |id: &Value| reader.get(&format!("/system/user/get-simple?id={id}")).await;
    let first = upsert(
        &app,
        json!([
            {"externalId": "a", "nickname": "Ann", "avatar": "/a.png"},
            {"externalId": "A", "nickname": "Another"},
        ]),
    )
    .await;
    let first = data(first);
    assert_eq!((&first[0]["externalId"], &first[1]["externalId"]), (&json!("a"), &json!("A")));
    let (ann, another) = (&first[0]["userId"], &first[1]["userId"]);
    assert_ne!(ann, another, "external ids are compared exactly");

    let second = upsert(
        &app,
        json!([
            {"externalId": "new", "nickname": "New"},
            {"externalId": "A", "nickname": "Another"},
            {"externalId": "a", "nickname": "Anna"},
        ]),
    )
    .await;
    let second = data(second);
    assert_eq!((&second[2]["userId"], &second[1]["userId"]), (ann, another), "the order of the request");
    let anna = profile(ann).await;
    assert_eq!(
        (&anna["nickname"], &anna["avatar"]),
        (&json!("Anna"), &json!("/a.png")),
        "no avatar given, none changed"
    );
    assert_eq!(profile(&second[0]["userId"]).await["nickname"], "New");
}

async fn an_unchanged_account_is_not_written(backend: Backend) {
    let app = TestApp::start(backend).await;
    let users = json!([{"externalId": "a", "nickname": "Ann"}, {"externalId": "b", "nickname": "Ben", "avatar": "/b"}]);
    data(upsert(&app, users.clone()).await);
    // A write would set the time of the change.
    open(&app.database.url).await.run_text("UPDATE system_users SET update_time = 1").await.unwrap();
    let before = fingerprint(&app.database.url).await;
    data(upsert(&app, users).await);
    assert_eq!(fingerprint(&app.database.url).await, before);
}

async fn an_upsert_is_all_or_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let before = fingerprint(&app.database.url).await;
    let good = json!({"externalId": "a", "nickname": "Ann"});
    let too_many: Vec<Value> = (0..1_001).map(|n| json!({"externalId": format!("u{n}"), "nickname": "U"})).collect();
    for bad in [
        json!([good, good]),
        json!([good, {"externalId": "b", "nickname": " "}]),
        json!([good, {"externalId": "", "nickname": "B"}]),
        json!([good, {"externalId": "x".repeat(257), "nickname": "B"}]),
        json!([good, {"externalId": "ü".repeat(129), "nickname": "B"}]),
        json!([good, {"externalId": "b", "nickname": "x".repeat(31)}]),
        json!([good, {"externalId": "b", "nickname": "B", "avatar": "x".repeat(513)}]),
        json!([]),
        json!(too_many),
    ] {
        assert_eq!(code(&upsert(&app, bad.clone()).await), 400, "{:.200}", bad.to_string());
    }
    assert_eq!(fingerprint(&app.database.url).await, before);
    assert_eq!(code(&upsert(&app, json!([{"externalId": "ü".repeat(128), "nickname": "B"}])).await), 0);
}

async fn a_thousand_accounts_are_taken_at_once(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ids: Vec<String> = (0..1_000).map(|number| format!("user-{number}")).collect();
    let users: Vec<Value> = ids.iter().map(|id| json!({"externalId": id, "nickname": id})).collect();
    let made = data(upsert(&app, json!(users)).await);
    let returned: Vec<&str> =
        made.as_array().unwrap().iter().map(|user| user["externalId"].as_str().unwrap()).collect();
    assert_eq!(returned, ids);
    assert_eq!(data(upsert(&app, json!(users)).await), made);
    assert_eq!(number(&mut open(&app.database.url).await, "SELECT COUNT(*) AS number FROM system_users").await, 1_000);
    let logins = data(tokens(&app, json!(ids)).await);
    assert_eq!(logins.as_array().unwrap().len(), 1_000);
    assert_eq!(logins[999]["userId"], made[999]["userId"]);
    assert_eq!(code_of_token(&app, logins[999]["accessToken"].as_str().unwrap()).await, 0);
}

async fn an_account_that_registered_itself_is_out_of_reach(backend: Backend) {
    let app = TestApp::start(backend).await;
    let body = json!({"username": "alice", "nickname": "Alice", "password": "secret"});
    let alice = data(answer(visit(&app, "POST", "/system/auth/register").json(&body)).await);
    let id = alice["userId"].clone();
    // Her user name and her number are no external ids.
    for external_id in ["alice", &id.to_string()] {
        let made = data(upsert(&app, json!([{"externalId": external_id, "nickname": "Stolen"}])).await);
        assert_ne!(made[0]["userId"], id);
        set_enabled(&app, external_id, false).await;
        let unknown = format!("no-{external_id}");
        let body = json!({"externalId": unknown, "enabled": false});
        assert_eq!(code(&call(&app, "PUT", "/users/status", &body).await), 1_002_003_003);
        assert_eq!(code(&tokens(&app, json!([unknown])).await), 1_002_003_003);
    }
    let token = alice["accessToken"].as_str().unwrap();
    let info = data(answer(visit(&app, "GET", "/system/auth/get-permission-info").bearer_auth(token)).await);
    assert_eq!((&info["user"]["id"], &info["user"]["nickname"]), (&id, &json!("Alice")));
}

async fn logins_are_issued_in_the_order_of_the_request(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let issued = data(tokens(&app, json!([bob.external_id, alice.external_id, bob.external_id])).await);
    let users: Vec<&Value> = issued.as_array().unwrap().iter().map(|login| &login["userId"]).collect();
    assert_eq!(users, [bob.id, alice.id, bob.id]);
    assert_ne!(issued[0]["refreshToken"], issued[2]["refreshToken"], "a login each");
    for login in issued.as_array().unwrap() {
        assert_eq!(code_of_token(&app, login["accessToken"].as_str().unwrap()).await, 0);
    }
    let before = fingerprint(&app.database.url).await;
    assert_eq!(code(&tokens(&app, json!([alice.external_id, "nobody"])).await), 1_002_003_003);
    for bad in [json!([]), json!([""]), json!(vec!["x"; 1_001])] {
        assert_eq!(code(&tokens(&app, bad).await), 400);
    }
    assert_eq!(fingerprint(&app.database.url).await, before, "one unknown account refuses all");
}

async fn a_disabled_account_gets_no_login(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    set_enabled(&app, &alice.external_id, false).await;
    set_enabled(&app, &alice.external_id, false).await;
    assert_eq!(code(&tokens(&app, json!([bob.external_id, alice.external_id])).await), 1_002_003_006);
    data(upsert(&app, json!([{"externalId": alice.external_id, "nickname": "Renamed"}])).await);
    assert_eq!(code(&tokens(&app, json!([alice.external_id])).await), 1_002_003_006, "an upsert enables nobody");
    // Others do not find her, and cannot apply to her.
    assert_eq!(bob.get("/system/user/list-by-nickname?nickname=Renamed").await, json!([]));
    let apply = bob.call("POST", "/im/friend-request/apply", Some(json!({"toUserId": alice.id}))).await;
    assert_eq!(code(&apply), 1_002_003_006);
    set_enabled(&app, &alice.external_id, true).await;
    assert_eq!(code(&tokens(&app, json!([alice.external_id])).await), 0);
}

#[actix_web::test]
async fn only_the_key_opens_the_server_api() {
    let app = TestApp::start(Backend::Sqlite).await;
    let alice = app.user("alice").await;
    let body = json!({"externalIds": [alice.external_id]});
    let longer = format!("{API_KEY}.");
    for key in ["", "wrong", &API_KEY[..API_KEY.len() - 1], &longer, &API_KEY.to_uppercase()] {
        assert_eq!(code(&answer(request(&app, key, "POST", "/tokens", &body)).await), 401, "{key:?}");
    }
    let url = format!("{}/api/v1/tokens", app.base);
    assert_eq!(code(&answer(app.http.post(&url).json(&body)).await), 401, "no key");
    assert_eq!(code(&answer(app.http.post(&url).json(&body).bearer_auth(&alice.access_token)).await), 401);
    // And it opens nothing else.
    let header = visit(&app, "GET", "/im/session/list").header("x-api-key", API_KEY);
    assert_eq!(code(&answer(header).await), 401);
}

#[actix_web::test]
async fn without_a_configured_key_there_is_no_server_api() {
    let database = TestDatabase::create(Backend::Sqlite, SCHEMA).await;
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        database_url: Some(database.url.clone().into()),
        workers: 1,
        ..Config::default()
    };
    let server = Server::start(config, Seams::default()).await.unwrap();
    for key in ["", "a key"] {
        let request = http_client().post(format!("http://{}/api/v1/tokens", server.address())).header("x-api-key", key);
        assert_eq!(code(&answer(request.json(&json!({"externalIds": ["a"]}))).await), 404);
    }
}
