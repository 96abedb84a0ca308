//! Accounts and tokens (`contract/01` sections 5 to 7): registering, signing in and out, refreshing, the profile, and
//! which requests are let in at all.

use nudge::config::{AuthConfig, Config};
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Setup, TestApp};
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::{answer, code, code_of_token, redacted, visit};

on_every_database! {
    a_new_account_is_signed_in_and_can_sign_in_again,
    sign_in_needs_the_right_name_and_password,
    names_and_passwords_have_a_form,
    registration_can_be_closed,
    failed_sign_ins_are_limited_by_account_and_address,
    a_logout_ends_the_login_and_any_token_may_log_out,
    refreshing_replaces_the_access_token_only,
    tokens_end_at_their_time,
    a_refresh_token_is_taken_as_an_access_token,
    the_client_learns_who_it_is,
    a_profile_is_changed_field_by_field,
    other_people_are_found_by_nickname,
}

const START: i64 = 1_800_000_000_000;

async fn register(app: &TestApp, username: &str, password: &str) -> Value {
    let body = json!({"username": username, "nickname": format!("{username:.20} N."), "password": password});
    answer(visit(app, "POST", "/system/auth/register").json(&body)).await
}

async fn login(app: &TestApp, username: &str, password: &str) -> Value {
    // The web client's further fields are ignored.
    let body = json!({"username": username, "password": password, "tenantName": "x", "rememberMe": true});
    answer(visit(app, "POST", "/system/auth/login").json(&body)).await
}

async fn refresh(app: &TestApp, token: &str) -> Value {
    answer(visit(app, "POST", &format!("/system/auth/refresh-token?refreshToken={token}"))).await
}

fn text<'a>(answer: &'a Value, key: &str) -> &'a str {
    answer["data"][key].as_str().unwrap_or_else(|| panic!("no {key} in {answer}"))
}

async fn a_new_account_is_signed_in_and_can_sign_in_again(backend: Backend) {
    let app = TestApp::start(backend).await;
    let registered = register(&app, "alice", "secret").await;
    insta::allow_duplicates! {
        insta::assert_snapshot!(redacted(&registered, &["accessToken", "expiresTime", "refreshToken", "userId"]), @r#"
    {
      "code": 0,
      "data": {
        "accessToken": "[accessToken]",
        "expiresTime": "[expiresTime]",
        "refreshToken": "[refreshToken]",
        "userId": "[userId]"
      },
      "msg": ""
    }
    "#);
    }
    for key in ["accessToken", "refreshToken"] {
        let token = text(&registered, key);
        assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    }
    assert_eq!(code(&register(&app, "alice", "other").await), 1_002_003_000);

    let again = login(&app, "alice", "secret").await;
    assert_eq!(again["data"]["userId"], registered["data"]["userId"]);
    // Each login has tokens of its own, and all of them count.
    assert_ne!(text(&again, "refreshToken"), text(&registered, "refreshToken"));
    assert_eq!(code_of_token(&app, text(&registered, "accessToken")).await, 0);
    assert_eq!(code_of_token(&app, text(&again, "accessToken")).await, 0);
}

async fn sign_in_needs_the_right_name_and_password(backend: Backend) {
    let app = TestApp::start(backend).await;
    register(&app, "alice", "secret").await;
    assert_eq!(code(&login(&app, "alice", "Secret").await), 1_002_000_000);
    assert_eq!(code(&login(&app, "nobody", "secret").await), 1_002_000_000);
    // User names are compared exactly, on every database.
    assert_eq!(code(&login(&app, "Alice", "secret").await), 1_002_000_000);
    // Accounts of a business system have no password, so nobody can guess it.
    let bob = app.user("bob").await;
    assert_eq!(code(&login(&app, &bob.external_id.replace('-', ""), "secret").await), 1_002_000_000);
    assert_eq!(code(&login(&app, "alice", "secret").await), 0);
}

async fn names_and_passwords_have_a_form(backend: Backend) {
    let app = TestApp::start(backend).await;
    for username in ["abc", &"a".repeat(31), "has space", "ümlaut", "semi;colon", ""] {
        assert_eq!(code(&register(&app, username, "secret").await), 400, "{username:?}");
        assert_eq!(code(&login(&app, username, "secret").await), 400, "{username:?}");
    }
    for password in ["abc", &"a".repeat(17), ""] {
        assert_eq!(code(&register(&app, "alice", password).await), 400, "{password:?}");
    }
    for nickname in ["", "  ", &"x".repeat(31)] {
        let body = json!({"username": "alice", "nickname": nickname, "password": "secret"});
        assert_eq!(code(&answer(visit(&app, "POST", "/system/auth/register").json(&body)).await), 400, "{nickname:?}");
    }
    assert_eq!(code(&register(&app, &"a".repeat(30), "1234").await), 0);
    assert_eq!(code(&register(&app, "a123", &"ü".repeat(16)).await), 0);
}

async fn registration_can_be_closed(backend: Backend) {
    let auth = AuthConfig { registration: Some(false), ..AuthConfig::default() };
    let config = Config { auth, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    assert_eq!(code(&register(&app, "alice", "secret").await), 1_002_003_011);
    assert_eq!(code(&login(&app, "alice", "secret").await), 1_002_000_000);
}

async fn failed_sign_ins_are_limited_by_account_and_address(backend: Backend) {
    let clock = ManualClock::at(START);
    let auth = AuthConfig { max_failures: 2, failure_window_s: 60, ..AuthConfig::default() };
    let config = Config { auth, trusted_proxies: vec!["127.0.0.1".parse().unwrap()], ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await;
    register(&app, "alice", "secret").await;
    register(&app, "bobby", "secret").await;
    let login_from = async |address: &str, username: &str, password: &str| {
        let body = json!({"username": username, "password": password});
        let request = visit(&app, "POST", "/system/auth/login").header("x-forwarded-for", address);
        code(&answer(request.json(&body)).await)
    };
    // A success forgets the failures before it.
    assert_eq!(login_from("10.0.0.1", "alice", "wrong").await, 1_002_000_000);
    assert_eq!(login_from("10.0.0.1", "alice", "secret").await, 0);
    for _ in 0..2 {
        assert_eq!(login_from("10.0.0.1", "alice", "wrong").await, 1_002_000_000);
    }
    assert_eq!(login_from("10.0.0.1", "alice", "secret").await, 429, "not even the right one");
    assert_eq!(login_from("10.0.0.2", "alice", "secret").await, 0, "another address");
    assert_eq!(login_from("10.0.0.1", "bobby", "secret").await, 0, "another account");
    clock.jump(59_999);
    assert_eq!(login_from("10.0.0.1", "alice", "secret").await, 429);
    clock.jump(1);
    assert_eq!(login_from("10.0.0.1", "alice", "secret").await, 0);
}

async fn a_logout_ends_the_login_and_any_token_may_log_out(backend: Backend) {
    let app = TestApp::start(backend).await;
    let logout = async |token: &str| {
        let answer = answer(visit(&app, "POST", "/system/auth/logout").bearer_auth(token)).await;
        assert_eq!((code(&answer), &answer["data"]), (0, &json!(true)));
    };
    let alice = app.user("alice").await;
    let other = alice.sign_in_again().await;
    logout("0123456789abcdef0123456789abcdef").await;
    assert_eq!(code(&answer(visit(&app, "POST", "/system/auth/logout")).await), 0, "no token at all");
    logout(&alice.refresh_token).await;
    assert_eq!(code_of_token(&app, &alice.access_token).await, 0, "a refresh token logs nobody out");

    logout(&alice.access_token).await;
    assert_eq!(code_of_token(&app, &alice.access_token).await, 401);
    assert_eq!(code_of_token(&app, &alice.refresh_token).await, 401);
    assert_eq!(code(&refresh(&app, &alice.refresh_token).await), 400);
    assert_eq!(code_of_token(&app, &other.access_token).await, 0, "the other login goes on");
}

async fn refreshing_replaces_the_access_token_only(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let fresh = refresh(&app, &alice.refresh_token).await;
    assert_eq!(text(&fresh, "refreshToken"), alice.refresh_token);
    assert_eq!(fresh["data"]["userId"], alice.id);
    assert_eq!(code_of_token(&app, &alice.access_token).await, 401);
    assert_eq!(code_of_token(&app, text(&fresh, "accessToken")).await, 0);
    assert_eq!(code(&refresh(&app, &alice.refresh_token).await), 0, "a refresh token is not used up");

    let unknown = refresh(&app, "0123456789abcdef0123456789abcdef").await;
    assert_eq!((code(&unknown), unknown["msg"].as_str()), (400, Some("无效的刷新令牌")));
    // An access token is none either.
    assert_eq!(refresh(&app, text(&fresh, "accessToken")).await["msg"], "无效的刷新令牌");
}

async fn tokens_end_at_their_time(backend: Backend) {
    let clock = ManualClock::at(START);
    let app = TestApp::start_with(backend, Setup { clock: Some(clock.clock()), ..Setup::default() }).await;
    let registered = register(&app, "alice", "secret").await;
    let (access, refresh_token) = (text(&registered, "accessToken"), text(&registered, "refreshToken"));
    assert_eq!(registered["data"]["expiresTime"], START + 1_800_000);
    clock.jump(1_799_999);
    assert_eq!(code_of_token(&app, access).await, 0);
    clock.jump(1);
    assert_eq!(code_of_token(&app, access).await, 401);
    let fresh = refresh(&app, refresh_token).await;
    assert_eq!(fresh["data"]["expiresTime"], START + 3_600_000);
    assert_eq!(code_of_token(&app, text(&fresh, "accessToken")).await, 0);

    // The refresh token ends 30 days after the sign-in, however often it was used.
    clock.jump(2_592_000_000 - 1_800_000 - 1);
    assert_eq!(code(&refresh(&app, refresh_token).await), 0);
    assert_eq!(code_of_token(&app, refresh_token).await, 0);
    clock.jump(1);
    let expired = refresh(&app, refresh_token).await;
    assert_eq!((code(&expired), expired["msg"].as_str()), (401, Some("刷新令牌已过期")));
    assert_eq!(code_of_token(&app, refresh_token).await, 401);
}

async fn a_refresh_token_is_taken_as_an_access_token(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    assert_eq!(code_of_token(&app, &alice.refresh_token).await, 0);
    let path = "/system/auth/get-permission-info";
    let without_prefix = visit(&app, "GET", path).header("authorization", &alice.refresh_token);
    assert_eq!(code(&answer(without_prefix).await), 0);
    let in_query = visit(&app, "GET", &format!("{path}?token={}", alice.access_token));
    assert_eq!(code(&answer(in_query).await), 0);
    // The header wins.
    let both = visit(&app, "GET", &format!("{path}?token={}", alice.access_token)).bearer_auth("wrong");
    assert_eq!(code(&answer(both).await), 401);
}

async fn the_client_learns_who_it_is(backend: Backend) {
    let app = TestApp::start(backend).await;
    let registered = register(&app, "alice", "secret").await;
    let token = text(&registered, "accessToken");
    let info = answer(visit(&app, "GET", "/system/auth/get-permission-info").bearer_auth(token)).await;
    assert_eq!(info["data"]["user"]["id"], registered["data"]["userId"]);
    insta::allow_duplicates! {
        insta::assert_snapshot!(redacted(&info["data"], &["id"]), @r#"
    {
      "menus": [],
      "permissions": [],
      "roles": [],
      "user": {
        "avatar": null,
        "deptId": null,
        "email": null,
        "id": "[id]",
        "nickname": "alice N.",
        "username": "alice"
      }
    }
    "#);
    }
}

async fn a_profile_is_changed_field_by_field(backend: Backend) {
    let app = TestApp::start(backend).await;
    let registered = register(&app, "alice", "secret").await;
    let token = text(&registered, "accessToken");
    let update = async |body: Value| {
        code(&answer(visit(&app, "PUT", "/system/user/profile/update").bearer_auth(token).json(&body)).await)
    };
    assert_eq!(update(json!({"nickname": "Ally", "sex": 2, "avatar": "/a.png"})).await, 0);
    assert_eq!(update(json!({"email": "a@example.org", "mobile": "123"})).await, 0);
    for bad in [json!({"nickname": " "}), json!({"sex": 3}), json!({"email": "x".repeat(51)}), json!({"sex": "a"})] {
        assert_eq!(update(bad.clone()).await, 400, "{bad}");
    }
    let profile = answer(visit(&app, "GET", "/system/user/profile/get").bearer_auth(token)).await;
    insta::allow_duplicates! {
        insta::assert_snapshot!(redacted(&profile["data"], &["id", "createTime", "loginDate"]), @r#"
    {
      "avatar": "/a.png",
      "createTime": "[createTime]",
      "dept": null,
      "email": "a@example.org",
      "id": "[id]",
      "loginDate": "[loginDate]",
      "loginIp": "127.0.0.1",
      "mobile": "123",
      "nickname": "Ally",
      "posts": [],
      "roles": [],
      "sex": 2,
      "username": "alice"
    }
    "#);
    }
}

async fn other_people_are_found_by_nickname(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let percent = app.user("100%_!").await;
    let search = async |part: &str| alice.get(&format!("/system/user/list-by-nickname?nickname={part}")).await;
    let found = search("lic").await;
    insta::allow_duplicates! {
        insta::assert_snapshot!(redacted(&found, &["id"]), @r#"
    [
      {
        "avatar": null,
        "deptId": null,
        "deptName": null,
        "id": "[id]",
        "nickname": "alice",
        "sex": 0
      }
    ]
    "#);
    }
    // The database's own habits must not show.
    assert_eq!(search("LIC").await, found);
    assert_eq!(search("%20").await, json!([]), "blank");
    assert_eq!(search("").await, json!([]));
    for literal in ["%25", "_", "!"] {
        let found = search(literal).await;
        assert_eq!((found.as_array().unwrap().len(), &found[0]["id"]), (1, &json!(percent.id)), "{literal}");
    }
    assert_eq!(alice.get(&format!("/system/user/get-simple?id={}", percent.id)).await["nickname"], "100%_!");
    assert_eq!(alice.get("/system/user/get-simple?id=9007199254740991").await, Value::Null);
}
