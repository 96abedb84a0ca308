//! Join requests: applying and being invited, agreeing and refusing, and who sees them.

use nudge::config::Config;
use serde_json::{Value, json};

use crate::support::app::{Person, Setup, TestApp, befriend, id_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{nothing_came, notice, only_push, pull_states};
use crate::support::groups::{
    ALREADY_MEMBER, Crew, MEMBER_LIMIT, NOBODY, NOT_MEMBER, REQUEST_HANDLED, check_spans, code, group, invite, kick,
    member, pulled_after, put, quit, say,
};

on_every_database! {
    without_approval_an_applicant_joins_at_once,
    with_approval_an_application_waits_for_a_manager,
    applying_again_renews_the_request,
    an_invitation_by_a_normal_member_becomes_a_request,
    an_approved_applicant_sees_the_group_and_his_joining,
    an_approved_invitation_names_its_inviter,
    a_refused_applicant_is_told_and_stays_out,
    requests_are_handled_in_the_order_of_the_rules,
    agreeing_to_a_member_closes_the_request,
    a_full_group_takes_nobody,
    requests_are_seen_by_those_whom_they_concern,
}

const NOT_FOUND: i64 = 1_040_510_001;
const NOT_TO_ME: i64 = 1_040_510_003;

/// A crew whose group asks for approval.
async fn gather(app: &TestApp) -> Crew {
    let crew = Crew::gather(app).await;
    put(&crew.owner, "/im/group/update", json!({"id": crew.group, "joinApproval": true})).await;
    crew
}

async fn apply(person: &Person, group: i64, text: &str) -> i64 {
    let body = json!({"groupId": group, "applyContent": text, "addSource": "4"});
    person.post("/im/group-request/apply", body).await.as_i64().expect("no request was made")
}

async fn handle(person: &Person, verb: &str, id: i64) -> i64 {
    code(person, "PUT", &format!("/im/group-request/{verb}?id={id}"), Value::Null).await
}

async fn request(person: &Person, id: i64) -> Value {
    person.get(&format!("/im/group-request/get?id={id}")).await
}

async fn without_approval_an_applicant_joins_at_once(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    for source in [json!(3), Value::Null] {
        let body = json!({"groupId": crew.group, "applyContent": "please", "addSource": source});
        assert_eq!(crew.outsider.post("/im/group-request/apply", body.clone()).await, Value::Null);
        let content = watch.event_with_outsider(&crew.outsider, 1510).await.content;
        let id = crew.outsider.id;
        assert_eq!(content, json!({"operatorUserId": id, "entrantUserId": id, "addSource": source}));
        assert_eq!(group(&crew.outsider, crew.group).await["joinStatus"], 0);
        assert_eq!(code(&crew.outsider, "POST", "/im/group-request/apply", body).await, ALREADY_MEMBER);
        watch.nothing().await;
        assert_eq!(quit(&crew.outsider, crew.group).await, 0);
        watch.skip().await;
    }
    assert_eq!(crew.owner.get("/im/group-request/unhandled-list").await, json!([]));
    check_spans(&app.database.url).await;
}

async fn with_approval_an_application_waits_for_a_manager(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = gather(&app).await;
    let mut watch = crew.connect().await;
    let text = "ü".repeat(255);
    let id = apply(&crew.outsider, crew.group, &text).await;
    let told = json!({"operatorUserId": crew.outsider.id, "requestId": id, "groupId": crew.group,
        "userId": crew.outsider.id, "inviterUserId": null, "applyContent": text, "addSource": 4,
        "userNickname": "outsider", "userAvatar": null});
    let [owner, admin, normal] = &mut watch.members;
    assert_eq!(only_push([owner, admin]).await, notice(1503, told));
    nothing_came([normal, &mut watch.outsider]).await;
    let row = request(&crew.owner, id).await;
    let stamp = row["updateTime"].clone();
    let expected = json!({"id": id, "groupId": crew.group, "userId": crew.outsider.id, "inviterUserId": null,
        "handleUserId": null, "handleResult": 0, "addSource": 4, "applyContent": text, "handleContent": null,
        "handleTime": null, "createTime": stamp, "updateTime": stamp, "userNickname": "outsider", "userAvatar": null,
        "inviterNickname": null, "inviterAvatar": null, "groupName": "us", "groupAvatar": null});
    assert_eq!(row, expected);
    assert_eq!(group(&crew.outsider, crew.group).await["joinStatus"], 1);
    assert_eq!(pulled_after(&crew.outsider, 0).await, [0; 0]);
}

async fn applying_again_renews_the_request(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = gather(&app).await;
    let id = apply(&crew.outsider, crew.group, "first").await;
    let mut before = request(&crew.owner, id).await;
    for verb in ["", "refuse", "agree"] {
        if !verb.is_empty() {
            assert_eq!(handle(&crew.admin, verb, id).await, 0);
        }
        if verb == "agree" {
            assert_eq!(kick(&crew.admin, crew.group, &[crew.outsider.id]).await, 0);
        }
        let mut socket = crew.owner.connect().await;
        let again = crew.outsider.post("/im/group-request/apply", json!({"groupId": crew.group})).await;
        assert_eq!(again, id);
        assert_eq!(only_push([&mut socket]).await.content_type, 1503);
        let after = request(&crew.owner, id).await;
        let mut expected = before.clone();
        for (key, value) in [("applyContent", Value::Null), ("addSource", Value::Null)] {
            expected[key] = value;
        }
        expected["updateTime"] = after["updateTime"].clone();
        assert_eq!(after, expected);
        assert!(after["updateTime"].as_i64() > before["updateTime"].as_i64());
        before = after;
    }
}

async fn an_invitation_by_a_normal_member_becomes_a_request(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = gather(&app).await;
    let other = app.user("other").await;
    for friend in [&crew.outsider, &other] {
        befriend(&crew.member, friend).await;
    }
    let own = apply(&crew.outsider, crew.group, "let me in").await;
    assert_eq!(handle(&crew.owner, "refuse", own).await, 0);
    let mut watch = crew.connect().await;
    let ids = [other.id, crew.outsider.id, crew.admin.id];
    assert_eq!(invite(&crew.member, crew.group, &ids).await, 0);
    let [owner, admin, normal] = &mut watch.members;
    nothing_came([normal, &mut watch.outsider]).await;
    let pushes = owner.drain().await;
    assert_eq!(pushes, admin.drain().await);
    assert_eq!(pushes.len(), 2, "{pushes:?}");
    let waiting = crew.owner.get("/im/group-request/unhandled-list").await;
    let waiting = waiting.as_array().unwrap();
    assert_eq!(waiting.len(), 2);
    for (user, name, text) in [(&crew.outsider, "outsider", json!("let me in")), (&other, "other", Value::Null)] {
        let row = waiting.iter().find(|row| row["userId"] == user.id).unwrap();
        let shown = ["inviterUserId", "addSource", "handleResult", "handleUserId", "handleTime", "inviterNickname"]
            .map(|key| row[key].clone());
        assert_eq!(shown, [json!(crew.member.id), json!(2), json!(0), Value::Null, Value::Null, json!("member")]);
        // The text of an earlier application is kept.
        assert_eq!(row["applyContent"], text);
        let told = json!({"operatorUserId": crew.member.id, "requestId": row["id"], "groupId": crew.group,
            "userId": user.id, "inviterUserId": crew.member.id, "applyContent": text, "addSource": 2,
            "userNickname": name, "userAvatar": null});
        assert!(pushes.contains(&notice(1503, told)), "{pushes:?}");
    }
    assert!(waiting.iter().any(|row| id_of(row) == own));
    assert_eq!(group(&crew.outsider, crew.group).await["joinStatus"], 1);
    // An own application takes an invitation's place.
    assert_eq!(apply(&crew.outsider, crew.group, "me").await, own);
    assert_eq!(request(&crew.owner, own).await["inviterUserId"], Value::Null);
    // Managers need no approval.
    befriend(&crew.admin, &other).await;
    assert_eq!(invite(&crew.admin, crew.group, &[other.id]).await, 0);
    assert_eq!(group(&other, crew.group).await["joinStatus"], 0);
}

async fn an_approved_applicant_sees_the_group_and_his_joining(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = gather(&app).await;
    let applicant = &crew.outsider;
    // The writer knows the members of before.
    say(&crew.owner, crew.group, "before").await;
    let id = apply(applicant, crew.group, "please").await;
    let mut watch = crew.connect().await;
    assert_eq!(handle(&crew.admin, "agree", id).await, 0);
    let approved = notice(
        1505,
        json!({"operatorUserId": crew.admin.id, "requestId": id, "groupId": crew.group, "userId": applicant.id}),
    );
    let content = json!({"operatorUserId": applicant.id, "entrantUserId": applicant.id, "addSource": 4});
    let [owner, admin, normal] = &mut watch.members;
    for socket in [owner, admin, &mut watch.outsider] {
        let pushes = socket.drain().await;
        assert_eq!(pushes.len(), 2, "{pushes:?}");
        assert_eq!(pushes[0], approved);
        let event = crate::support::groups::read_event(&pushes[1], &crew.admin, crew.group, 1510);
        assert_eq!(event.content, content);
    }
    assert_eq!(only_push([normal]).await.content_type, 1510);
    assert_eq!(pulled_after(applicant, 0).await, [1510]);
    assert_eq!(group(applicant, crew.group).await["joinStatus"], 0);
    let row = member(applicant, crew.group, applicant).await;
    assert_eq!((&row["role"], &row["status"]), (&json!(3), &json!(0)));
    let row = request(&crew.owner, id).await;
    assert_eq!((&row["handleResult"], &row["handleUserId"]), (&json!(1), &json!(crew.admin.id)));
    assert_eq!(row["handleTime"], row["updateTime"]);
    say(applicant, crew.group, "thank you").await;
    assert_eq!(only_push([&mut watch.outsider]).await.content_type, 101);
    check_spans(&app.database.url).await;
}

async fn an_approved_invitation_names_its_inviter(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = gather(&app).await;
    befriend(&crew.member, &crew.outsider).await;
    assert_eq!(invite(&crew.member, crew.group, &[crew.outsider.id]).await, 0);
    let id = id_of(&crew.owner.get("/im/group-request/unhandled-list").await[0]);
    let mut watch = crew.connect().await;
    assert_eq!(handle(&crew.owner, "agree", id).await, 0);
    let push = only_push([&mut watch.members[2]]).await;
    let event = crate::support::groups::read_event(&push, &crew.owner, crew.group, 1509);
    assert_eq!(event.content, json!({"operatorUserId": crew.member.id, "memberUserIds": [crew.outsider.id]}));
    let types: Vec<i64> = watch.outsider.drain().await.iter().map(|push| push.content_type).collect();
    assert_eq!(types, [1505, 1509]);
    assert_eq!(pulled_after(&crew.outsider, 0).await, [1509]);
}

async fn a_refused_applicant_is_told_and_stays_out(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = gather(&app).await;
    for (parameter, reason) in [("&handleContent=not%20you", json!("not you")), ("", Value::Null)] {
        let id = apply(&crew.outsider, crew.group, "please").await;
        let mut watch = crew.connect().await;
        crew.admin.put(&format!("/im/group-request/refuse?id={id}{parameter}")).await;
        let told = json!({"operatorUserId": crew.admin.id, "requestId": id, "groupId": crew.group,
            "userId": crew.outsider.id, "handleContent": reason});
        let [owner, admin, normal] = &mut watch.members;
        assert_eq!(only_push([owner, admin, &mut watch.outsider]).await, notice(1506, told));
        nothing_came([normal]).await;
        let row = request(&crew.outsider, id).await;
        assert_eq!((&row["handleResult"], &row["handleContent"]), (&json!(2), &reason));
    }
    assert_eq!(group(&crew.outsider, crew.group).await["joinStatus"], 1);
    assert_eq!(pulled_after(&crew.owner, 0).await, [1501, 1517, 1502]);
}

async fn requests_are_handled_in_the_order_of_the_rules(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = gather(&app).await;
    let id = apply(&crew.outsider, crew.group, "please").await;
    let mut watch = crew.connect().await;
    for verb in ["agree", "refuse"] {
        assert_eq!(handle(&crew.owner, verb, NOBODY).await, NOT_FOUND);
        assert_eq!(handle(&crew.outsider, verb, id).await, NOT_MEMBER);
        assert_eq!(handle(&crew.member, verb, id).await, NOT_TO_ME);
    }
    watch.nothing().await;
    assert_eq!(handle(&crew.admin, "refuse", id).await, 0);
    watch.skip().await;
    let handled = request(&crew.owner, id).await;
    for person in [&crew.owner, &crew.member, &crew.outsider] {
        for verb in ["agree", "refuse"] {
            assert_eq!(handle(person, verb, id).await, REQUEST_HANDLED);
        }
    }
    watch.nothing().await;
    assert_eq!(request(&crew.owner, id).await, handled);
}

async fn agreeing_to_a_member_closes_the_request(backend: Backend) {
    let mut config = Config::default();
    config.group.max_member = 4;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let crew = gather(&app).await;
    let id = apply(&crew.outsider, crew.group, "please").await;
    assert_eq!(invite(&crew.owner, crew.group, &[crew.outsider.id]).await, 0);
    assert_eq!(request(&crew.owner, id).await["handleResult"], 0);
    let mut watch = crew.connect().await;
    // The group is full; that he is a member comes first.
    assert_eq!(handle(&crew.admin, "agree", id).await, ALREADY_MEMBER);
    let told = json!({"operatorUserId": crew.admin.id, "requestId": id, "groupId": crew.group,
        "userId": crew.outsider.id});
    let [owner, admin, normal] = &mut watch.members;
    assert_eq!(only_push([owner, admin, &mut watch.outsider]).await, notice(1505, told));
    nothing_came([normal]).await;
    assert_eq!(request(&crew.owner, id).await["handleResult"], 1);
    assert_eq!(handle(&crew.admin, "agree", id).await, REQUEST_HANDLED);
    assert_eq!(crew.owner.get("/im/group-request/unhandled-list").await, json!([]));
    check_spans(&app.database.url).await;
}

async fn a_full_group_takes_nobody(backend: Backend) {
    let mut config = Config::default();
    config.group.max_member = 3;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let crew = gather(&app).await;
    let id = apply(&crew.outsider, crew.group, "please").await;
    let mut watch = crew.connect().await;
    assert_eq!(handle(&crew.owner, "agree", id).await, MEMBER_LIMIT);
    watch.nothing().await;
    assert_eq!(request(&crew.owner, id).await["handleResult"], 0, "it still waits");
    assert_eq!(quit(&crew.member, crew.group).await, 0);
    assert_eq!(handle(&crew.owner, "agree", id).await, 0);
}

async fn requests_are_seen_by_those_whom_they_concern(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = gather(&app).await;
    let (invited, bystander) = (app.user("invited").await, app.user("bystander").await);
    befriend(&crew.member, &invited).await;
    let own = apply(&crew.outsider, crew.group, "please").await;
    assert_eq!(invite(&crew.member, crew.group, &[invited.id]).await, 0);
    let list = crew.owner.get("/im/group-request/unhandled-list").await;
    let invitation = id_of(&list[0]);
    // Newest change first.
    assert_eq!((invitation != own, id_of(&list[1])), (true, own));
    let people = [&crew.owner, &crew.admin, &crew.member, &crew.outsider, &invited, &bystander];
    for (id, expected) in
        [(own, [true, true, false, true, false, false]), (invitation, [true, true, true, false, true, false])]
    {
        for (person, expected) in people.iter().zip(expected) {
            let seen = request(person, id).await;
            assert_eq!(!seen.is_null(), expected, "{id}, by {}", person.external_id);
        }
    }
    assert_eq!(request(&crew.owner, NOBODY).await, Value::Null);
    assert_eq!(handle(&crew.owner, "refuse", own).await, 0);
    let by_group = format!("/im/group-request/list-by-group?groupId={}", crew.group);
    for manager in [&crew.owner, &crew.admin] {
        let ids = |list: Value| list.as_array().unwrap().iter().map(id_of).collect::<Vec<_>>();
        assert_eq!(ids(manager.get(&by_group).await), [own, invitation]);
        assert_eq!(ids(manager.get("/im/group-request/unhandled-list").await), [invitation]);
        let pulled = pull_states(manager, "/im/group-request", None, 1).await;
        assert_eq!(pulled.iter().map(id_of).collect::<Vec<_>>(), [invitation, own]);
    }
    for person in [&crew.member, &crew.outsider, &invited, &bystander] {
        assert_eq!(person.get("/im/group-request/unhandled-list").await, json!([]));
        assert_eq!(pull_states(person, "/im/group-request", None, 10).await, [] as [Value; 0]);
    }
    assert_eq!(code(&crew.member, "GET", &by_group, Value::Null).await, NOT_TO_ME);
    assert_eq!(code(&bystander, "GET", &by_group, Value::Null).await, NOT_MEMBER);
}
