//! Admins, the owner, mutes and pins: what they change and who is told.

use nudge::config::Config;
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, befriend, data, id_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{code_of, pull_states};
use crate::support::groups::{
    Crew, NOBODY, NOT_IN_GROUP, NOT_MEMBER, code, group, invite, member, pulled_after, put, quit, say, set_row, try_say,
};
use crate::support::second_connection::SecondConnection;

on_every_database! {
    admins_are_made_and_unmade_up_to_their_limit,
    a_transfer_makes_the_old_owner_a_normal_member,
    new_managers_pull_the_waiting_requests,
    a_muted_group_hears_only_its_managers,
    a_muted_member_is_silent_until_the_time_he_is_told,
    a_message_to_all_can_be_pinned_up_to_the_limit,
    only_what_its_admin_sees_and_users_sent_can_be_pinned,
}

const PIN_LIMIT: i64 = 1_040_400_006;
const ALREADY_PINNED: i64 = 1_040_400_007;
const NOT_PINNED: i64 = 1_040_400_008;
const DIRECTED: i64 = 1_040_400_009;
const ADMIN_NOT_IN_GROUP: i64 = 1_040_500_007;
const ADMIN_IS_OWNER: i64 = 1_040_500_008;
const ADMIN_LIMIT: i64 = 1_040_500_009;
const GROUP_MUTED: i64 = 1_040_500_012;
const MUTED: i64 = 1_040_500_013;
/// 2050-01-01T00:00:00 in UTC.
const NOW: i64 = 2_524_608_000_000;

async fn change_admins(person: &Person, verb: &str, group: i64, users: &[i64]) -> i64 {
    code(person, "PUT", &format!("/im/group/{verb}"), json!({"id": group, "userIds": users})).await
}

async fn pin(person: &Person, verb: &str, group: i64, message: i64) -> i64 {
    code(person, "PUT", &format!("/im/group/{verb}-message"), json!({"id": group, "messageId": message})).await
}

async fn pins(person: &Person, id: i64) -> Vec<i64> {
    let pins = group(person, id).await["pinnedMessages"].take();
    pins.as_array().map_or(Vec::new(), |pins| pins.iter().map(id_of).collect())
}

async fn admins_are_made_and_unmade_up_to_their_limit(backend: Backend) {
    let mut config = Config::default();
    config.group.admin_max_count = 2;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let crew = Crew::gather(&app).await;
    let (third, fourth) = (app.user("third").await, app.user("fourth").await);
    for person in [&third, &fourth] {
        befriend(&crew.owner, person).await;
        assert_eq!(invite(&crew.owner, crew.group, &[person.id]).await, 0);
    }
    let mut watch = crew.connect().await;
    let (owner, admin, normal) = (crew.owner.id, crew.admin.id, crew.member.id);
    for verb in ["add-admin", "remove-admin"] {
        let refused = [(vec![normal, crew.outsider.id], ADMIN_NOT_IN_GROUP), (vec![normal, owner], ADMIN_IS_OWNER)];
        for (targets, expected) in refused {
            assert_eq!(change_admins(&crew.owner, verb, crew.group, &targets).await, expected);
        }
    }
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[normal, third.id]).await, ADMIN_LIMIT);
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[admin]).await, 0);
    assert_eq!(change_admins(&crew.owner, "remove-admin", crew.group, &[normal]).await, 0);
    watch.nothing().await;
    // Only those for whom it is new are named.
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[normal, admin, normal]).await, 0);
    let content = watch.event(&crew.owner, 1517).await.content;
    assert_eq!(content, json!({"operatorUserId": owner, "memberUserIds": [normal]}));
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[third.id]).await, ADMIN_LIMIT);
    assert_eq!(change_admins(&crew.owner, "remove-admin", crew.group, &[fourth.id, normal, admin]).await, 0);
    let content = watch.event(&crew.owner, 1518).await.content;
    assert_eq!(content, json!({"operatorUserId": owner, "memberUserIds": [admin, normal]}));
    for person in [&crew.admin, &crew.member] {
        assert_eq!(member(&crew.owner, crew.group, person).await["role"], 3);
    }
    // An admin who left counts no more.
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[normal, admin]).await, 0);
    assert_eq!(quit(&crew.member, crew.group).await, 0);
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[third.id]).await, 0);
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[normal]).await, ADMIN_NOT_IN_GROUP);
}

async fn a_transfer_makes_the_old_owner_a_normal_member(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mute = json!({"id": crew.group, "userId": crew.admin.id, "mutedSeconds": 0});
    put(&crew.owner, "/im/group/mute-member", mute).await;
    let mut watch = crew.connect().await;
    put(&crew.owner, "/im/group/transfer-owner", json!({"id": crew.group, "newOwnerUserId": crew.admin.id})).await;
    let event = watch.event(&crew.owner, 1507).await;
    assert_eq!(event.content, json!({"operatorUserId": crew.owner.id, "newOwnerUserId": crew.admin.id}));
    assert_eq!(group(&crew.member, crew.group).await["ownerUserId"], crew.admin.id);
    let (old, new) =
        (member(&crew.member, crew.group, &crew.owner).await, member(&crew.member, crew.group, &crew.admin).await);
    assert_eq!((&old["role"], &new["role"]), (&json!(3), &json!(1)));
    // A mute stays, and silences even an owner.
    assert_eq!(code_of(&try_say(&crew.admin, crew.group, "x").await), MUTED);
    // The rights have moved.
    assert_eq!(quit(&crew.admin, crew.group).await, 1_040_500_003);
    assert_eq!(quit(&crew.owner, crew.group).await, 0);
}

async fn new_managers_pull_the_waiting_requests(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    put(&crew.owner, "/im/group/update", json!({"id": crew.group, "joinApproval": true})).await;
    let mut requests = Vec::new();
    for name in ["one", "two", "three"] {
        let applicant = app.user(name).await;
        requests
            .push(applicant.post("/im/group-request/apply", json!({"groupId": crew.group})).await.as_i64().unwrap());
    }
    let refused = requests.pop().unwrap();
    crew.owner.put(&format!("/im/group-request/refuse?id={refused}")).await;
    // A device of the member is up to date with everything that has happened.
    let newest = pull_states(&crew.owner, "/im/group-request", None, 10).await;
    let cursor = crate::support::friends::position(newest.last().unwrap());
    let news = async |person: &Person| -> Vec<i64> {
        let mut ids: Vec<i64> =
            pull_states(person, "/im/group-request", Some(cursor), 1).await.iter().map(id_of).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(news(&crew.member).await, [0; 0]);
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[crew.member.id]).await, 0);
    assert_eq!(news(&crew.member).await, requests);
    assert_eq!(change_admins(&crew.owner, "remove-admin", crew.group, &[crew.member.id]).await, 0);
    assert_eq!(news(&crew.member).await, [0; 0]);
    put(&crew.owner, "/im/group/transfer-owner", json!({"id": crew.group, "newOwnerUserId": crew.member.id})).await;
    assert_eq!(news(&crew.member).await, requests);
    assert_eq!(news(&crew.owner).await, [0; 0]);
}

async fn a_muted_group_hears_only_its_managers(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    // The event comes always, also when nothing changes.
    for (muted, event) in [(true, 1514), (true, 1514), (false, 1515), (false, 1515), (true, 1514)] {
        put(&crew.admin, "/im/group/mute-all", json!({"id": crew.group, "mutedAll": muted})).await;
        let content = watch.event(&crew.admin, event).await.content;
        assert_eq!(content, json!({"operatorUserId": crew.admin.id}));
        assert_eq!(group(&crew.member, crew.group).await["mutedAll"], muted);
        let expected = if muted { GROUP_MUTED } else { 0 };
        assert_eq!(code_of(&try_say(&crew.member, crew.group, "x").await), expected);
        say(&crew.owner, crew.group, "x").await;
        say(&crew.admin, crew.group, "x").await;
        watch.skip().await;
    }
    // Nothing else is muted.
    put(&crew.member, "/im/group-member/update", json!({"groupId": crew.group, "displayUserName": "m"})).await;
    assert_eq!(quit(&crew.member, crew.group).await, 0);
}

async fn a_muted_member_is_silent_until_the_time_he_is_told(backend: Backend) {
    let clock = ManualClock::at(NOW);
    let app = TestApp::start_with(backend, Setup { clock: Some(clock.clock()), ..Setup::default() }).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    let target = crew.member.id;
    let mute = async |seconds: Value| {
        let body = json!({"id": crew.group, "userId": target, "mutedSeconds": seconds});
        put(&crew.admin, "/im/group/mute-member", body).await
    };
    mute(json!("600")).await;
    let told = watch.event(&crew.admin, 1512).await.content;
    let end = told["muteEndTime"].as_i64().unwrap();
    assert_eq!(told, json!({"operatorUserId": crew.admin.id, "mutedUserId": target, "muteEndTime": end}));
    assert_eq!(end, NOW + 600_000);
    assert_eq!(member(&crew.owner, crew.group, &crew.member).await["muteEndTime"], end);
    let refused = try_say(&crew.member, crew.group, "x").await;
    assert_eq!(code_of(&refused), MUTED);
    assert!(refused["msg"].as_str().unwrap().contains("2050-01-01T00:10:00"), "{refused}");
    clock.jump(599_999);
    assert_eq!(code_of(&try_say(&crew.member, crew.group, "x").await), MUTED);
    watch.nothing().await;
    // It ends by itself and nobody is told.
    clock.jump(1);
    say(&crew.member, crew.group, "x").await;
    watch.skip().await;

    mute(json!(0)).await;
    let content = watch.event(&crew.admin, 1512).await.content;
    assert_eq!(content["muteEndTime"], 253_402_214_400_000_i64);
    let refused = try_say(&crew.member, crew.group, "x").await;
    assert!(refused["msg"].as_str().unwrap().contains("9999-12-31T00:00:00"), "{refused}");
    // Lifted; the event comes also where there was no mute.
    for _ in 0..2 {
        put(&crew.owner, "/im/group/cancel-mute-member", json!({"id": crew.group, "userId": target})).await;
        let content = watch.event(&crew.owner, 1513).await.content;
        assert_eq!(content, json!({"operatorUserId": crew.owner.id, "mutedUserId": target}));
        assert_eq!(member(&crew.owner, crew.group, &crew.member).await["muteEndTime"], Value::Null);
        say(&crew.member, crew.group, "x").await;
        watch.skip().await;
    }
}

async fn a_message_to_all_can_be_pinned_up_to_the_limit(backend: Backend) {
    let mut config = Config::default();
    config.group.pin_max_count = 2;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let crew = Crew::gather(&app).await;
    let mut messages = Vec::new();
    for text in ["one", "two", "three"] {
        messages.push(say(&crew.member, crew.group, text).await);
    }
    let mut watch = crew.connect().await;
    assert_eq!(pin(&crew.admin, "pin", crew.group, messages[1]).await, 0);
    let told = watch.event(&crew.admin, 1531).await.content;
    let send_time = told["message"]["sendTime"].clone();
    assert!(send_time.as_i64() > Some(0));
    let message = json!({"id": messages[1], "senderId": crew.member.id, "groupId": crew.group, "type": 101,
        "content": "{\"content\":\"two\"}", "sendTime": send_time, "atUserIds": null, "receiverUserIds": null});
    assert_eq!(told, json!({"operatorUserId": crew.admin.id, "messageId": messages[1], "message": message}));
    assert_eq!(pin(&crew.owner, "pin", crew.group, messages[0]).await, 0);
    watch.event(&crew.owner, 1531).await;
    assert_eq!(pin(&crew.owner, "pin", crew.group, messages[0]).await, ALREADY_PINNED);
    assert_eq!(pin(&crew.owner, "pin", crew.group, messages[2]).await, PIN_LIMIT);
    assert_eq!(pin(&crew.owner, "unpin", crew.group, messages[2]).await, NOT_PINNED);
    watch.nothing().await;
    assert_eq!(pins(&crew.member, crew.group).await, [messages[1], messages[0]]);
    // A recalled pin can be taken away.
    crew.member.delete(&format!("/im/message/group/recall?id={}", messages[1])).await;
    watch.skip().await;
    assert_eq!(pins(&crew.member, crew.group).await, [messages[1], messages[0]]);
    assert_eq!(pin(&crew.owner, "unpin", crew.group, messages[1]).await, 0);
    let told = watch.event(&crew.owner, 1532).await.content;
    assert_eq!(told, json!({"operatorUserId": crew.owner.id, "messageId": messages[1]}));
    assert_eq!(pins(&crew.member, crew.group).await, [messages[0]]);
    assert_eq!(pin(&crew.owner, "unpin", crew.group, messages[0]).await, 0);
    assert_eq!(group(&crew.member, crew.group).await["pinnedMessages"], Value::Null);
}

async fn only_what_its_admin_sees_and_users_sent_can_be_pinned(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let seen = say(&crew.member, crew.group, "seen").await;
    assert_eq!(quit(&crew.admin, crew.group).await, 0);
    let unseen = say(&crew.member, crew.group, "unseen").await;
    assert_eq!(invite(&crew.owner, crew.group, &[crew.admin.id]).await, 0);
    assert_eq!(change_admins(&crew.owner, "add-admin", crew.group, &[crew.admin.id]).await, 0);
    let other = crate::support::groups::make_group(&crew.admin, &[]).await;
    let elsewhere = say(&crew.admin, other, "elsewhere").await;
    let recalled = say(&crew.admin, crew.group, "recalled").await;
    data(crew.admin.call("DELETE", &format!("/im/message/group/recall?id={recalled}"), None).await);
    for id in [unseen, elsewhere, recalled, recalled + 1, seen - 1, NOBODY, 0, -1] {
        assert_eq!(pin(&crew.admin, "pin", crew.group, id).await, NOT_IN_GROUP, "{id}");
    }
    // Only the server makes directed messages.
    let directed = say(&crew.owner, crew.group, "directed").await;
    let mut tables = SecondConnection::open(&app.database.url).await;
    let receivers = format!("{},{}", crew.owner.id, crew.admin.id);
    tables
        .execute(&format!("UPDATE im_group_message SET receiver_user_ids = '{receivers}' WHERE id = {directed}"))
        .await;
    assert_eq!(pin(&crew.owner, "pin", crew.group, directed).await, DIRECTED);
    assert_eq!(pins(&crew.owner, crew.group).await, [0; 0]);
    // What one admin sees he may show to all, also to those who joined later.
    assert_eq!(pin(&crew.admin, "pin", crew.group, seen).await, 0);
    assert_eq!(pin(&crew.owner, "pin", crew.group, unseen).await, 0);
    assert_eq!(pins(&crew.admin, crew.group).await, [seen, unseen]);
    assert!(!pulled_after(&crew.admin, unseen - 1).await.is_empty());
    assert_eq!(pin(&crew.outsider, "pin", crew.group, seen).await, NOT_MEMBER);
    set_row(&app, crew.group, "pinned_message_ids = ''").await;
    assert_eq!(pins(&crew.admin, crew.group).await, [0; 0]);
}
