//! Operators: what each management endpoint asks for, how `nudge admin` gives and takes it beside a running server, and
//! what the web client is told of it (`contract/05` part E, `contract/01` section 6.6).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use nudge::domain::permission::KEYS;
use nudge::http::im_endpoints;
use serde_json::{Value, json};

use crate::support::app::{API_KEY, Person, TestApp, http_client};
use crate::support::databases::{Backend, TestDatabase, on_every_database};
use crate::support::operators::{forbid, permit};
use crate::support::process::ServerProcess;
use crate::support::raw::code_of;

on_every_database! {
    every_management_endpoint_asks_for_its_permission,
    an_administrator_gives_and_takes_beside_a_running_server,
    the_web_client_is_told_roles_permissions_and_menus,
}

const FORBIDDEN: i64 = 403;

/// Every endpoint below `/im/manager` that asks for a permission, and which.
const GUARDED: &[(&str, &str, &str)] = &[
    ("get", "/manager/friend/page", "im:manager:friend:query"),
    ("get", "/manager/friend-request/page", "im:manager:friend-request:query"),
    ("get", "/manager/group/page", "im:manager:group:query"),
    ("get", "/manager/group/get", "im:manager:group:query"),
    ("put", "/manager/group/ban", "im:manager:group:ban"),
    ("put", "/manager/group/unban", "im:manager:group:ban"),
    ("delete", "/manager/group/dissolve", "im:manager:group:dissolve"),
    ("get", "/manager/group/member/list", "im:manager:group:query"),
    ("get", "/manager/group-request/page", "im:manager:group-request:query"),
    ("get", "/manager/message/private/page", "im:manager:message:query"),
    ("get", "/manager/message/private/get", "im:manager:message:query"),
    ("get", "/manager/message/group/page", "im:manager:message:query"),
    ("get", "/manager/message/group/get", "im:manager:message:query"),
    ("post", "/manager/sensitive-word/create", "im:manager:sensitive-word:create"),
    ("put", "/manager/sensitive-word/update", "im:manager:sensitive-word:update"),
    ("delete", "/manager/sensitive-word/delete", "im:manager:sensitive-word:delete"),
    ("delete", "/manager/sensitive-word/delete-list", "im:manager:sensitive-word:delete"),
    ("get", "/manager/sensitive-word/page", "im:manager:sensitive-word:query"),
    ("get", "/manager/sensitive-word/get", "im:manager:sensitive-word:query"),
    ("get", "/manager/statistics/overview", "im:manager:statistics:query"),
    ("get", "/manager/statistics/message-trend", "im:manager:statistics:query"),
    ("get", "/manager/statistics/user-trend", "im:manager:statistics:query"),
    ("get", "/manager/statistics/message-type-distribution", "im:manager:statistics:query"),
    ("get", "/manager/statistics/group-size-distribution", "im:manager:statistics:query"),
    ("get", "/manager/statistics/top-senders", "im:manager:statistics:query"),
];

#[test]
fn every_management_endpoint_is_in_the_list() {
    let routes: BTreeSet<(&str, &str)> = im_endpoints().filter(|(_, path)| path.starts_with("/manager/")).collect();
    assert_eq!(GUARDED.iter().map(|(method, path, _)| (*method, *path)).collect::<BTreeSet<_>>(), routes);
}

async fn every_management_endpoint_asks_for_its_permission(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (nobody, everybody, someone) = (app.user("nobody").await, app.operator().await, app.user("someone").await);
    let url = &app.database.url;
    for (method, path, key) in GUARDED {
        // A request that lacks everything, which only those are told who hold the permission.
        let ask = async |person: &Person| code_of(person, &method.to_uppercase(), &format!("/im{path}")).await;
        let mut stranger = nobody.clone();
        stranger.access_token = "of nobody".to_owned();
        assert_eq!(ask(&stranger).await, 401, "{path}");
        assert_eq!(ask(&nobody).await, FORBIDDEN, "{path}");
        let allowed = ask(&everybody).await;
        assert!([0, 400].contains(&allowed), "{path}: {allowed}");
        let others: Vec<&str> = KEYS.iter().copied().filter(|other| other != key).collect();
        permit(url, &someone, &others).await;
        assert_eq!(ask(&someone).await, FORBIDDEN, "{path} with every other permission");
        permit(url, &someone, &[key]).await;
        assert_eq!(ask(&someone).await, allowed, "{path} with {key}");
        forbid(url, &someone).await;
        assert_eq!(ask(&someone).await, FORBIDDEN, "{path}: the next request after the permission is gone");
    }
}

/// Runs `nudge admin` on a database.
fn admin(folder: &Path, url: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nudge"));
    command.current_dir(folder).env("DATABASE_URL", url).arg("admin").args(arguments);
    command.output().unwrap()
}

async fn an_administrator_gives_and_takes_beside_a_running_server(backend: Backend) {
    let database = TestDatabase::create(backend, crate::support::app::SCHEMA).await;
    let folder = tempfile::TempDir::new().unwrap();
    let environment = [("NUDGE_API_KEY", API_KEY), ("DATABASE_URL", database.url.as_str())];
    let server = ServerProcess::start(folder.path(), &environment).await.unwrap();
    let http = http_client();
    let alice = Person::create(&http, &server.url(), "alice at work", "Alice").await;
    let body = json!({"username": "robert", "nickname": "Bob", "password": "secret"});
    let register = http.post(format!("{}/admin-api/system/auth/register", server.url())).header("tenant-id", "1");
    let robert = crate::support::app::data(crate::support::raw::answer(register.json(&body)).await);
    let robert = Person::with_login(&http, &server.url(), &robert);

    let run = |arguments: &[&str]| admin(folder.path(), &database.url, arguments);
    let succeeds = |arguments: &[&str]| {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let fails = |arguments: &[&str], reason: &str| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(reason), "{arguments:?}: {text}");
    };
    let may = async |person: &Person, path: &str| code_of(person, "GET", path).await == 0;
    const GROUPS: &str = "/im/manager/group/page";
    const FRIENDS: &str = "/im/manager/friend/page";

    assert_eq!(succeeds(&["list"]), "there are no operators\n");
    assert!(!may(&robert, GROUPS).await);
    assert!(succeeds(&["grant", "robert"]).ends_with(" holds super_admin\n"));
    assert!(may(&robert, GROUPS).await && may(&robert, FRIENDS).await);
    let keys = ["--permission", "im:manager:group:query", "--permission", "im:manager:group:ban"];
    let grant = [&["grant", "alice at work", "--external-id"], &keys[..]].concat();
    assert!(succeeds(&grant).ends_with(" holds im:manager:group:ban, im:manager:group:query\n"));
    succeeds(&grant);
    assert!(may(&alice, GROUPS).await && !may(&alice, FRIENDS).await);
    let listed = succeeds(&["list"]);
    let expected = [
        format!("{} alice at work: im:manager:group:ban im:manager:group:query", alice.id),
        format!("{} robert: super_admin", robert.id),
    ];
    assert_eq!(listed, expected.join("\n") + "\n");

    succeeds(&["revoke", "alice at work", "--external-id", "--permission", "im:manager:group:query"]);
    assert!(!may(&alice, GROUPS).await);
    fails(&["revoke", "robert", "--permission", "im:manager:group:query"], "holds super_admin");
    assert!(may(&robert, GROUPS).await);
    assert!(succeeds(&["revoke", "robert"]).ends_with(" holds no permission\n"));
    assert!(!may(&robert, GROUPS).await);

    fails(&["grant", "nobody"], "no user with the user name nobody");
    fails(&["grant", "alice at work"], "no user with the user name alice at work");
    fails(&["grant", "robert", "--external-id"], "no user with the external id robert");
    fails(&["grant", "robert", "--permission", "im:manager:all"], "no permission im:manager:all");
    fails(&["grant", "robert", "--permission", "*:*:*"], "no permission *:*:*");
    fails(&["revoke", "robert"], "holds no permission");
    assert!(!may(&robert, GROUPS).await, "what failed gave nothing");
}

#[test]
fn an_administrator_is_told_that_there_is_no_database() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("nudge.db");
    let url = format!("sqlite://{}", path.display());
    let output = admin(folder.path(), &url, &["list"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("there is no database"));
    assert!(!path.exists(), "and none is made");
    std::fs::write(&path, "").unwrap();
    let output = admin(folder.path(), &url, &["list"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("run nudge migrate"));
}

async fn the_web_client_is_told_roles_permissions_and_menus(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (user, operator, clerk) = (app.user("user").await, app.operator().await, app.user("clerk").await);
    permit(&app.database.url, &clerk, &["im:manager:group:query", "im:manager:group:ban"]).await;
    let told = async |person: &Person| {
        let info = person.get("/system/auth/get-permission-info").await;
        assert_eq!(info["user"]["id"], person.id);
        (info["roles"].clone(), info["permissions"].clone(), info["menus"].clone())
    };
    assert_eq!(told(&user).await, (json!([]), json!([]), json!([])));
    let (roles, permissions, menus) = told(&clerk).await;
    assert_eq!((roles, permissions), (json!([]), json!(["im:manager:group:ban", "im:manager:group:query"])));
    let leaf = json!({
        "id": 6540, "parentId": 6610, "name": "群", "path": "list", "component": "im/manager/group/index",
        "componentName": "ImGroup", "icon": "", "visible": true, "keepAlive": true, "alwaysShow": true,
        "children": null,
    });
    let directory = |id: i64, parent: i64, name: &str, path: &str, icon: &str, child: Value| {
        json!({
            "id": id, "parentId": parent, "name": name, "path": path, "component": null, "componentName": null,
            "icon": icon, "visible": true, "keepAlive": true, "alwaysShow": true, "children": [child],
        })
    };
    let groups = directory(6610, 6500, "群聊", "group", "", leaf);
    assert_eq!(menus, json!([directory(6500, 0, "即时通讯", "/im", "ep:chat-dot-round", groups)]));
    let (roles, permissions, menus) = told(&operator).await;
    assert_eq!((roles, permissions), (json!(["super_admin"]), json!(KEYS)));
    let shown = menus.to_string();
    let pages = [
        "ImFriend",
        "ImFriendRequest",
        "ImPrivateMessage",
        "ImGroup",
        "ImGroupRequest",
        "ImGroupMessage",
        "ImSensitiveWord",
        "ImStatistics",
    ];
    for page in pages {
        assert!(shown.contains(&format!("\"{page}\"")), "{page}: {shown}");
    }
    assert!(!shown.contains("ImRtcCall"), "a page without its endpoint: {shown}");
}
