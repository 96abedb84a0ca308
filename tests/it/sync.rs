//! `POST /im/sync`: the next page of every stream in one call (`design.md` section 12).

use nudge::config::{AuthConfig, Config};
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, befriend, data, id_of, ids_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{FRIEND, REQUEST, code_of, pull_states};

on_every_database! {
    a_new_account_gets_empty_pages,
    a_loop_over_sync_gives_what_the_single_pulls_give,
    a_page_is_100_rows_unless_the_request_says_otherwise,
    sizes_and_cursors_that_make_no_sense_are_refused,
    the_group_list_comes_after_each_kind_of_change_and_only_then,
    a_cut_by_the_window_is_told_where_it_hides_rows,
}

const DAY: i64 = 86_400_000;
const STATES: [&str; 4] = ["friend", "friendRequest", "groupRequest", "read"];
const MESSAGES: [&str; 3] = ["private", "group", "channel"];

async fn sync(person: &Person, body: Value) -> Value {
    person.post("/im/sync", body).await
}

/// The cursors that an answer gives, as the next request.
fn next(answer: &Value) -> Value {
    let mut body = json!({});
    for stream in MESSAGES {
        body[format!("{stream}MinId")] = answer[stream]["minId"].clone();
    }
    for stream in STATES {
        let state = &answer[stream];
        if state["lastId"] != Value::Null {
            body[stream] = json!({"lastUpdateTime": state["lastUpdateTime"], "lastId": state["lastId"]});
        }
    }
    if answer["groupList"] != Value::Null {
        body["groupListTime"] = answer["groupList"]["time"].clone();
    }
    body
}

async fn a_new_account_gets_empty_pages(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let messages = json!({"list": [], "minId": 0, "more": false, "truncated": false});
    let state = json!({"list": [], "lastUpdateTime": null, "lastId": null, "more": false});
    let expected = json!({"private": messages, "group": messages, "channel": messages, "friend": state,
        "friendRequest": state, "groupRequest": state, "read": state, "groupList": null});
    assert_eq!(sync(&alice, json!({})).await, expected);
    let body =
        json!({"privateMinId": 7, "groupMinId": 8, "channelMinId": 9, "friend": {"lastUpdateTime": 1, "lastId": 2}});
    let answer = sync(&alice, body).await;
    let cursors: Vec<&Value> = MESSAGES.iter().map(|stream| &answer[stream]["minId"]).collect();
    assert_eq!(cursors, [7, 8, 9]);
    assert_eq!((&answer["friend"]["lastUpdateTime"], &answer["friend"]["lastId"]), (&json!(1), &json!(2)));
}

/// Alice and what several others have done with her: rows in every stream.
async fn busy_alice(app: &TestApp) -> Person {
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    alice.change("/im/group/update", json!({"id": group, "joinApproval": true})).await;
    for name in ["dave", "erin", "frank"] {
        let other = app.user(name).await;
        other.post("/im/friend-request/apply", json!({"toUserId": alice.id})).await;
        other.post("/im/group-request/apply", json!({"groupId": group})).await;
        befriend(&alice, &app.user(name).await).await;
    }
    for number in 0..7 {
        let sent = bob.send(&alice, &format!("number {number}")).await;
        alice.read(&bob, id_of(&sent)).await;
        let said = carol.say(group, &format!("number {number}")).await;
        alice.read_group(group, id_of(&said)).await;
    }
    alice.create_group(&[&bob, &carol]).await;
    alice
}

async fn a_loop_over_sync_gives_what_the_single_pulls_give(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = busy_alice(&app).await;
    let mut single: Vec<(&str, Vec<Value>)> = vec![("private", alice.pull_all(100).await)];
    single.push(("group", alice.pull_groups(100).await));
    let tables = [FRIEND, REQUEST, "/im/group-request", "/im/conversation-read"];
    for (stream, table) in STATES.into_iter().zip(tables) {
        single.push((stream, pull_states(&alice, table, None, 100).await));
    }
    let groups = alice.get("/im/group/list").await;
    for (stream, rows) in &single {
        assert!(rows.len() >= 2, "{stream}: {rows:?}");
    }
    for size in [1, 2, 3, 200] {
        let mut body = json!({"size": size});
        let mut pulled: Vec<Vec<Value>> = vec![Vec::new(); single.len()];
        let mut lists = Vec::new();
        loop {
            let answer = sync(&alice, body).await;
            let mut more = false;
            for ((stream, rows), pulled) in single.iter().zip(&mut pulled) {
                let page = answer[stream]["list"].as_array().unwrap();
                assert!(page.len() <= size, "{stream}");
                // More is promised only by a full page, and by every page that is not the last.
                let is_more = answer[stream]["more"] == true;
                assert!(!is_more || page.len() == size, "{stream}");
                pulled.extend(page.iter().cloned());
                assert!(is_more || pulled.len() == rows.len(), "{stream}: {} of {}", pulled.len(), rows.len());
                more |= is_more;
            }
            lists.extend(Some(answer["groupList"].clone()).filter(|list| *list != Value::Null));
            let list_time = lists[0]["time"].clone();
            body = next(&answer);
            body["size"] = json!(size);
            body["groupListTime"] = list_time;
            if !more {
                break;
            }
        }
        for ((stream, rows), pulled) in single.iter().zip(&pulled) {
            assert_eq!(pulled, rows, "{stream} in pages of {size}");
        }
        assert_eq!(lists.len(), 1);
        assert_eq!(lists[0]["list"], groups);
    }
}

async fn a_page_is_100_rows_unless_the_request_says_otherwise(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    for number in 0..120 {
        bob.send(&alice, &format!("number {number}")).await;
    }
    for (body, count, more) in
        [(json!({}), 100, true), (json!({"size": 121}), 121, true), (json!({"size": 200}), 121, false)]
    {
        let page = sync(&alice, body).await["private"].clone();
        assert_eq!((page["list"].as_array().unwrap().len(), &page["more"]), (count, &json!(more)));
        assert_eq!(page["minId"], page["list"][count - 1]["id"]);
    }
}

async fn sizes_and_cursors_that_make_no_sense_are_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let cursor = |cursor: Value| json!({"friend": cursor});
    for body in [
        json!({"size": 0}),
        json!({"size": 201}),
        json!({"size": "many"}),
        json!({"privateMinId": "x"}),
        cursor(json!({"lastId": 1})),
        cursor(json!({"lastUpdateTime": 1})),
        cursor(json!(7)),
        json!([]),
    ] {
        let answer = alice.call("POST", "/im/sync", Some(body.clone())).await;
        assert_eq!(code_of(&answer), 400, "{body}");
    }
    for size in [1, 200] {
        sync(&alice, json!({"size": size, "friend": null})).await;
    }
}

async fn the_group_list_comes_after_each_kind_of_change_and_only_then(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let other = alice.create_group(&[&bob]).await;
    let said = id_of(&alice.say(group, "pin this").await);
    let mut time = sync(&bob, json!({})).await["groupList"]["time"].clone();
    let id = json!(group);
    let members = json!({"groupId": group, "memberUserIds": [bob.id]});
    let changes: Vec<(&Person, &str, String, Value)> = vec![
        (&alice, "PUT", "/im/group/update".into(), json!({"id": id, "name": "new name"})),
        (&alice, "PUT", "/im/group/update".into(), json!({"id": id, "notice": "news"})),
        (&alice, "PUT", "/im/group/mute-all".into(), json!({"id": id, "mutedAll": true})),
        (&alice, "PUT", "/im/group/pin-message".into(), json!({"id": id, "messageId": said})),
        (&alice, "PUT", "/im/group/unpin-message".into(), json!({"id": id, "messageId": said})),
        (&bob, "PUT", "/im/group-member/update".into(), json!({"groupId": group, "silent": true})),
        (&bob, "PUT", "/im/group-member/update".into(), json!({"groupId": group, "groupRemark": "mine"})),
        (&alice, "DELETE", "/im/group/kicking".into(), members.clone()),
        (&alice, "POST", "/im/group/invite".into(), members),
        (&alice, "PUT", "/im/group/transfer-owner".into(), json!({"id": id, "newOwnerUserId": carol.id})),
        (&carol, "DELETE", format!("/im/group/dissolve?id={group}"), Value::Null),
        (&bob, "DELETE", format!("/im/group/quit?groupId={other}"), Value::Null),
    ];
    for (person, method, path, body) in changes {
        assert_eq!(sync(&bob, json!({"groupListTime": time})).await["groupList"], Value::Null, "before {path} {body}");
        data(person.call(method, &path, Some(body.clone()).filter(|body| !body.is_null())).await);
        let answer = sync(&bob, json!({"groupListTime": time})).await["groupList"].clone();
        assert!(answer["time"].as_i64() > time.as_i64(), "{answer} after {path} {body}");
        assert_eq!(answer["list"], bob.get("/im/group/list").await, "after {path} {body}");
        time = answer["time"].clone();
    }
    // A recall changes what a pin shows.
    let said = id_of(&alice.say(other, "pin this").await);
    let pin = json!({"id": other, "messageId": said});
    alice.change("/im/group/pin-message", pin).await;
    let time = sync(&alice, json!({})).await["groupList"]["time"].clone();
    data(alice.try_recall(said).await);
    let answer = sync(&alice, json!({"groupListTime": time})).await["groupList"].clone();
    assert_eq!(answer["list"], alice.get("/im/group/list").await, "after the recall of a pinned message");
}

async fn a_cut_by_the_window_is_told_where_it_hides_rows(backend: Backend) {
    let clock = ManualClock::at(1_800_000_000_000);
    let auth = AuthConfig { access_token_ttl_s: 400 * 86_400, ..AuthConfig::default() };
    let config = Config { auth, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let stranger = app.user("mallory").await;
    let old = [id_of(&bob.send(&alice, "old").await), id_of(&bob.say(group, "old").await)];
    let told = async |person: &Person, body: Value| {
        let answer = sync(person, body).await;
        assert_eq!(answer["channel"]["truncated"], false);
        (answer["private"]["truncated"] == true, answer["group"]["truncated"] == true)
    };
    assert_eq!(told(&alice, json!({})).await, (false, false));
    clock.jump(31 * DAY);
    let new = [id_of(&bob.send(&alice, "new").await), id_of(&bob.say(group, "new").await)];
    let answer = sync(&alice, json!({})).await;
    assert_eq!(ids_of(answer["private"]["list"].as_array().unwrap()), new[..1]);
    assert_eq!(ids_of(answer["group"]["list"].as_array().unwrap()), new[1..]);
    assert_eq!(told(&alice, json!({})).await, (true, true));
    // Cursors at the last row that is hidden, and one below it.
    assert_eq!(told(&alice, json!({"privateMinId": old[0], "groupMinId": old[1]})).await, (false, false));
    assert_eq!(told(&alice, json!({"privateMinId": old[0] - 1, "groupMinId": old[1]})).await, (true, false));
    assert_eq!(told(&alice, json!({"privateMinId": old[0], "groupMinId": old[1] - 1})).await, (false, true));
    assert_eq!(told(&alice, next(&answer)).await, (false, false));
    // Hidden rows of others are none of mine.
    assert_eq!(told(&stranger, json!({})).await, (false, false));
    carol.quit(group).await;
    assert_eq!(told(&carol, json!({"privateMinId": old[0], "groupMinId": 0})).await, (false, true));
}
