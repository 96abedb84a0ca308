//! Members of groups: inviting, quitting, removing, a member's own settings, and what members see of each other.

use nudge::config::Config;
use serde_json::{Value, json};

use crate::support::app::{Setup, TestApp, befriend};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{nothing_came, only_push, unfriend};
use crate::support::groups::{
    Crew, MEMBER_LIMIT, NOBODY, NOT_FRIENDS, NOT_MEMBER, check_spans, code, dissolve, group, invite, kick, make_group,
    member, pulled_after, put, quit, read_event, say,
};

on_every_database! {
    invited_friends_are_members_at_once,
    only_own_friends_who_are_not_members_are_invited,
    an_invitation_keeps_the_member_limit,
    who_quits_sees_it_himself_and_nothing_after,
    who_is_kicked_sees_it_himself_and_others_are_passed_over,
    one_who_cannot_be_kicked_refuses_all,
    coming_back_keeps_names_and_clears_role_and_mute,
    a_name_in_the_group_is_told_to_members_and_not_stored,
    own_settings_are_told_only_to_own_devices,
    members_see_every_row_and_only_their_own_settings,
}

const OWNER_CANNOT_QUIT: i64 = 1_040_500_003;
const CANNOT_KICK_SELF: i64 = 1_040_500_004;
const CANNOT_KICK_OWNER: i64 = 1_040_500_010;
const ADMIN_CANNOT_KICK_ADMIN: i64 = 1_040_500_011;

async fn invited_friends_are_members_at_once(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    let ids = [crew.outsider.id, crew.member.id, crew.outsider.id];
    assert_eq!(invite(&crew.owner, crew.group, &ids).await, 0);
    let event = watch.event_with_outsider(&crew.owner, 1509).await;
    assert_eq!(event.content, json!({"operatorUserId": crew.owner.id, "memberUserIds": [crew.outsider.id]}));
    // The group is there as soon as the event is, and nothing from before.
    assert_eq!(group(&crew.outsider, crew.group).await["joinStatus"], 0);
    assert_eq!(pulled_after(&crew.outsider, 0).await, [1509]);
    let row = member(&crew.outsider, crew.group, &crew.outsider).await;
    assert_eq!((&row["status"], &row["role"], &row["silent"]), (&json!(0), &json!(3), &json!(false)));
    // Once more is no change.
    assert_eq!(invite(&crew.owner, crew.group, &ids).await, 0);
    watch.nothing().await;
    check_spans(&app.database.url).await;
}

async fn only_own_friends_who_are_not_members_are_invited(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    assert_eq!(invite(&crew.outsider, crew.group, &[crew.member.id]).await, NOT_MEMBER);
    assert_eq!(invite(&crew.member, crew.group, &[crew.outsider.id, crew.admin.id]).await, NOT_FRIENDS);
    assert_eq!(invite(&crew.member, crew.group, &[NOBODY]).await, NOT_FRIENDS);
    unfriend(&crew.owner, &crew.outsider).await;
    watch.skip().await;
    assert_eq!(invite(&crew.owner, crew.group, &[crew.outsider.id]).await, NOT_FRIENDS);
    // Present members need not be friends of whoever names them.
    assert_eq!(invite(&crew.member, crew.group, &[crew.admin.id, crew.owner.id, crew.member.id]).await, 0);
    watch.nothing().await;
    assert_eq!(group(&crew.outsider, crew.group).await["joinStatus"], 1);
}

async fn an_invitation_keeps_the_member_limit(backend: Backend) {
    let mut config = Config::default();
    config.group.max_member = 4;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let crew = Crew::gather(&app).await;
    let other = app.user("other").await;
    assert_eq!(invite(&crew.owner, crew.group, &[crew.outsider.id, other.id]).await, NOT_FRIENDS);
    befriend(&crew.owner, &other).await;
    assert_eq!(invite(&crew.owner, crew.group, &[crew.outsider.id, other.id]).await, MEMBER_LIMIT);
    assert_eq!(group(&crew.outsider, crew.group).await["joinStatus"], 1);
    assert_eq!(invite(&crew.owner, crew.group, &[crew.outsider.id]).await, 0);
    assert_eq!(invite(&crew.owner, crew.group, &[other.id]).await, MEMBER_LIMIT);
    let apply = json!({"groupId": crew.group});
    assert_eq!(code(&other, "POST", "/im/group-request/apply", apply.clone()).await, MEMBER_LIMIT);
    // Who left counts no more.
    assert_eq!(quit(&crew.member, crew.group).await, 0);
    assert_eq!(code(&other, "POST", "/im/group-request/apply", apply).await, 0);
}

async fn who_quits_sees_it_himself_and_nothing_after(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    assert_eq!(quit(&crew.owner, crew.group).await, OWNER_CANNOT_QUIT);
    assert_eq!(quit(&crew.outsider, crew.group).await, NOT_MEMBER);
    watch.nothing().await;
    assert_eq!(quit(&crew.member, crew.group).await, 0);
    let event = watch.event(&crew.member, 1504).await;
    assert_eq!(event.content, json!({"operatorUserId": crew.member.id}));
    assert_eq!(quit(&crew.member, crew.group).await, NOT_MEMBER);
    say(&crew.owner, crew.group, "without him").await;
    nothing_came([&mut watch.members[2]]).await;
    let before = event.id.unwrap() - 1;
    assert_eq!(pulled_after(&crew.member, before).await, [1504]);
    assert_eq!(pulled_after(&crew.admin, before).await, [1504, 101]);
    let row = member(&crew.owner, crew.group, &crew.member).await;
    assert_eq!(row["status"], 1);
    assert!(row["quitTime"].as_i64() > Some(0));
    check_spans(&app.database.url).await;
}

async fn who_is_kicked_sees_it_himself_and_others_are_passed_over(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    let ids = [crew.outsider.id, crew.member.id, NOBODY, crew.member.id];
    assert_eq!(kick(&crew.admin, crew.group, &[crew.outsider.id, NOBODY]).await, 0);
    watch.nothing().await;
    assert_eq!(kick(&crew.admin, crew.group, &ids).await, 0);
    let event = watch.event(&crew.admin, 1508).await;
    assert_eq!(event.content, json!({"operatorUserId": crew.admin.id, "memberUserIds": [crew.member.id]}));
    assert_eq!(pulled_after(&crew.member, event.id.unwrap() - 1).await, [1508]);
    assert_eq!(kick(&crew.admin, crew.group, &ids).await, 0);
    watch.nothing().await;
    check_spans(&app.database.url).await;
}

async fn one_who_cannot_be_kicked_refuses_all(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let second = app.user("second admin").await;
    befriend(&crew.owner, &second).await;
    assert_eq!(invite(&crew.owner, crew.group, &[second.id]).await, 0);
    put(&crew.owner, "/im/group/add-admin", json!({"id": crew.group, "userIds": [second.id]})).await;
    let mut watch = crew.connect().await;
    let (member, owner) = (crew.member.id, crew.owner.id);
    let cases = [
        (&crew.admin, vec![member, crew.admin.id, owner], CANNOT_KICK_SELF),
        (&crew.admin, vec![member, second.id, owner], CANNOT_KICK_OWNER),
        (&crew.admin, vec![member, second.id], ADMIN_CANNOT_KICK_ADMIN),
        (&crew.owner, vec![member, owner], CANNOT_KICK_SELF),
    ];
    for (actor, targets, expected) in cases {
        assert_eq!(kick(actor, crew.group, &targets).await, expected, "{targets:?}");
    }
    watch.nothing().await;
    assert_eq!(kick(&crew.owner, crew.group, &[second.id, member]).await, 0);
    let content = watch.event(&crew.owner, 1508).await.content;
    assert_eq!(content["memberUserIds"], json!([member, second.id]));
}

async fn coming_back_keeps_names_and_clears_role_and_mute(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let settings =
        json!({"groupId": crew.group, "displayUserName": "Addy", "groupRemark": "the place", "silent": true});
    put(&crew.admin, "/im/group-member/update", settings).await;
    put(&crew.owner, "/im/group/mute-member", json!({"id": crew.group, "userId": crew.admin.id, "mutedSeconds": 0}))
        .await;
    let first = member(&crew.admin, crew.group, &crew.admin).await;
    assert_eq!((&first["role"], &first["muteEndTime"]), (&json!(2), &json!(253_402_214_400_000_i64)));
    assert_eq!(quit(&crew.admin, crew.group).await, 0);
    let mut left = member(&crew.owner, crew.group, &crew.admin).await;
    assert!(left["quitTime"].take().as_i64() > Some(0));
    let mut expected = first.clone();
    for (key, value) in [("status", json!(1)), ("silent", Value::Null), ("groupRemark", Value::Null)] {
        expected[key] = value;
    }
    assert_eq!(left, expected, "leaving changes nothing else");

    assert_eq!(invite(&crew.owner, crew.group, &[crew.admin.id]).await, 0);
    let back = member(&crew.admin, crew.group, &crew.admin).await;
    assert!(back["joinTime"].as_i64() > first["joinTime"].as_i64());
    let mut expected = first.clone();
    for (key, value) in [("role", json!(3)), ("muteEndTime", Value::Null), ("joinTime", back["joinTime"].clone())] {
        expected[key] = value;
    }
    assert_eq!(back, expected);
    say(&crew.admin, crew.group, "I am back").await;
    check_spans(&app.database.url).await;
}

async fn a_name_in_the_group_is_told_to_members_and_not_stored(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    let name = "ß".repeat(64);
    for (name, is_new) in [(name.as_str(), true), (name.as_str(), false), ("", true), ("", false)] {
        put(&crew.member, "/im/group-member/update", json!({"groupId": crew.group, "displayUserName": name})).await;
        if !is_new {
            watch.nothing().await;
            continue;
        }
        let event = watch.event(&crew.member, 1516).await;
        assert_eq!(event.id, None);
        assert_eq!(event.content, json!({"operatorUserId": crew.member.id, "displayUserName": name}));
        assert_eq!(member(&crew.owner, crew.group, &crew.member).await["displayUserName"], name);
    }
    assert_eq!(pulled_after(&crew.owner, 0).await, [1501, 1517]);
    let body = json!({"groupId": crew.group, "displayUserName": "x"});
    assert_eq!(code(&crew.outsider, "PUT", "/im/group-member/update", body).await, NOT_MEMBER);
    watch.nothing().await;
}

async fn own_settings_are_told_only_to_own_devices(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    let mut laptop = crew.member.connect().await;
    let steps = [
        (json!({"silent": true}), Some((json!(true), Value::Null))),
        (json!({"silent": true}), None),
        // What is in the call is told, also where only the other of the two is new.
        (json!({"silent": true, "groupRemark": "mine"}), Some((json!(true), json!("mine")))),
        (json!({"groupRemark": ""}), Some((Value::Null, json!("")))),
        (json!({"silent": null, "groupRemark": null}), None),
    ];
    for (mut change, told) in steps {
        change["groupId"] = json!(crew.group);
        put(&crew.member, "/im/group-member/update", change.clone()).await;
        let [owner, admin, phone] = &mut watch.members;
        nothing_came([owner, admin, &mut watch.outsider]).await;
        let Some((silent, remark)) = told else {
            nothing_came([phone, &mut laptop]).await;
            continue;
        };
        let event = read_event(&only_push([phone, &mut laptop]).await, &crew.member, crew.group, 1530);
        assert_eq!(event.id, None);
        let expected = json!({"operatorUserId": crew.member.id, "silent": silent, "groupRemark": remark});
        assert_eq!(event.content, expected, "{change}");
    }
    let own = group(&crew.member, crew.group).await;
    assert_eq!((&own["silent"], &own["groupRemark"]), (&json!(true), &json!("")));
    assert_eq!(pulled_after(&crew.member, 0).await, [1501, 1517]);
}

async fn members_see_every_row_and_only_their_own_settings(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    for person in [&crew.admin, &crew.member] {
        put(person, "/im/group-member/update", json!({"groupId": crew.group, "groupRemark": "r", "silent": true}))
            .await;
    }
    assert_eq!(quit(&crew.member, crew.group).await, 0);
    let list = crew.admin.get(&format!("/im/group-member/list?groupId={}", crew.group)).await;
    let rows = list.as_array().unwrap();
    let shown: Vec<_> =
        rows.iter().map(|row| ["userId", "status", "role", "silent", "nickname"].map(|key| row[key].clone())).collect();
    let expected = [
        [json!(crew.owner.id), json!(0), json!(1), Value::Null, json!("owner")],
        [json!(crew.admin.id), json!(0), json!(2), json!(true), json!("admin")],
        [json!(crew.member.id), json!(1), json!(3), Value::Null, json!("member")],
    ];
    assert_eq!(shown, expected);
    assert_eq!((&rows[1]["groupRemark"], &rows[2]["groupRemark"]), (&json!("r"), &Value::Null));
    for (row, person) in rows.iter().zip([&crew.owner, &crew.admin, &crew.member]) {
        assert_eq!(*row, member(&crew.admin, crew.group, person).await);
        assert_eq!(*row, crew.admin.get(&format!("/im/group-member/get?id={}", row["id"])).await);
    }
    // Nobody else sees any of it; what is not there is null for everybody.
    for person in [&crew.outsider, &crew.member] {
        let list = format!("/im/group-member/list?groupId={}", crew.group);
        let own = format!("/im/group-member/get?groupId={}&userId={}", crew.group, crew.member.id);
        let by_id = format!("/im/group-member/get?id={}", rows[0]["id"]);
        for path in [list, own, by_id] {
            assert_eq!(code(person, "GET", &path, Value::Null).await, NOT_MEMBER, "{path}");
        }
        assert_eq!(member(person, crew.group, &crew.outsider).await, Value::Null);
        assert_eq!(person.get(&format!("/im/group-member/get?id={NOBODY}")).await, Value::Null);
    }
    let second = make_group(&crew.owner, &[]).await;
    assert_eq!(dissolve(&crew.owner, second).await, 0);
    let path = format!("/im/group-member/list?groupId={second}");
    assert_eq!(code(&crew.owner, "GET", &path, Value::Null).await, NOT_MEMBER);
}
