//! Friend requests: applying, agreeing and refusing, and the notifications about them.

use futures_util::future::join_all;
use nudge::config::Config;
use serde_json::{Value, json};

use crate::support::app::{API_KEY, Person, Push, Setup, TestApp};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{
    FRIEND, REQUEST, apply, block, chat_line, code_of, friend, nothing_came, notice, only_push, position, pull_states,
    request, set, unfriend,
};

on_every_database! {
    both_sides_see_a_request_and_the_receiver_is_told,
    applying_again_resets_the_same_row_from_any_state,
    agreeing_makes_both_friends_with_a_line_in_the_chat,
    refusing_tells_the_applicant_and_changes_no_relation,
    only_the_receiver_handles_a_request_and_only_once,
    of_concurrent_answers_exactly_one_wins,
    an_old_request_of_the_other_direction_can_still_be_agreed_to,
    applications_are_refused_by_rule,
    whom_the_target_kept_as_a_friend_comes_back_silently,
    with_auto_accept_an_application_makes_friends,
}

const USER_NOT_FOUND: i64 = 1_002_003_003;
const USER_DISABLED: i64 = 1_002_003_006;
const ADD_SELF: i64 = 1_040_600_002;
const NOT_FOUND: i64 = 1_040_610_001;
const HANDLED: i64 = 1_040_610_002;
const NOT_TO_ME: i64 = 1_040_610_003;
const ALREADY_FRIEND: i64 = 1_040_610_005;
const APPLY_BLOCKED: i64 = 1_040_610_006;

/// Agrees to a request or refuses it; the code of the answer.
async fn answer(person: &Person, verb: &str, id: i64) -> i64 {
    code_of(&person.call("PUT", &format!("/im/friend-request/{verb}?id={id}"), None).await)
}

async fn both_sides_see_a_request_and_the_receiver_is_told(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob, carol) = (app.user("alice").await, app.user("bob").await, app.user("carol").await);
    let mut own = alice.connect().await;
    let (mut phone, mut laptop) = (bob.connect().await, bob.connect().await);
    let text = "ä".repeat(255);
    let application = json!({"toUserId": bob.id, "applyContent": text, "displayName": "Bobby", "addSource": "2"});
    let id = alice.post("/im/friend-request/apply", application).await.as_i64().unwrap();

    let told = json!({"operatorUserId": alice.id, "friendUserId": alice.id, "requestId": id, "applyContent": text,
        "addSource": 2, "fromNickname": "alice", "fromAvatar": null});
    assert_eq!(only_push([&mut phone, &mut laptop]).await, notice(1203, told));
    nothing_came([&mut own]).await;

    let row = request(&alice, id).await;
    let stamp = row["updateTime"].clone();
    // The remark is not shown, not even to the applicant.
    let expected = json!({"id": id, "fromUserId": alice.id, "toUserId": bob.id, "handleResult": 0,
        "applyContent": text, "handleContent": null, "addSource": 2, "handleTime": null, "createTime": stamp,
        "updateTime": stamp, "fromNickname": "alice", "fromAvatar": null, "toNickname": "bob", "toAvatar": null});
    assert_eq!(row, expected);
    assert_eq!(request(&bob, id).await, row);
    assert_eq!((request(&carol, id).await, request(&alice, id + 1).await), (Value::Null, Value::Null));
    // No relation yet.
    assert_eq!((friend(&alice, &bob).await, friend(&bob, &alice).await), (Value::Null, Value::Null));
}

async fn applying_again_resets_the_same_row_from_any_state(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let mut bobs = bob.connect().await;
    let application = json!({"toUserId": bob.id, "applyContent": "hello", "displayName": "B", "addSource": 3});
    let id = alice.post("/im/friend-request/apply", application).await.as_i64().unwrap();
    let first = request(&bob, id).await;
    let mut newest = first.clone();
    for state in ["unhandled", "refused", "agreed and parted"] {
        match state {
            "refused" => {
                bob.put(&format!("/im/friend-request/refuse?id={id}&handleContent=no")).await;
                let refused = request(&alice, id).await;
                assert_eq!((&refused["handleResult"], &refused["handleContent"]), (&json!(2), &json!("no")));
                assert_eq!(refused["handleTime"], refused["updateTime"]);
            }
            "agreed and parted" => {
                bob.put(&format!("/im/friend-request/agree?id={id}")).await;
                unfriend(&alice, &bob).await;
                unfriend(&bob, &alice).await;
                assert_eq!(request(&alice, id).await["handleResult"], 1);
            }
            _ => {}
        }
        bobs.drain().await;
        assert_eq!(apply(&alice, &bob).await, id);
        let told = only_push([&mut bobs]).await;
        assert_eq!((told.content_type, &told.payload["requestId"]), (1203, &json!(id)), "{state}");
        let row = request(&bob, id).await;
        assert!(position(&row) > position(&newest), "{state}");
        let mut expected = first.clone();
        (expected["applyContent"], expected["addSource"]) = (Value::Null, Value::Null);
        expected["updateTime"] = row["updateTime"].clone();
        assert_eq!(row, expected, "{state}");
        newest = row;
    }
    // The remark of the first application is overwritten, too.
    bob.put(&format!("/im/friend-request/agree?id={id}")).await;
    assert_eq!(friend(&alice, &bob).await["displayName"], "");
}

async fn agreeing_makes_both_friends_with_a_line_in_the_chat(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let id = apply(&alice, &bob).await;
    let mut alices = [alice.connect().await, alice.connect().await];
    let mut bobs = [bob.connect().await, bob.connect().await];
    assert_eq!(answer(&bob, "agree", id).await, 0);

    let line = only_push(bobs.each_mut()).await;
    let content = json!({"operatorUserId": alice.id, "friendUserId": bob.id});
    assert_eq!(chat_line(&line, &alice, &bob, 1204), content);
    let approved = notice(1201, json!({"operatorUserId": bob.id, "friendUserId": bob.id, "requestId": id}));
    for socket in &mut alices {
        assert_eq!(socket.drain().await, [line.clone(), approved.clone()]);
    }
    for person in [&alice, &bob] {
        assert_eq!(person.pull_all(100).await, std::slice::from_ref(&line.payload));
    }
    let row = request(&alice, id).await;
    assert_eq!((&row["handleResult"], &row["handleTime"]), (&json!(1), &row["updateTime"]));
    for (owner, other) in [(&alice, &bob), (&bob, &alice)] {
        assert_eq!(friend(owner, other).await["status"], 0);
        assert_eq!(code_of(&owner.send_as(other, "hello", "hello").await), 0);
    }
}

async fn refusing_tells_the_applicant_and_changes_no_relation(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let (mut phone, mut laptop, mut bobs) = (alice.connect().await, alice.connect().await, bob.connect().await);
    for (parameter, reason) in [("&handleContent=not%20you", json!("not you")), ("", Value::Null)] {
        let id = apply(&alice, &bob).await;
        bobs.drain().await;
        bob.put(&format!("/im/friend-request/refuse?id={id}{parameter}")).await;
        let told = json!({"operatorUserId": bob.id, "friendUserId": bob.id, "requestId": id, "handleContent": reason});
        assert_eq!(only_push([&mut phone, &mut laptop]).await, notice(1202, told));
        let row = request(&alice, id).await;
        assert_eq!((&row["handleResult"], &row["handleContent"]), (&json!(2), &reason));
        assert_eq!(row["handleTime"], row["updateTime"]);
    }
    nothing_came([&mut bobs]).await;
    for (owner, other) in [(&alice, &bob), (&bob, &alice)] {
        assert_eq!(friend(owner, other).await, Value::Null);
        assert_eq!(owner.pull_all(100).await, [] as [Value; 0]);
    }
}

async fn only_the_receiver_handles_a_request_and_only_once(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob, carol) = (app.user("alice").await, app.user("bob").await, app.user("carol").await);
    for first in ["agree", "refuse"] {
        let id = apply(&alice, &bob).await;
        let mut watch = [alice.connect().await, bob.connect().await, carol.connect().await];
        for verb in ["agree", "refuse"] {
            assert_eq!(answer(&bob, verb, id + 1).await, NOT_FOUND);
            assert_eq!((answer(&alice, verb, id).await, answer(&carol, verb, id).await), (NOT_TO_ME, NOT_TO_ME));
        }
        nothing_came(watch.each_mut()).await;
        assert_eq!(answer(&bob, first, id).await, 0);
        let handled = request(&alice, id).await;
        for socket in &mut watch {
            socket.drain().await;
        }
        for verb in ["agree", "refuse"] {
            assert_eq!((answer(&bob, verb, id).await, answer(&carol, verb, id).await), (HANDLED, NOT_TO_ME));
        }
        nothing_came(watch.each_mut()).await;
        assert_eq!(request(&alice, id).await, handled);
        unfriend(&alice, &bob).await;
        unfriend(&bob, &alice).await;
    }
}

/// Field test B6.
async fn of_concurrent_answers_exactly_one_wins(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let tablet = bob.sign_in_again().await;
    let mut phone = alice.connect().await;
    for round in 0..5 {
        let id = apply(&alice, &bob).await;
        let verbs = ["agree", "refuse", "refuse", "agree", "agree", "refuse"];
        let calls = verbs.iter().enumerate().map(|(index, verb)| {
            let device = if (index + round) % 2 == 0 { &bob } else { &tablet };
            answer(device, verb, id)
        });
        let codes = join_all(calls).await;
        let winners: Vec<&str> =
            codes.iter().zip(verbs).filter(|(code, _)| **code == 0).map(|(_, verb)| verb).collect();
        assert_eq!(winners.len(), 1, "{codes:?}");
        assert!(codes.iter().all(|code| [0, HANDLED].contains(code)), "{codes:?}");
        let told: Vec<i64> = phone.drain().await.iter().map(|push| push.content_type).collect();
        let is_agreed = winners[0] == "agree";
        assert_eq!(told, if is_agreed { vec![1204, 1201] } else { vec![1202] });
        assert_eq!(request(&alice, id).await["handleResult"], if is_agreed { 1 } else { 2 });
        unfriend(&alice, &bob).await;
        unfriend(&bob, &alice).await;
        phone.drain().await;
    }
}

async fn an_old_request_of_the_other_direction_can_still_be_agreed_to(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let (one, other) = (apply(&alice, &bob).await, apply(&bob, &alice).await);
    assert_ne!(one, other);
    assert_eq!(answer(&bob, "agree", one).await, 0);
    set(&alice, &bob, json!({"displayName": "Bobby", "pinned": true})).await;
    block(&bob, &alice).await;
    let rows = (friend(&alice, &bob).await, friend(&bob, &alice).await);
    let (mut alices, mut bobs) = (alice.connect().await, bob.connect().await);
    assert_eq!(answer(&alice, "agree", other).await, 0);

    // The relation is as it was; the line and the notifications come all the same.
    assert_eq!((friend(&alice, &bob).await, friend(&bob, &alice).await), rows);
    let line = only_push([&mut alices]).await;
    assert_eq!(chat_line(&line, &bob, &alice, 1204), json!({"operatorUserId": bob.id, "friendUserId": alice.id}));
    let told: Vec<i64> = bobs.drain().await.iter().map(|push| push.content_type).collect();
    assert_eq!(told, [1204, 1201]);
    assert_eq!(alice.pull_all(100).await.len(), 2);
}

async fn applications_are_refused_by_rule(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let disabled = app.user("dora").await;
    let status = json!({"externalId": disabled.external_id, "enabled": false});
    let call = app.http.put(format!("{}/api/v1/users/status", app.base)).header("x-api-key", API_KEY);
    call.json(&status).send().await.unwrap();
    let mut bobs = bob.connect().await;
    let code =
        async |to: i64| code_of(&alice.call("POST", "/im/friend-request/apply", Some(json!({"toUserId": to}))).await);
    assert_eq!((code(alice.id).await, code(9_999_999).await), (ADD_SELF, USER_NOT_FOUND));
    assert_eq!((code(disabled.id).await, code(bob.id).await), (USER_DISABLED, ALREADY_FRIEND));
    block(&bob, &alice).await;
    bobs.drain().await;
    assert_eq!(code(bob.id).await, APPLY_BLOCKED);
    unfriend(&alice, &bob).await;
    assert_eq!(code(bob.id).await, APPLY_BLOCKED);
    nothing_came([&mut bobs]).await;
    // A block on a row that its owner deleted does not count.
    unfriend(&bob, &alice).await;
    assert_eq!(code(bob.id).await, 0);
}

async fn whom_the_target_kept_as_a_friend_comes_back_silently(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    block(&alice, &bob).await;
    unfriend(&alice, &bob).await;
    let theirs = friend(&bob, &alice).await;
    let requests = pull_states(&alice, REQUEST, None, 100).await;
    let (mut phone, mut laptop, mut bobs) = (alice.connect().await, alice.connect().await, bob.connect().await);
    let application = json!({"toUserId": bob.id, "displayName": "again", "addSource": 1});
    assert_eq!(alice.post("/im/friend-request/apply", application).await, Value::Null);

    let line = only_push([&mut phone, &mut laptop]).await;
    assert_eq!(line.payload["id"], Value::Null);
    assert_eq!(chat_line(&line, &alice, &bob, 1204), json!({"operatorUserId": bob.id, "friendUserId": bob.id}));
    let row = friend(&alice, &bob).await;
    let shown = ["status", "blocked", "displayName", "addSource", "deleteTime"].map(|key| &row[key]);
    assert_eq!(shown, [&json!(0), &json!(false), &json!("again"), &json!(1), &Value::Null]);
    assert_eq!(row["addTime"], row["updateTime"]);
    // The target hears and sees nothing, and nothing is stored but the row.
    nothing_came([&mut bobs]).await;
    assert_eq!(friend(&bob, &alice).await, theirs);
    assert_eq!(pull_states(&alice, REQUEST, None, 100).await, requests);
    assert_eq!(alice.pull_all(100).await.len(), 1);
}

async fn with_auto_accept_an_application_makes_friends(backend: Backend) {
    let mut config = Config::default();
    config.friend.auto_accept = true;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let (mut alices, mut bobs) = (alice.connect().await, bob.connect().await);
    let id = apply(&alice, &bob).await;
    assert_eq!(request(&alice, id).await["handleResult"], 1);
    for (owner, other) in [(&alice, &bob), (&bob, &alice)] {
        assert_eq!(pull_states(owner, FRIEND, None, 100).await, [friend(owner, other).await]);
    }
    let types = |pushes: Vec<Push>| pushes.iter().map(|push| push.content_type).collect::<Vec<_>>();
    assert_eq!((types(bobs.drain().await), types(alices.drain().await)), (vec![1203, 1204], vec![1204, 1201]));
}
