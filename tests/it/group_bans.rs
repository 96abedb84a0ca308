//! Operators ban and end groups: what that stops, who is told, and how it looks afterwards (`contract/05` E2).

use serde_json::{Value, json};

use crate::support::app::{Person, TestApp, ids_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::code_of;
use crate::support::friends::{check_forms, nothing_came, only_push};
use crate::support::groups::{
    Crew, GROUP_BANNED, GROUP_DISSOLVED, GROUP_NOT_FOUND, NOBODY, NOT_MEMBER, check_spans, code, dissolve, group,
    make_group, put, read_event, say, try_say,
};

on_every_database! {
    a_ban_is_told_to_the_members_and_to_the_operator,
    the_next_send_after_a_ban_is_refused_and_after_its_end_stored,
    a_repeated_ban_keeps_its_reason_and_tells_nobody,
    an_operator_who_is_a_member_is_told_once,
    an_operator_ends_a_group_banned_or_not,
    bans_are_refused_for_groups_that_are_not_there,
    bans_of_the_wrong_form_are_refused,
}

pub const BAN: &str = "/im/manager/group/ban";

async fn ban(operator: &Person, group: i64, reason: &str) -> i64 {
    code(operator, "PUT", BAN, json!({"id": group, "reason": reason})).await
}

async fn unban(operator: &Person, group: i64) -> i64 {
    code(operator, "PUT", &format!("/im/manager/group/unban?id={group}"), Value::Null).await
}

async fn end(operator: &Person, group: i64) -> i64 {
    code(operator, "DELETE", &format!("/im/manager/group/dissolve?id={group}"), Value::Null).await
}

/// The group messages that somebody pulls, by id.
async fn pulled(person: &Person) -> Vec<i64> {
    ids_of(person.get("/im/message/group/pull?minId=0&size=200").await.as_array().unwrap())
}

/// A group as operators see it.
async fn managed(operator: &Person, group: i64) -> Value {
    operator.get(&format!("/im/manager/group/get?id={group}")).await
}

async fn a_ban_is_told_to_the_members_and_to_the_operator(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let operator = app.operator().await;
    let (mut watch, mut socket) = (crew.connect().await, operator.connect().await);
    let before = pulled(&crew.member).await;
    let mut told = Vec::new();
    for banned in [true, false] {
        let code = if banned { ban(&operator, crew.group, "spam").await } else { unban(&operator, crew.group).await };
        assert_eq!(code, 0);
        let [owner, admin, member] = &mut watch.members;
        let push = only_push([owner, admin, member, &mut socket]).await;
        nothing_came([&mut watch.outsider]).await;
        let event = read_event(&push, &operator, crew.group, 1533);
        assert_eq!(event.content, json!({"operatorUserId": operator.id, "banned": banned}));
        told.push(event.id.expect("a ban is stored"));
        for person in [&crew.owner, &crew.admin, &crew.member] {
            assert_eq!(group(person, crew.group).await["banned"], banned);
            assert_eq!(person.get("/im/group/list").await[0]["banned"], banned);
        }
        let row = managed(&operator, crew.group).await;
        assert_eq!((row["banned"].clone(), row["bannedReason"].clone()), (json!(banned), json!("spam")));
        assert!(row["bannedTime"].as_i64() > Some(0), "{row}");
    }
    // By pull as by push: the members everything, the operator the two events, the outsider nothing.
    assert_eq!(pulled(&crew.member).await, [before, told.clone()].concat());
    assert_eq!(pulled(&operator).await, told);
    assert_eq!(pulled(&crew.outsider).await, Vec::<i64>::new());
    // What was said meanwhile and later is not for the operator.
    say(&crew.member, crew.group, "among us").await;
    assert_eq!(pulled(&operator).await, told);
    assert_eq!(operator.get("/im/group/list").await, json!([]));
    let members = format!("/im/group-member/list?groupId={}", crew.group);
    assert_eq!(code_of(&operator.call("GET", &members, None).await), NOT_MEMBER);
    check_spans(&app.database.url).await;
}

async fn the_next_send_after_a_ban_is_refused_and_after_its_end_stored(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let operator = app.operator().await;
    for round in 0..5 {
        assert_eq!(code_of(&try_say(&crew.member, crew.group, "before").await), 0, "round {round}");
        assert_eq!(ban(&operator, crew.group, "spam").await, 0);
        assert_eq!(code_of(&try_say(&crew.member, crew.group, "now").await), GROUP_BANNED, "round {round}");
        let rename = json!({"id": crew.group, "name": "new"});
        assert_eq!(code(&crew.owner, "PUT", "/im/group/update", rename).await, GROUP_BANNED);
        assert_eq!(unban(&operator, crew.group).await, 0);
    }
    assert_eq!(code_of(&try_say(&crew.member, crew.group, "after").await), 0);
}

async fn a_repeated_ban_keeps_its_reason_and_tells_nobody(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let (operator, other) = (app.operator().await, app.operator().await);
    let mut watch = crew.connect().await;
    assert_eq!(unban(&operator, crew.group).await, 0, "there is nothing to lift");
    watch.nothing().await;
    assert_eq!(ban(&operator, crew.group, "spam").await, 0);
    watch.event(&operator, 1533).await;
    let row = managed(&operator, crew.group).await;
    assert_eq!(ban(&other, crew.group, "another reason").await, 0);
    watch.nothing().await;
    assert_eq!(managed(&operator, crew.group).await, row);
    assert_eq!(unban(&operator, crew.group).await, 0);
    watch.event(&operator, 1533).await;
    assert_eq!(unban(&other, crew.group).await, 0);
    watch.nothing().await;
    assert_eq!(ban(&other, crew.group, "another reason").await, 0);
    watch.event(&other, 1533).await;
    assert_eq!(managed(&operator, crew.group).await["bannedReason"], "another reason");
}

async fn an_operator_who_is_a_member_is_told_once(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (owner, operator) = app.friends("owner", "operator").await;
    crate::support::operators::permit(&app.database.url, &operator, &[]).await;
    let id = make_group(&owner, &[&operator]).await;
    let mut sockets = [owner.connect().await, operator.connect().await];
    assert_eq!(ban(&operator, id, "spam").await, 0);
    let push = only_push(sockets.each_mut()).await;
    read_event(&push, &operator, id, 1533);
    assert_eq!(pulled(&operator).await, pulled(&owner).await);
    assert_eq!(end(&operator, id).await, 0);
    let push = only_push(sockets.each_mut()).await;
    let event = read_event(&push, &operator, id, 1511);
    assert_eq!(pulled(&operator).await.last().copied(), event.id);
    check_spans(&app.database.url).await;
}

async fn an_operator_ends_a_group_banned_or_not(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    for is_banned in [false, true] {
        let crew = Crew::gather(&app).await;
        if is_banned {
            assert_eq!(ban(&operator, crew.group, "spam").await, 0);
        }
        let (mut watch, mut socket) = (crew.connect().await, operator.connect().await);
        assert_eq!(end(&operator, crew.group).await, 0);
        let [owner, admin, member] = &mut watch.members;
        let push = only_push([owner, admin, member, &mut socket]).await;
        nothing_came([&mut watch.outsider]).await;
        let event = read_event(&push, &operator, crew.group, 1511);
        assert_eq!(event.content, json!({"operatorUserId": operator.id}));
        for person in [&crew.owner, &crew.member, &operator] {
            assert_eq!(pulled(person).await.last().copied(), event.id);
        }
        let row = managed(&operator, crew.group).await;
        assert_eq!((row["status"].clone(), row["banned"].clone()), (json!(1), json!(is_banned)));
        assert!(row["dissolvedTime"].as_i64() > Some(0), "{row}");
        let seen = group(&crew.member, crew.group).await;
        assert_eq!((seen["status"].clone(), seen["joinStatus"].clone()), (json!(1), json!(1)));
        assert_eq!(end(&operator, crew.group).await, GROUP_DISSOLVED);
        assert_eq!(ban(&operator, crew.group, "spam").await, GROUP_DISSOLVED);
        assert_eq!(unban(&operator, crew.group).await, 0, "a ban can be lifted at any time");
        assert_eq!(managed(&operator, crew.group).await["banned"], false);
        let members = operator.get(&format!("/im/manager/group/member/list?groupId={}", crew.group)).await;
        let states: Vec<&Value> = members.as_array().unwrap().iter().map(|row| &row["status"]).collect();
        assert_eq!(states, [1, 1, 1]);
    }
    check_spans(&app.database.url).await;
}

async fn bans_are_refused_for_groups_that_are_not_there(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    for missing in [NOBODY, 0, -1, i64::MAX] {
        assert_eq!(ban(&operator, missing, "spam").await, GROUP_NOT_FOUND, "{missing}");
        assert_eq!(unban(&operator, missing).await, GROUP_NOT_FOUND, "{missing}");
        assert_eq!(end(&operator, missing).await, GROUP_NOT_FOUND, "{missing}");
        assert_eq!(managed(&operator, missing).await, Value::Null, "{missing}");
        assert_eq!(operator.get(&format!("/im/manager/group/member/list?groupId={missing}")).await, json!([]));
    }
    // The right to ban is no right of an owner.
    let crew = Crew::gather(&app).await;
    assert_eq!(ban(&crew.owner, crew.group, "spam").await, 403);
    assert_eq!(dissolve(&operator, crew.group).await, 1_040_400_003, "and an operator is no owner");
}

async fn bans_of_the_wrong_form_are_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let owner = app.user("owner").await;
    let id = make_group(&owner, &[]).await;
    let (unban, end) = ("/im/manager/group/unban", "/im/manager/group/dissolve");
    let calls =
        [("PUT", BAN, json!({"id": id, "reason": "spam"})), ("PUT", unban, Value::Null), ("DELETE", end, Value::Null)];
    let malformed = [
        ("PUT", BAN, json!({"id": id})),
        ("PUT", BAN, json!({"reason": "spam"})),
        ("PUT", BAN, json!({"id": id, "reason": "  "})),
        ("PUT", BAN, json!({"id": id, "reason": "x".repeat(201)})),
        ("PUT", BAN, json!({"id": id, "reason": null})),
        ("PUT", unban, Value::Null),
        ("PUT", unban, json!({"id": id})),
        ("DELETE", end, Value::Null),
    ];
    check_forms(&operator, &calls, &malformed).await;
    let longest = json!({"id": id, "reason": "长".repeat(200)});
    put(&operator, BAN, longest).await;
    assert_eq!(managed(&operator, id).await["bannedReason"], "长".repeat(200));
}
