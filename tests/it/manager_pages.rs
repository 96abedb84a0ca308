//! What operators look through: pages of groups, join requests, friendships and friend requests (`contract/05` E1, E2).

use nudge::config::{Config, ManagerConfig};
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, befriend, ids_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{apply, block, check_forms, set, unfriend};
use crate::support::groups::{invite, make_group, put, quit};
use crate::support::raw::redacted;

on_every_database! {
    pages_go_from_the_newest_to_the_oldest,
    groups_are_found_by_name_owner_state_and_time,
    a_group_page_shows_everything_about_a_group,
    members_are_listed_with_those_who_left,
    join_requests_are_found_and_shown,
    friendships_are_found_and_shown,
    friend_requests_are_found_and_shown,
    times_are_understood_in_every_form_and_in_the_operators_zone,
    pages_of_the_wrong_form_are_refused,
}

const GROUPS: &str = "/im/manager/group/page";
const JOINS: &str = "/im/manager/group-request/page";
const FRIENDS: &str = "/im/manager/friend/page";
const REQUESTS: &str = "/im/manager/friend-request/page";

/// The ids on a page, and the total.
async fn page(operator: &Person, path: &str, query: &str) -> (Vec<i64>, i64) {
    let page = operator.get(&format!("{path}?{query}")).await;
    assert_eq!(page.as_object().unwrap().len(), 2, "{page}");
    (ids_of(page["list"].as_array().unwrap()), page["total"].as_i64().unwrap())
}

/// The whole list of one page of at most 200.
async fn list(operator: &Person, path: &str, query: &str) -> Vec<Value> {
    operator.get(&format!("{path}?pageSize=200&{query}")).await["list"].as_array().unwrap().clone()
}

async fn named(owner: &Person, name: &str) -> i64 {
    owner.post("/im/group/create", json!({"name": name})).await["id"].as_i64().unwrap()
}

async fn pages_go_from_the_newest_to_the_oldest(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (operator, owner) = (app.operator().await, app.user("owner").await);
    assert_eq!(page(&operator, GROUPS, "").await, (vec![], 0));
    let mut ids = Vec::new();
    for number in 0..23 {
        ids.insert(0, named(&owner, &format!("group {number}")).await);
    }
    assert_eq!(page(&operator, GROUPS, "").await, (ids[..10].to_vec(), 23), "ten, where nothing else is asked for");
    assert_eq!(page(&operator, GROUPS, "pageNo=&pageSize=").await, (ids[..10].to_vec(), 23));
    for size in [1, 7, 22, 23, 24, 200] {
        let mut seen = Vec::new();
        for number in 1..=23_usize.div_ceil(size) {
            let (rows, total) = page(&operator, GROUPS, &format!("pageNo={number}&pageSize={size}")).await;
            assert_eq!(total, 23);
            seen.extend(rows);
        }
        assert_eq!(seen, ids, "pages of {size}");
    }
    for beyond in [4, 1_000_000, i64::MAX] {
        assert_eq!(page(&operator, GROUPS, &format!("pageNo={beyond}&pageSize=10")).await, (vec![], 23));
    }
}

async fn groups_are_found_by_name_owner_state_and_time(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (operator, one, two) = (app.operator().await, app.user("one").await, app.user("two").await);
    let (red, blue) = (named(&one, "Red 100% team").await, named(&two, "blue_team").await);
    let (ended, banned) = (named(&one, "over").await, named(&two, "shut").await);
    one.delete(&format!("/im/group/dissolve?id={ended}")).await;
    put(&operator, "/im/manager/group/ban", json!({"id": banned, "reason": "spam"})).await;
    let cases = [
        ("", vec![banned, ended, blue, red]),
        ("name=", vec![banned, ended, blue, red]),
        ("name=%20%20", vec![banned, ended, blue, red]),
        ("name=team", vec![blue, red]),
        ("name=TEAM", vec![blue, red]),
        ("name=%25", vec![red]),
        ("name=_", vec![blue]),
        ("name=!", vec![]),
        ("name=%27%20OR%201=1", vec![]),
        ("name=nobody", vec![]),
        (&*format!("ownerUserId={}", one.id), vec![ended, red]),
        (&*format!("ownerUserId={}&name=team", one.id), vec![red]),
        ("ownerUserId=987654321", vec![]),
        ("ownerUserId=-9223372036854775808", vec![]),
        ("status=1", vec![ended]),
        ("status=0", vec![banned, blue, red]),
        ("status=9223372036854775807", vec![]),
        ("banned=true", vec![banned]),
        ("banned=false", vec![ended, blue, red]),
        ("banned=", vec![banned, ended, blue, red]),
        ("status=0&banned=false&name=team", vec![blue, red]),
    ];
    for (query, expected) in cases {
        let total = expected.len() as i64;
        assert_eq!(page(&operator, GROUPS, query).await, (expected, total), "{query}");
    }
}

async fn a_group_page_shows_everything_about_a_group(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (owner, member) = app.friends("owner", "member").await;
    let id = make_group(&owner, &[&member]).await;
    put(&owner, "/im/group/update", json!({"id": id, "notice": "news", "avatar": "/a.png"})).await;
    let rows = list(&operator, GROUPS, "").await;
    let mut expected = json!({
        "id": id, "name": "us", "avatar": "/a.png", "notice": "news", "ownerUserId": owner.id,
        "ownerNickname": "owner", "memberCount": 2, "status": 0, "dissolvedTime": null, "banned": false,
        "mutedAll": false, "bannedReason": null, "bannedTime": null, "createTime": rows[0]["createTime"],
    });
    assert_eq!(rows, [expected.clone()]);
    expected["ownerNickname"] = Value::Null;
    expected["memberCount"] = Value::Null;
    assert_eq!(operator.get(&format!("/im/manager/group/get?id={id}")).await, expected);
    assert_eq!(quit(&member, id).await, 0);
    owner.delete(&format!("/im/group/dissolve?id={id}")).await;
    let row = list(&operator, GROUPS, "").await.remove(0);
    assert_eq!((row["memberCount"].clone(), row["status"].clone()), (json!(0), json!(1)));
}

async fn members_are_listed_with_those_who_left(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (owner, member) = app.friends("owner", "member").await;
    let id = make_group(&owner, &[&member]).await;
    let own = json!({"groupId": id, "displayUserName": "me", "groupRemark": "mine", "silent": true});
    put(&member, "/im/group-member/update", own).await;
    assert_eq!(quit(&member, id).await, 0);
    let rows = operator.get(&format!("/im/manager/group/member/list?groupId={id}")).await;
    let row = |person: &Person, name: &str, role: i64| {
        json!({
            "userId": person.id, "nickname": name, "avatar": null, "displayUserName": null, "groupRemark": null,
            "silent": false, "status": 0, "role": role, "joinTime": "[joinTime]", "quitTime": null,
            "muteEndTime": null,
        })
    };
    let mut left = row(&member, "member", 3);
    for (key, value) in [("displayUserName", json!("me")), ("groupRemark", json!("mine")), ("silent", json!(true))] {
        left[key] = value;
    }
    left["status"] = json!(1);
    left["quitTime"] = json!("[quitTime]");
    let rows: Value = serde_json::from_str(&redacted(&rows, &["joinTime", "quitTime"])).unwrap();
    assert_eq!(rows, json!([left, row(&owner, "owner", 1)]));
}

async fn join_requests_are_found_and_shown(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (operator, owner) = (app.operator().await, app.user("owner").await);
    let (member, guest, stranger) = (app.user("member").await, app.user("guest").await, app.user("stranger").await);
    befriend(&owner, &member).await;
    befriend(&member, &guest).await;
    let id = make_group(&owner, &[&member]).await;
    put(&owner, "/im/group/update", json!({"id": id, "joinApproval": true})).await;
    let body = json!({"groupId": id, "applyContent": "please", "addSource": 4});
    let asked = stranger.post("/im/group-request/apply", body).await.as_i64().unwrap();
    assert_eq!(invite(&member, id, &[guest.id]).await, 0);
    owner.put(&format!("/im/group-request/refuse?id={asked}&handleContent=no")).await;
    let rows = list(&operator, JOINS, "").await;
    let invited = rows[0]["id"].as_i64().unwrap();
    let expected = json!([
        {
            "id": invited, "groupId": id, "groupName": "us", "userId": guest.id, "userNickname": "guest",
            "inviterUserId": member.id, "inviterNickname": "member", "applyContent": null, "addSource": 2,
            "handleResult": 0, "handleUserId": null, "handleNickname": null, "handleContent": null,
            "handleTime": null, "createTime": rows[0]["createTime"],
        },
        {
            "id": asked, "groupId": id, "groupName": "us", "userId": stranger.id, "userNickname": "stranger",
            "inviterUserId": null, "inviterNickname": null, "applyContent": "please", "addSource": 4,
            "handleResult": 2, "handleUserId": owner.id, "handleNickname": "owner", "handleContent": "no",
            "handleTime": rows[1]["handleTime"], "createTime": rows[1]["createTime"],
        },
    ]);
    assert_eq!(json!(rows), expected);
    let cases = [
        (format!("groupId={id}"), vec![invited, asked]),
        ("groupId=987654321".to_owned(), vec![]),
        (format!("userId={}", stranger.id), vec![asked]),
        (format!("inviterUserId={}", member.id), vec![invited]),
        ("handleResult=0".to_owned(), vec![invited]),
        ("handleResult=2".to_owned(), vec![asked]),
        ("addSource=4".to_owned(), vec![asked]),
        ("addSource=2&handleResult=2".to_owned(), vec![]),
    ];
    for (query, expected) in cases {
        let total = expected.len() as i64;
        assert_eq!(page(&operator, JOINS, &query).await, (expected, total), "{query}");
    }
}

async fn friendships_are_found_and_shown(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    set(&alice, &bob, json!({"displayName": "B", "pinned": true, "silent": true})).await;
    block(&alice, &bob).await;
    unfriend(&bob, &alice).await;
    let rows = list(&operator, FRIENDS, "").await;
    let time = |row: usize, key: &str| rows[row][key].clone();
    let of_alice = usize::from(rows[0]["userId"] != alice.id);
    let of_bob = 1 - of_alice;
    let expected = |own: usize| {
        json!({"id": time(own, "id"), "addSource": null, "addTime": time(own, "addTime"),
            "createTime": time(own, "createTime")})
    };
    let mut alices = expected(of_alice);
    let mut bobs = expected(of_bob);
    let fields = [
        ("userId", json!(alice.id), json!(bob.id)),
        ("userNickname", json!("alice"), json!("bob")),
        ("friendUserId", json!(bob.id), json!(alice.id)),
        ("friendNickname", json!("bob"), json!("alice")),
        ("displayName", json!("B"), json!("")),
        ("silent", json!(true), json!(false)),
        ("pinned", json!(true), json!(false)),
        ("blocked", json!(true), json!(false)),
        ("status", json!(0), json!(1)),
        ("deleteTime", json!(null), time(of_bob, "deleteTime")),
    ];
    for (key, of_alice, of_bob) in fields {
        (alices[key], bobs[key]) = (of_alice, of_bob);
    }
    assert_eq!((&rows[of_alice], &rows[of_bob]), (&alices, &bobs));
    assert!(rows[of_bob]["deleteTime"].as_i64() > Some(0));
    let ids = [of_alice, of_bob].map(|row| rows[row]["id"].as_i64().unwrap());
    let cases = [
        (format!("userId={}", alice.id), vec![ids[0]]),
        (format!("friendUserId={}", alice.id), vec![ids[1]]),
        (format!("userId={}&friendUserId={}", bob.id, bob.id), vec![]),
        ("status=1".to_owned(), vec![ids[1]]),
        ("silent=true".to_owned(), vec![ids[0]]),
        ("silent=false&status=0".to_owned(), vec![]),
    ];
    for (query, expected) in cases {
        let total = expected.len() as i64;
        assert_eq!(page(&operator, FRIENDS, &query).await, (expected, total), "{query}");
    }
}

async fn friend_requests_are_found_and_shown(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob, carol) = (app.user("alice").await, app.user("bob").await, app.user("carol").await);
    let body = json!({"toUserId": bob.id, "applyContent": "hi", "displayName": "my Bob", "addSource": 4});
    let first = alice.post("/im/friend-request/apply", body).await.as_i64().unwrap();
    let second = apply(&carol, &alice).await;
    bob.put(&format!("/im/friend-request/refuse?id={first}&handleContent=no")).await;
    let rows = list(&operator, REQUESTS, "").await;
    assert_eq!(ids_of(&rows), [second, first]);
    let expected = json!({
        "id": first, "fromUserId": alice.id, "fromNickname": "alice", "toUserId": bob.id, "toNickname": "bob",
        "applyContent": "hi", "displayName": "my Bob", "addSource": 4, "handleResult": 2, "handleContent": "no",
        "handleTime": rows[1]["handleTime"], "createTime": rows[1]["createTime"],
    });
    assert_eq!(rows[1], expected);
    let cases = [
        (format!("fromUserId={}", alice.id), vec![first]),
        (format!("toUserId={}", alice.id), vec![second]),
        ("handleResult=0".to_owned(), vec![second]),
        ("handleResult=2&addSource=4".to_owned(), vec![first]),
        ("addSource=1".to_owned(), vec![]),
    ];
    for (query, expected) in cases {
        let total = expected.len() as i64;
        assert_eq!(page(&operator, REQUESTS, &query).await, (expected, total), "{query}");
    }
}

async fn times_are_understood_in_every_form_and_in_the_operators_zone(backend: Backend) {
    // At noon in UTC, which is evening in the zone.
    let clock = ManualClock::at(1_893_499_200_000);
    let manager = ManagerConfig { utc_offset_minutes: 480 };
    let config = Config { manager, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await;
    let (operator, owner) = (app.operator().await, app.user("owner").await);
    let mut ids = Vec::new();
    for _ in 0..3 {
        clock.jump(60_000);
        ids.push(named(&owner, "a group").await);
    }
    let rows = list(&operator, GROUPS, "").await;
    let times: Vec<i64> = rows.iter().rev().map(|row| row["createTime"].as_i64().unwrap()).collect();
    let text = |index: usize, seconds: i64| {
        let time = times[index] / 1_000 * 1_000 + seconds * 1_000 + 8 * 3_600_000;
        nudge::domain::calendar::time_text(time).replace('T', " ").replace(' ', "%20").replace(':', "%3A")
    };
    let (from, to) = (text(1, 0), text(1, 0));
    let cases = [
        (format!("createTime%5B0%5D={from}&createTime%5B1%5D={to}"), vec![ids[1]]),
        (format!("createTime={from}&createTime={to}"), vec![ids[1]]),
        (format!("createTime={from},{to}"), vec![ids[1]]),
        (format!("createTime%5B0%5D={from}"), vec![ids[2], ids[1]]),
        (format!("createTime%5B1%5D={to}"), vec![ids[1], ids[0]]),
        (format!("createTime={from}"), vec![ids[2], ids[1]]),
        ("createTime=".to_owned(), vec![ids[2], ids[1], ids[0]]),
        (format!("createTime={},{}", text(1, 1), text(1, 30)), vec![]),
        (format!("createTime={},{}", text(0, -1), text(2, 1)), vec![ids[2], ids[1], ids[0]]),
        (format!("createTime={},{}", text(2, 0), text(0, 0)), vec![]),
    ];
    for (query, expected) in cases {
        let total = expected.len() as i64;
        assert_eq!(page(&operator, GROUPS, &query).await, (expected, total), "{query}");
    }
}

async fn pages_of_the_wrong_form_are_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let paths = [(GROUPS, "createTime"), (JOINS, "createTime"), (FRIENDS, "addTime"), (REQUESTS, "createTime")];
    for (path, time) in paths {
        let forms = [
            "pageNo=0",
            "pageNo=-1",
            "pageNo=x",
            "pageSize=0",
            "pageSize=201",
            "pageSize=1.5",
            "TIME=yesterday",
            "TIME=2026-02-30%2000:00:00",
            "TIME=1700000000000",
            "TIME=2026-01-01",
            "TIME%5B2%5D=2026-01-01%2000:00:00",
            "TIME=2026-01-01%2000:00:00,2026-01-01%2000:00:00,2026-01-01%2000:00:00",
        ];
        for form in forms {
            let asked = format!("{path}?{}", form.replace("TIME", time));
            check_forms(&operator, &[("GET", &asked, Value::Null)], &[("GET", &asked, Value::Null)]).await;
        }
    }
    for asked in ["banned=1", "status=x", "ownerUserId=1.5", &format!("name={}", "x".repeat(65))] {
        let asked = format!("{GROUPS}?{asked}");
        check_forms(&operator, &[], &[("GET", &asked, Value::Null)]).await;
    }
    for path in ["/im/manager/group/get", "/im/manager/group/member/list", "/im/manager/group/get?id=x"] {
        check_forms(&operator, &[("GET", path, Value::Null)], &[("GET", path, Value::Null)]).await;
    }
}
