//! Friends: the rows and their life, remarks, blocks, deletion, pulls, and the notifications about them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, befriend, ids_of, random_id};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{
    FRIEND, block, chat_line, check_forms, code_of, friend, nothing_came, notice, only_push, position, pull_states,
    set, unfriend,
};

on_every_database! {
    each_side_of_a_friendship_has_a_row_of_its_own,
    a_deleted_row_is_kept_and_becoming_friends_again_starts_it_anew,
    a_deletion_is_told_to_my_own_devices_only,
    deleting_again_or_deleting_a_stranger_does_nothing,
    an_update_changes_only_what_it_names_and_only_my_row,
    an_update_needs_an_active_friend_unless_it_changes_nothing,
    blocking_and_unblocking_are_told_to_my_own_devices_only,
    blocks_need_an_active_friend,
    a_block_and_a_deletion_hold_from_the_next_send_on,
    the_list_holds_every_row_newest_first,
    a_pull_gives_each_row_once_in_order_of_its_last_change,
    a_client_that_goes_back_five_seconds_converges,
    friend_calls_check_their_form,
}

const NOT_FRIEND: i64 = 1_040_600_001;
const NOT_BLOCKED: i64 = 1_040_600_003;
const BLOCKED_BY_PEER: i64 = 1_040_600_004;

async fn each_side_of_a_friendship_has_a_row_of_its_own(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("Alice 王").await, app.user("吕布").await);
    assert_eq!(friend(&alice, &bob).await, Value::Null);
    let application = json!({"toUserId": bob.id, "displayName": "小吕", "addSource": 4});
    let request = alice.post("/im/friend-request/apply", application).await;
    bob.put(&format!("/im/friend-request/agree?id={request}")).await;

    let mut mine = friend(&alice, &bob).await;
    let stamp = mine["updateTime"].clone();
    assert!(stamp.as_i64() > Some(0) && mine["id"].take().as_i64() > Some(0), "{mine}");
    let expected = json!({"id": null, "friendUserId": bob.id, "silent": false, "displayName": "小吕",
        "displayNamePinyin": "xiao lv", "addSource": 4, "pinned": false, "blocked": false, "status": 0,
        "addTime": stamp, "deleteTime": null, "updateTime": stamp, "nickname": "吕布", "nicknamePinyin": "lv bu",
        "avatar": null});
    assert_eq!(mine, expected);
    let theirs = friend(&bob, &alice).await;
    let shown =
        ["friendUserId", "displayName", "displayNamePinyin", "addSource", "nicknamePinyin"].map(|key| &theirs[key]);
    assert_eq!(shown, [&json!(alice.id), &json!(""), &Value::Null, &json!(4), &json!("Alice wang")]);
}

async fn a_deleted_row_is_kept_and_becoming_friends_again_starts_it_anew(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    set(&alice, &bob, json!({"silent": true, "pinned": true, "displayName": "Bobby"})).await;
    block(&alice, &bob).await;
    let active = friend(&alice, &bob).await;
    let theirs = friend(&bob, &alice).await;
    unfriend(&alice, &bob).await;

    // Status and times change, everything else stays; the other side's row is untouched.
    let deleted = friend(&alice, &bob).await;
    let stamp = deleted["updateTime"].clone();
    assert!(position(&deleted) > position(&active));
    let mut expected = active.clone();
    (expected["status"], expected["deleteTime"], expected["updateTime"]) = (json!(1), stamp.clone(), stamp);
    assert_eq!(deleted, expected);
    assert_eq!(friend(&bob, &alice).await, theirs);

    // Both sides delete, so that a request is needed. The row's old attributes are gone with it.
    unfriend(&bob, &alice).await;
    befriend(&alice, &bob).await;
    let again = friend(&alice, &bob).await;
    let stamp = again["updateTime"].clone();
    assert!(position(&again) > position(&deleted));
    let mut expected = active;
    for (key, value) in [("silent", json!(false)), ("pinned", json!(false)), ("blocked", json!(false))] {
        expected[key] = value;
    }
    for (key, value) in [("displayName", json!("")), ("displayNamePinyin", Value::Null), ("addSource", Value::Null)] {
        expected[key] = value;
    }
    (expected["addTime"], expected["updateTime"]) = (stamp.clone(), stamp);
    assert_eq!(again, expected);
}

async fn a_deletion_is_told_to_my_own_devices_only(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (mut phone, mut laptop, mut bobs) = (alice.connect().await, alice.connect().await, bob.connect().await);
    for (parameter, clear) in [("&clear=true", true), ("&clear=false", false), ("", false), ("&clear=", false)] {
        alice.delete(&format!("/im/friend/delete?friendUserId={}{parameter}", bob.id)).await;
        let push = only_push([&mut phone, &mut laptop]).await;
        assert_eq!(push.payload["id"], Value::Null);
        let content = chat_line(&push, &alice, &bob, 1205);
        assert_eq!(content, json!({"operatorUserId": alice.id, "friendUserId": bob.id, "clear": clear}));
        nothing_came([&mut bobs]).await;

        // Bob still has Alice as a friend, so she comes back without being asked.
        assert_eq!(alice.post("/im/friend-request/apply", json!({"toUserId": bob.id})).await, Value::Null);
        only_push([&mut phone, &mut laptop]).await;
    }
    // None of it is a message: only the line of the first agreement is stored.
    assert_eq!(alice.pull_all(100).await.len(), 1);
}

async fn deleting_again_or_deleting_a_stranger_does_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("carol").await;
    unfriend(&alice, &bob).await;
    let deleted = friend(&alice, &bob).await;
    let mut phone = alice.connect().await;
    for other in [&bob, &stranger, &alice] {
        unfriend(&alice, other).await;
    }
    nothing_came([&mut phone]).await;
    assert_eq!(friend(&alice, &bob).await, deleted);
    assert_eq!(pull_states(&alice, FRIEND, None, 100).await, [deleted]);
}

async fn an_update_changes_only_what_it_names_and_only_my_row(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (mut phone, mut laptop, mut bobs) = (alice.connect().await, alice.connect().await, bob.connect().await);
    let theirs = friend(&bob, &alice).await;
    let mut row = friend(&alice, &bob).await;
    // The last one says again what is so already: it is written and told like any other.
    let sixteen = "ä".repeat(16);
    let changes = [
        json!({"displayName": sixteen}),
        json!({"silent": true}),
        json!({"pinned": true, "silent": null}),
        json!({"displayName": "", "silent": false, "pinned": false}),
        json!({"displayName": "", "silent": false, "pinned": false}),
    ];
    for change in changes {
        set(&alice, &bob, change.clone()).await;
        let mut payload = json!({"operatorUserId": alice.id, "friendUserId": bob.id,
            "displayName": null, "silent": null, "pinned": null});
        for (key, value) in change.as_object().unwrap() {
            payload[key] = value.clone();
            if !value.is_null() {
                row[key] = value.clone();
            }
        }
        assert_eq!(only_push([&mut phone, &mut laptop]).await, notice(1210, payload));
        let changed = friend(&alice, &bob).await;
        assert!(position(&changed) > position(&row), "{changed}");
        row["updateTime"] = changed["updateTime"].clone();
        row["displayNamePinyin"] = Some(row["displayName"].clone()).filter(|name| name != "").unwrap_or(Value::Null);
        assert_eq!(changed, row);
    }
    nothing_came([&mut bobs]).await;
    assert_eq!(friend(&bob, &alice).await, theirs);
}

async fn an_update_needs_an_active_friend_unless_it_changes_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("carol").await;
    unfriend(&alice, &bob).await;
    let row = friend(&alice, &bob).await;
    let mut phone = alice.connect().await;
    for other in [&bob, &stranger] {
        let update = async |body: Value| code_of(&alice.call("PUT", "/im/friend/update", Some(body)).await);
        assert_eq!(update(json!({"friendUserId": other.id, "pinned": true})).await, NOT_FRIEND);
        assert_eq!(update(json!({"friendUserId": other.id, "pinned": null})).await, 0);
        assert_eq!(update(json!({"friendUserId": other.id})).await, 0);
    }
    nothing_came([&mut phone]).await;
    assert_eq!(friend(&alice, &bob).await, row);
}

async fn blocking_and_unblocking_are_told_to_my_own_devices_only(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (mut phone, mut laptop, mut bobs) = (alice.connect().await, alice.connect().await, bob.connect().await);
    let (mut row, theirs) = (friend(&alice, &bob).await, friend(&bob, &alice).await);
    let both = json!({"operatorUserId": alice.id, "friendUserId": bob.id});
    for (verb, blocked, content_type) in [("block", true, 1207), ("unblock", false, 1208), ("block", true, 1207)] {
        alice.put(&format!("/im/friend/{verb}?friendUserId={}", bob.id)).await;
        assert_eq!(only_push([&mut phone, &mut laptop]).await, notice(content_type, both.clone()));
        let changed = friend(&alice, &bob).await;
        assert!(position(&changed) > position(&row));
        (row["blocked"], row["updateTime"]) = (json!(blocked), changed["updateTime"].clone());
        assert_eq!(changed, row);
    }
    // Again: a success without a change.
    block(&alice, &bob).await;
    nothing_came([&mut phone, &mut laptop, &mut bobs]).await;
    assert_eq!((friend(&alice, &bob).await, friend(&bob, &alice).await), (row, theirs));
}

async fn blocks_need_an_active_friend(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("carol").await;
    let code = async |verb: &str, other: &Person| {
        code_of(&alice.call("PUT", &format!("/im/friend/{verb}?friendUserId={}", other.id), None).await)
    };
    assert_eq!(code("unblock", &bob).await, NOT_BLOCKED);
    block(&alice, &bob).await;
    unfriend(&alice, &bob).await;
    for other in [&bob, &stranger] {
        assert_eq!((code("block", other).await, code("unblock", other).await), (NOT_FRIEND, NOT_FRIEND));
    }
}

/// Field test F5.
async fn a_block_and_a_deletion_hold_from_the_next_send_on(backend: Backend) {
    let clock = ManualClock::at(1_800_000_000_000);
    let app = TestApp::start_with(backend, Setup { clock: Some(clock.clock()), ..Setup::default() }).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    // Typing is told at most once a second, so time goes on before each.
    let codes = async |from: &Person, to: &Person| {
        clock.jump(2_000);
        let typing = from.call("PUT", &format!("/im/message/private/typing?receiverId={}", to.id), None).await;
        let sent = from.send_as(to, &random_id(), "hello").await;
        assert_eq!(code_of(&sent), code_of(&typing));
        code_of(&sent)
    };
    assert_eq!((codes(&alice, &bob).await, codes(&bob, &alice).await), (0, 0));
    for _ in 0..3 {
        block(&alice, &bob).await;
        assert_eq!((codes(&bob, &alice).await, codes(&alice, &bob).await), (BLOCKED_BY_PEER, 0));
        alice.put(&format!("/im/friend/unblock?friendUserId={}", bob.id)).await;
        assert_eq!((codes(&bob, &alice).await, codes(&alice, &bob).await), (0, 0));
        unfriend(&alice, &bob).await;
        assert_eq!((codes(&bob, &alice).await, codes(&alice, &bob).await), (NOT_FRIEND, NOT_FRIEND));
        alice.post("/im/friend-request/apply", json!({"toUserId": bob.id})).await;
        assert_eq!((codes(&bob, &alice).await, codes(&alice, &bob).await), (0, 0));
    }
    // A block that the owner's deletion hides stays hidden.
    block(&alice, &bob).await;
    unfriend(&alice, &bob).await;
    assert_eq!((codes(&bob, &alice).await, codes(&alice, &bob).await), (NOT_FRIEND, NOT_FRIEND));
}

/// Alice with friends, of whom some rows were changed since.
async fn alice_and_friends(app: &TestApp, count: usize) -> (Person, Vec<Person>) {
    let alice = app.user("alice").await;
    let mut friends = Vec::new();
    for number in 0..count {
        let other = app.user(&format!("friend {number}")).await;
        befriend(&other, &alice).await;
        friends.push(other);
    }
    set(&alice, &friends[1], json!({"pinned": true})).await;
    unfriend(&alice, &friends[0]).await;
    (alice, friends)
}

async fn the_list_holds_every_row_newest_first(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, friends) = alice_and_friends(&app, 4).await;
    let list = alice.get("/im/friend/list").await;
    let list = list.as_array().unwrap();
    let mut expected = Vec::new();
    for other in friends.iter().rev() {
        expected.push(friend(&alice, other).await);
    }
    assert_eq!(list, &expected);
    assert_eq!(list.iter().map(|row| row["status"].as_i64().unwrap()).collect::<Vec<_>>(), [0, 0, 0, 1]);
    assert!(ids_of(list).is_sorted_by(|left, right| left > right));
}

async fn a_pull_gives_each_row_once_in_order_of_its_last_change(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, friends) = alice_and_friends(&app, 5).await;
    let all = pull_states(&alice, FRIEND, None, 200).await;
    let order: Vec<i64> = all.iter().map(|row| row["friendUserId"].as_i64().unwrap()).collect();
    assert_eq!(order, [2, 3, 4, 1, 0].map(|index: usize| friends[index].id));
    assert!(all.is_sorted_by_key(position));
    for limit in 1..=6 {
        assert_eq!(pull_states(&alice, FRIEND, None, limit).await, all, "limit {limit}");
    }
    // Half a cursor is none; a cursor above everything is the end.
    let (time, id) = position(&all[2]);
    for half in [format!("lastUpdateTime={time}"), format!("lastId={id}"), format!("lastUpdateTime={time}&lastId=")] {
        assert_eq!(alice.get(&format!("/im/friend/pull?limit=3&{half}")).await, json!(all[..3]), "{half}");
    }
    assert_eq!(pull_states(&alice, FRIEND, Some((time, id)), 2).await, all[3..]);
    assert_eq!(pull_states(&alice, FRIEND, Some((i64::MAX, 0)), 2).await, [] as [Value; 0]);

    // A change moves its row to the end, where it is seen once more.
    let end = position(&all[4]);
    block(&alice, &friends[3]).await;
    assert_eq!(pull_states(&alice, FRIEND, Some(end), 2).await, [friend(&alice, &friends[3]).await]);
    assert_eq!(pull_states(&alice, FRIEND, None, 200).await.len(), 5);
}

async fn a_client_that_goes_back_five_seconds_converges(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, friends) = alice_and_friends(&app, 3).await;
    let mut known: HashMap<i64, Value> = HashMap::new();
    let mut stored = None;
    for round in 0..4 {
        for row in pull_states(&alice, FRIEND, stored.map(|time: i64| ((time - 5_000).max(0), 0)), 2).await {
            stored = stored.max(row["updateTime"].as_i64());
            known.insert(row["id"].as_i64().unwrap(), row);
        }
        let list = alice.get("/im/friend/list").await;
        let list = list.as_array().unwrap();
        assert_eq!(known.len(), list.len());
        assert!(list.iter().all(|row| known[&row["id"].as_i64().unwrap()] == *row), "round {round}");
        set(&alice, &friends[1], json!({"silent": round % 2 == 0})).await;
        unfriend(&alice, &friends[2]).await;
    }
}

async fn friend_calls_check_their_form(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let row = friend(&alice, &bob).await;
    let none = Value::Null;
    let calls = [
        ("GET", "/im/friend/list", none.clone()),
        ("GET", "/im/friend/pull?limit=10", none.clone()),
        ("GET", "/im/friend/get?friendUserId=1", none.clone()),
        ("DELETE", "/im/friend/delete?friendUserId=1", none.clone()),
        ("PUT", "/im/friend/update", json!({"friendUserId": bob.id, "silent": true})),
        ("PUT", "/im/friend/block?friendUserId=1", none.clone()),
        ("PUT", "/im/friend/unblock?friendUserId=1", none.clone()),
    ];
    let malformed = [
        ("GET", "/im/friend/pull", none.clone()),
        ("GET", "/im/friend/pull?limit=0", none.clone()),
        ("GET", "/im/friend/pull?limit=201", none.clone()),
        ("GET", "/im/friend/pull?limit=x", none.clone()),
        ("GET", "/im/friend/pull?limit=10&lastUpdateTime=x&lastId=1", none.clone()),
        ("GET", "/im/friend/get", none.clone()),
        ("GET", "/im/friend/get?friendUserId=", none.clone()),
        ("DELETE", "/im/friend/delete", none.clone()),
        ("DELETE", "/im/friend/delete?friendUserId=1&clear=maybe", none.clone()),
        ("PUT", "/im/friend/update", none.clone()),
        ("PUT", "/im/friend/update", json!({"silent": true})),
        ("PUT", "/im/friend/update", json!({"friendUserId": bob.id, "silent": "loud"})),
        ("PUT", "/im/friend/update", json!({"friendUserId": bob.id, "displayName": "ä".repeat(17)})),
        ("PUT", "/im/friend/block", none.clone()),
        ("PUT", "/im/friend/unblock?friendUserId=x", none.clone()),
    ];
    check_forms(&alice, &calls, &malformed).await;
    assert_eq!(friend(&alice, &bob).await, row);
}
