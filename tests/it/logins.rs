//! Sockets end with their login (field tests F3, F4): logout, password change, disabling, expiry, and closing one of my
//! own sessions from another device.

use nudge::config::{AuthConfig, Config};
use serde_json::{Value, json};

use crate::support::app::{Person, Setup, Socket, TestApp, befriend, data, eventually, server_api, start_server};
use crate::support::barrier::told;
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::{answer, code, code_of, code_of_token, redacted, visit};
use crate::support::server_api::set_enabled;

on_every_database! {
    a_logout_closes_the_sockets_of_that_login_only,
    a_password_change_closes_every_socket_and_a_new_login_is_unharmed,
    disabling_an_account_closes_every_socket_and_enabling_lets_it_in_again,
    a_session_ends_at_the_expiry_of_its_token,
    closing_one_session_leaves_the_others,
    the_session_list_shows_devices,
    a_session_of_somebody_else_cannot_be_closed,
    a_refresh_keeps_the_sockets_of_its_login,
    a_token_in_use_ends_at_once,
}

const CLOSED_BY_USER: Option<u16> = Some(4001);
const SIGNED_OUT: Option<u16> = Some(4002);

/// Old tokens open nothing: code 401 in the wrapper, HTTP 401 at the handshake.
async fn assert_refused(app: &TestApp, person: &Person) {
    for token in [&person.access_token, &person.refresh_token] {
        assert_eq!(code_of_token(app, token).await, 401);
        assert_eq!(app.guest(token).try_connect("").await.err(), Some(401));
    }
}

/// A login works on HTTP and on its socket: it hears of what it sends.
async fn assert_unharmed(person: &Person, socket: &mut Socket, friend: &Person) {
    let sent = person.send(friend, "still here").await;
    assert_eq!(socket.next_of(101).await.payload, sent);
}

async fn a_logout_closes_the_sockets_of_that_login_only(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let other = alice.sign_in_again().await;
    let mut by_refresh = alice.connect().await;
    let mut by_access = app.guest(&alice.access_token).try_connect("").await.unwrap();
    let mut others = other.connect().await;

    assert_eq!(alice.post("/system/auth/logout", json!({})).await, true);
    assert_eq!((by_refresh.closed().await, by_access.closed().await), (SIGNED_OUT, SIGNED_OUT));
    assert_refused(&app, &alice).await;
    assert_unharmed(&other, &mut others, &bob).await;
    let new = alice.sign_in_again().await;
    assert_unharmed(&new, &mut new.connect().await, &bob).await;
}

async fn a_password_change_closes_every_socket_and_a_new_login_is_unharmed(backend: Backend) {
    let app = TestApp::start(backend).await;
    let credentials = |password: &str| json!({"username": "alice", "nickname": "Alice", "password": password});
    let registered = data(answer(visit(&app, "POST", "/system/auth/register").json(&credentials("secret"))).await);
    let token = |login: &Value, key: &str| login[key].as_str().unwrap().to_owned();
    let first = data(answer(visit(&app, "POST", "/system/auth/login").json(&credentials("secret"))).await);
    let mut sockets = Vec::new();
    for login in [&registered, &first] {
        sockets.push(app.guest(&token(login, "refreshToken")).try_connect("").await.unwrap());
    }
    let change = async |old: &str| {
        let body = json!({"oldPassword": old, "newPassword": "changed"});
        let request = visit(&app, "PUT", "/system/user/profile/update-password").json(&body);
        code(&answer(request.bearer_auth(token(&registered, "accessToken"))).await)
    };
    assert_eq!(change("wrong").await, 1_002_003_005);
    for socket in &mut sockets {
        assert_eq!(socket.drain().await, vec![], "a refused change closes nothing");
    }

    assert_eq!(change("secret").await, 0);
    for socket in &mut sockets {
        assert_eq!(socket.closed().await, SIGNED_OUT);
    }
    for login in [&registered, &first] {
        for key in ["accessToken", "refreshToken"] {
            assert_eq!(code_of_token(&app, &token(login, key)).await, 401);
            assert_eq!(app.guest(&token(login, key)).try_connect("").await.err(), Some(401));
        }
    }
    let login =
        async |password: &str| answer(visit(&app, "POST", "/system/auth/login").json(&credentials(password))).await;
    assert_eq!(code(&login("secret").await), 1_002_000_000);
    let new = data(login("changed").await);
    let mut socket = app.guest(&token(&new, "refreshToken")).try_connect("").await.unwrap();
    assert_eq!(socket.drain().await, vec![]);
}

async fn disabling_an_account_closes_every_socket_and_enabling_lets_it_in_again(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut sockets = [alice.connect().await, alice.sign_in_again().await.connect().await];
    let mut bobs = bob.connect().await;
    set_enabled(&app, &alice.external_id, false).await;
    for socket in &mut sockets {
        assert_eq!(socket.closed().await, SIGNED_OUT);
    }
    assert_refused(&app, &alice).await;
    assert_eq!(bobs.drain().await, vec![]);

    set_enabled(&app, &alice.external_id, true).await;
    assert_refused(&app, &alice).await;
    let new = alice.sign_in_again().await;
    assert_unharmed(&new, &mut new.connect().await, &bob).await;
}

async fn a_session_ends_at_the_expiry_of_its_token(backend: Backend) {
    let auth = AuthConfig { access_token_ttl_s: 1, ..AuthConfig::default() };
    let config = Config { auth, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let alice = app.user("alice").await;
    let mut long = alice.connect().await;
    // The token may have ended while the test was setting up, so a fresh one is taken.
    let mut short = app.guest(&alice.sign_in_again().await.access_token).try_connect("").await.unwrap();
    assert_eq!(short.closed().await, SIGNED_OUT);
    assert_eq!(long.drain().await, vec![], "the refresh token has not ended");
}

/// The ids of a person's sessions by device name.
async fn session_of(person: &Person, device: &str) -> i64 {
    let sessions = person.get("/im/session/list").await;
    let session = sessions.as_array().unwrap().iter().find(|session| session["device"] == device);
    session.unwrap_or_else(|| panic!("no {device} in {sessions}"))["id"].as_i64().unwrap()
}

async fn closing_one_session_leaves_the_others(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut phone = alice.try_connect("&device=phone").await.unwrap();
    let mut laptop = alice.try_connect("&device=laptop").await.unwrap();
    let id = session_of(&alice, "phone").await;
    assert_eq!(alice.delete(&format!("/im/session/close?id={id}")).await, true);
    assert_eq!(phone.closed().await, CLOSED_BY_USER);
    assert_unharmed(&alice, &mut laptop, &bob).await;
    eventually("the closed session leaves the list", async || {
        alice.get("/im/session/list").await.as_array().unwrap().len() == 1
    })
    .await;
    assert_eq!(alice.delete(&format!("/im/session/close?id={id}")).await, false, "it is gone");
    // Closing a session is no logout.
    assert_eq!(code_of(&alice, "GET", "/im/session/list").await, 0);
}

async fn the_session_list_shows_devices(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let other = alice.sign_in_again().await;
    let long = "x".repeat(100);
    let _phone = alice.try_connect("&device=phone&platform=android").await.unwrap();
    let _unnamed = other.try_connect(&format!("&platform={long}")).await.unwrap();
    let mut sessions = alice.get("/im/session/list").await;
    sessions.as_array_mut().unwrap().sort_by_key(|session| session["id"].as_i64());
    insta::allow_duplicates! {
        insta::assert_snapshot!(redacted(&sessions, &["id", "loginId", "connectTime"]), @r#"
    [
      {
        "address": "127.0.0.1",
        "connectTime": "[connectTime]",
        "currentLogin": true,
        "device": "phone",
        "id": "[id]",
        "loginId": "[loginId]",
        "platform": "android"
      },
      {
        "address": "127.0.0.1",
        "connectTime": "[connectTime]",
        "currentLogin": false,
        "device": null,
        "id": "[id]",
        "loginId": "[loginId]",
        "platform": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      }
    ]
    "#);
    }
    assert_ne!(sessions[0]["loginId"], sessions[1]["loginId"]);
}

async fn a_session_of_somebody_else_cannot_be_closed(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let mut alices = alice.try_connect("&device=phone").await.unwrap();
    let mut bobs = bob.connect().await;
    let id = session_of(&alice, "phone").await;
    assert_eq!(bob.delete(&format!("/im/session/close?id={id}")).await, false);
    assert_eq!((told(&app, &alice, &mut alices).await, told(&app, &bob, &mut bobs).await), (vec![], vec![]));
    assert_eq!(bob.get("/im/session/list").await.as_array().unwrap().len(), 1, "he sees his own only");
}

async fn a_refresh_keeps_the_sockets_of_its_login(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    befriend(&alice, &bob).await;
    let mut socket = alice.connect().await;
    let path = format!("/system/auth/refresh-token?refreshToken={}", alice.refresh_token);
    data(answer(visit(&app, "POST", &path)).await);
    let sent = bob.send(&alice, "hello").await;
    assert_eq!(socket.next_of(101).await.payload, sent);
    // And the new access token speaks for that login: its logout closes them.
    let tokens = server_api(&app.http, &app.base, "/tokens", json!({"externalIds": [alice.external_id]})).await;
    let other = tokens[0]["accessToken"].as_str().unwrap();
    data(answer(visit(&app, "POST", "/system/auth/logout").bearer_auth(other)).await);
    assert_eq!(socket.drain().await, vec![], "another login's logout");
    let fresh = data(answer(visit(&app, "POST", &path)).await);
    data(answer(visit(&app, "POST", "/system/auth/logout").bearer_auth(fresh["accessToken"].as_str().unwrap())).await);
    assert_eq!(socket.closed().await, SIGNED_OUT);
}

/// A token that a request has just used is known to its server, which reads it again only a moment later. A revocation by
/// the server itself counts at once.
async fn a_token_in_use_ends_at_once(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let (by_refresh, by_logout, by_disabling) =
        (alice.sign_in_again().await, alice.sign_in_again().await, alice.sign_in_again().await);
    for person in [&by_refresh, &by_logout, &by_disabling] {
        for token in [&person.access_token, &person.refresh_token] {
            assert_eq!(code_of_token(&app, token).await, 0);
        }
    }
    let path = format!("/system/auth/refresh-token?refreshToken={}", by_refresh.refresh_token);
    data(answer(visit(&app, "POST", &path)).await);
    assert_eq!(code_of_token(&app, &by_refresh.access_token).await, 401, "it was replaced");
    assert_eq!(code_of_token(&app, &by_refresh.refresh_token).await, 0);
    by_logout.post("/system/auth/logout", json!({})).await;
    assert_refused(&app, &by_logout).await;
    assert_eq!(code_of_token(&app, &by_disabling.access_token).await, 0);
    set_enabled(&app, &alice.external_id, false).await;
    assert_refused(&app, &by_disabling).await;
}

/// A server does not hear of logouts elsewhere: requests with a token that it knows go on for `auth.token_cache_ms`, which
/// 0 switches off. The token of a socket is always read.
async fn a_logout_holds_on_other_servers_too(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let auth = AuthConfig { token_cache_ms: 0, ..AuthConfig::default() };
    let strict = Setup { config: Config { auth, ..Config::default() }, ..Setup::default() };
    let servers =
        [start_server(&app.database.url, strict).await, start_server(&app.database.url, Setup::default()).await];
    let [strict, other] = servers.each_ref().map(|server| alice.on(&format!("http://{}", server.address())));
    for there in [&strict, &other] {
        assert_eq!(code_of(there, "GET", "/im/session/list").await, 0);
    }
    alice.post("/system/auth/logout", json!({})).await;
    assert_eq!(code_of(&strict, "GET", "/im/session/list").await, 401);
    for there in [&strict, &other] {
        assert_eq!(there.try_connect("").await.err(), Some(401));
    }
    eventually("the logout counts", async || code_of(&other, "GET", "/im/session/list").await == 401).await;
}

#[actix_web::test]
async fn a_logout_holds_on_another_server_of_postgres() {
    a_logout_holds_on_other_servers_too(Backend::Postgres).await;
}

#[actix_web::test]
async fn a_logout_holds_on_another_server_of_mysql() {
    a_logout_holds_on_other_servers_too(Backend::Mysql).await;
}
