//! Statistics for operators (`contract/05` E8), on a clock that the test moves over weeks.

use nudge::config::{Config, ManagerConfig};
use nudge::domain::calendar::parse_time;
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, befriend, id_of, random_id};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::check_forms;
use crate::support::groups::{dissolve, make_group, say};

on_every_database! {
    numbers_of_days_are_those_of_the_operators_zone,
    groups_are_counted_by_size,
    an_empty_server_has_numbers_too,
    trends_of_the_wrong_form_are_refused,
}

const STATISTICS: &str = "/im/manager/statistics";
const DAY: i64 = 86_400_000;

/// Somebody whose tokens may have expired, signed in again.
async fn again(person: &mut Person) {
    *person = person.sign_in_again().await;
}

async fn numbers_of_days_are_those_of_the_operators_zone(backend: Backend) {
    // Eight hours east of UTC the day begins at 16:00 UTC the day before.
    let noon = parse_time("2030-03-10 12:00:00").unwrap();
    let clock = ManualClock::at(noon - 45 * DAY);
    let manager = ManagerConfig { utc_offset_minutes: 480 };
    let config = Config { manager, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await;
    let mut operator = app.operator().await;
    let (mut alice, mut bob) = app.friends("alice", "bob").await;
    let mut carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    let group = make_group(&alice, &[&bob]).await;
    alice.send(&bob, "too old").await;

    clock.jump(20 * DAY);
    for person in [&mut alice, &mut bob, &mut carol] {
        again(person).await;
    }
    bob.send(&alice, "weeks ago").await;
    carol.send(&alice, "weeks ago").await;
    say(&alice, group, "weeks ago").await;

    // To 15:59 UTC of the day before the last: the last minute of yesterday.
    clock.jump(24 * DAY + 4 * 3_600_000 - 60_000);
    for person in [&mut alice, &mut bob, &mut carol] {
        again(person).await;
    }
    alice.send(&bob, "yesterday").await;
    let recalled = id_of(&alice.send(&bob, "never said").await);
    alice.delete(&format!("/im/message/private/recall?id={recalled}")).await;
    say(&bob, group, "yesterday").await;
    clock.jump(61_000);
    alice.send(&bob, "today, by a second").await;

    clock.jump(20 * 3_600_000 - 1_000);
    for person in [&mut alice, &mut carol, &mut operator] {
        again(person).await;
    }
    app.user("dora").await;
    let image =
        json!({"clientMessageId": random_id(), "receiverId": bob.id, "type": 102, "content": r#"{"url":"/a.png"}"#});
    alice.post("/im/message/private/send", image).await;
    say(&alice, group, "today").await;
    let short = make_group(&carol, &[]).await;
    assert_eq!(dissolve(&carol, short).await, 0);

    let get = async |path: &str| operator.get(&format!("{STATISTICS}/{path}")).await;
    let expected = json!({
        "totalUser": 5, "newUserToday": 1, "totalGroup": 1, "newGroupToday": 1, "activeUserDaily": 1,
        "activeUserWeekly": 2, "activeUserMonthly": 3, "privateMessageToday": 2, "groupMessageToday": 1,
        "privateMessageYesterday": 1, "groupMessageYesterday": 1,
    });
    assert_eq!(get("overview").await, expected);
    let expected = json!({"dates": ["2030-03-09", "2030-03-10"], "series": {"private": [1, 2], "group": [1, 1]}});
    assert_eq!(get("message-trend?days=2").await, expected);
    let expected = json!({"dates": ["2030-03-09", "2030-03-10"], "series": {"register": [0, 1], "active": [2, 1]}});
    assert_eq!(get("user-trend?days=2").await, expected);
    let long = get("message-trend?days=26").await;
    assert_eq!((&long["dates"][0], &long["series"]["private"][0]), (&json!("2030-02-13"), &json!(2)));
    assert_eq!(long["series"]["group"][0], 1);
    let lengths = |trend: &Value, names: [&str; 2]| {
        let length = |list: &Value| list.as_array().unwrap().len();
        [length(&trend["dates"]), length(&trend["series"][names[0]]), length(&trend["series"][names[1]])]
    };
    assert_eq!(lengths(&long, ["private", "group"]), [26; 3]);
    assert_eq!(lengths(&get("message-trend").await, ["private", "group"]), [7; 3]);
    let ninety = get("user-trend?days=90").await;
    assert_eq!(lengths(&ninety, ["register", "active"]), [90; 3]);
    let sum = |list: &Value| list.as_array().unwrap().iter().filter_map(Value::as_i64).sum::<i64>();
    assert_eq!(sum(&ninety["series"]["register"]), 5);
    assert_eq!(get("message-type-distribution").await, json!([{"type": 101, "value": 7}, {"type": 102, "value": 1}]));
    let top =
        |person: &Person, name: &str, count: i64| json!({"userId": person.id, "nickname": name, "messageCount": count});
    let expected = json!([top(&alice, "alice", 5), top(&bob, "bob", 2), top(&carol, "carol", 1)]);
    assert_eq!(get("top-senders").await, expected);
}

async fn groups_are_counted_by_size(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (operator, owner) = (app.operator().await, app.user("owner").await);
    let mut crowd = Vec::new();
    for number in 0..10 {
        let person = app.user(&format!("friend {number}")).await;
        befriend(&owner, &person).await;
        crowd.push(person);
    }
    let everybody: Vec<&Person> = crowd.iter().collect();
    for members in [&everybody[..], &everybody[..9], &everybody[..8], &[]] {
        make_group(&owner, members).await;
    }
    let banned = make_group(&owner, &[]).await;
    crate::support::groups::put(&operator, "/im/manager/group/ban", json!({"id": banned, "reason": "spam"})).await;
    let over = make_group(&owner, &everybody).await;
    assert_eq!(dissolve(&owner, over).await, 0);
    let expected = json!([
        {"range": "1-9 人", "count": 3}, {"range": "10-49 人", "count": 2}, {"range": "50-199 人", "count": 0},
        {"range": "200+ 人", "count": 0},
    ]);
    assert_eq!(operator.get(&format!("{STATISTICS}/group-size-distribution")).await, expected);
}

async fn an_empty_server_has_numbers_too(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let get = async |path: &str| operator.get(&format!("{STATISTICS}/{path}")).await;
    let overview = get("overview").await;
    assert_eq!((&overview["totalUser"], &overview["newUserToday"]), (&json!(1), &json!(1)));
    assert_eq!((&overview["activeUserMonthly"], &overview["totalGroup"]), (&json!(0), &json!(0)));
    assert_eq!(get("message-trend?days=1").await["series"], json!({"private": [0], "group": [0]}));
    assert_eq!(get("user-trend?days=1").await["series"], json!({"register": [1], "active": [0]}));
    assert_eq!(get("message-type-distribution").await, json!([]));
    assert_eq!(get("top-senders").await, json!([]));
    let sizes = get("group-size-distribution").await;
    assert!(sizes.as_array().unwrap().iter().all(|size| size["count"] == 0), "{sizes}");
}

async fn trends_of_the_wrong_form_are_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    for trend in ["message-trend", "user-trend"] {
        for days in ["0", "-1", "91", "x", "1.5"] {
            let asked = format!("{STATISTICS}/{trend}?days={days}");
            check_forms(&operator, &[("GET", &asked, Value::Null)], &[("GET", &asked, Value::Null)]).await;
        }
    }
}
