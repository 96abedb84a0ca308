//! The form of requests about groups: who is not signed in, what is malformed, and ids of nothing.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::check_forms;
use crate::support::groups::{NOBODY, NOT_FRIENDS, NOT_MEMBER, code, make_group};

on_every_database! {
    malformed_and_unsigned_requests_are_refused,
    ids_of_nothing_are_refused_by_rule,
}

const TO_SELF: i64 = 1_040_400_005;
const ADMIN_TARGET_GONE: i64 = 1_040_500_007;
const ADMIN_TARGET_IS_OWNER: i64 = 1_040_500_008;
const REQUEST_NOT_FOUND: i64 = 1_040_510_001;

async fn malformed_and_unsigned_requests_are_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let users = json!({"id": 1, "userIds": [1]});
    let members = json!({"groupId": 1, "memberUserIds": [1]});
    let calls = [
        ("POST", "/im/group/create", json!({"name": "us"})),
        ("PUT", "/im/group/update", json!({"id": 1})),
        ("DELETE", "/im/group/dissolve?id=1", Value::Null),
        ("GET", "/im/group/get?id=1", Value::Null),
        ("GET", "/im/group/list", Value::Null),
        ("POST", "/im/group/invite", members.clone()),
        ("DELETE", "/im/group/quit?groupId=1", Value::Null),
        ("DELETE", "/im/group/kicking", members),
        ("PUT", "/im/group/add-admin", users.clone()),
        ("PUT", "/im/group/remove-admin", users),
        ("PUT", "/im/group/transfer-owner", json!({"id": 1, "newOwnerUserId": 1})),
        ("PUT", "/im/group/pin-message", json!({"id": 1, "messageId": 1})),
        ("PUT", "/im/group/unpin-message", json!({"id": 1, "messageId": 1})),
        ("PUT", "/im/group/mute-all", json!({"id": 1, "mutedAll": true})),
        ("PUT", "/im/group/mute-member", json!({"id": 1, "userId": 1, "mutedSeconds": 1})),
        ("PUT", "/im/group/cancel-mute-member", json!({"id": 1, "userId": 1})),
        ("PUT", "/im/group-member/update", json!({"groupId": 1})),
        ("GET", "/im/group-member/get?id=1", Value::Null),
        ("GET", "/im/group-member/list?groupId=1", Value::Null),
        ("POST", "/im/group-request/apply", json!({"groupId": 1})),
        ("PUT", "/im/group-request/agree?id=1", Value::Null),
        ("PUT", "/im/group-request/refuse?id=1", Value::Null),
        ("GET", "/im/group-request/unhandled-list", Value::Null),
        ("GET", "/im/group-request/pull?limit=1", Value::Null),
        ("GET", "/im/group-request/list-by-group?groupId=1", Value::Null),
        ("GET", "/im/group-request/get?id=1", Value::Null),
    ];
    let long = |count: usize| "ö".repeat(count);
    let crowd: Vec<i64> = (1..=1_001).collect();
    let malformed = [
        ("POST", "/im/group/create", json!({})),
        ("POST", "/im/group/create", json!({"name": " "})),
        ("POST", "/im/group/create", json!({"name": long(65)})),
        ("POST", "/im/group/create", json!({"name": "us", "memberUserIds": ["x"]})),
        ("POST", "/im/group/create", json!({"name": "us", "memberUserIds": crowd})),
        ("PUT", "/im/group/update", json!({"name": "us"})),
        ("PUT", "/im/group/update", json!({"id": 1, "name": ""})),
        ("PUT", "/im/group/update", json!({"id": 1, "name": long(65)})),
        ("PUT", "/im/group/update", json!({"id": 1, "avatar": ""})),
        ("PUT", "/im/group/update", json!({"id": 1, "avatar": long(513)})),
        ("PUT", "/im/group/update", json!({"id": 1, "notice": long(2_049)})),
        ("PUT", "/im/group/update", json!({"id": 1, "joinApproval": "maybe"})),
        ("DELETE", "/im/group/dissolve", Value::Null),
        ("DELETE", "/im/group/dissolve?id=x", Value::Null),
        ("GET", "/im/group/get?id=99999999999999999999", Value::Null),
        ("POST", "/im/group/invite", json!({"groupId": 1, "memberUserIds": []})),
        ("POST", "/im/group/invite", json!({"groupId": 1})),
        ("POST", "/im/group/invite", json!({"groupId": 1, "memberUserIds": crowd})),
        ("DELETE", "/im/group/quit?groupId=", Value::Null),
        ("DELETE", "/im/group/kicking", Value::Null),
        ("DELETE", "/im/group/kicking", json!({"groupId": 1, "memberUserIds": []})),
        ("PUT", "/im/group/add-admin", json!({"id": 1, "userIds": []})),
        ("PUT", "/im/group/remove-admin", json!({"id": 1})),
        ("PUT", "/im/group/transfer-owner", json!({"id": 1})),
        ("PUT", "/im/group/pin-message", json!({"id": 1, "messageId": null})),
        ("PUT", "/im/group/unpin-message", json!({"messageId": 1})),
        ("PUT", "/im/group/mute-all", json!({"id": 1})),
        ("PUT", "/im/group/mute-member", json!({"id": 1, "userId": 1})),
        ("PUT", "/im/group/mute-member", json!({"id": 1, "userId": 1, "mutedSeconds": -1})),
        ("PUT", "/im/group/mute-member", json!({"id": 1, "userId": 1, "mutedSeconds": 2_147_483_648_i64})),
        ("PUT", "/im/group/cancel-mute-member", json!({"id": 1})),
        ("PUT", "/im/group-member/update", json!({"silent": true})),
        ("PUT", "/im/group-member/update", json!({"groupId": 1, "displayUserName": long(65)})),
        ("PUT", "/im/group-member/update", json!({"groupId": 1, "groupRemark": long(65)})),
        ("GET", "/im/group-member/get", Value::Null),
        ("GET", "/im/group-member/get?groupId=1", Value::Null),
        ("GET", "/im/group-member/get?userId=1", Value::Null),
        ("GET", "/im/group-member/list", Value::Null),
        ("POST", "/im/group-request/apply", json!({"applyContent": "x"})),
        ("POST", "/im/group-request/apply", json!({"groupId": 1, "applyContent": long(256)})),
        ("POST", "/im/group-request/apply", json!({"groupId": 1, "addSource": 0})),
        ("POST", "/im/group-request/apply", json!({"groupId": 1, "addSource": 5})),
        ("PUT", "/im/group-request/agree", Value::Null),
        ("PUT", "/im/group-request/refuse?id=x", Value::Null),
        ("GET", "/im/group-request/pull", Value::Null),
        ("GET", "/im/group-request/pull?limit=0", Value::Null),
        ("GET", "/im/group-request/pull?limit=201", Value::Null),
        ("GET", "/im/group-request/list-by-group", Value::Null),
        ("GET", "/im/group-request/get?id=", Value::Null),
    ];
    check_forms(&alice, &calls, &malformed).await;
    let long_reason = format!("/im/group-request/refuse?id=1&handleContent={}", "x".repeat(256));
    assert_eq!(code(&alice, "PUT", &long_reason, Value::Null).await, 400);
}

async fn ids_of_nothing_are_refused_by_rule(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    for id in [0, -1, NOBODY, i64::MAX] {
        for verb in ["agree", "refuse"] {
            let path = format!("/im/group-request/{verb}?id={id}");
            assert_eq!(code(&alice, "PUT", &path, Value::Null).await, REQUEST_NOT_FOUND);
        }
        let create = json!({"name": "us", "memberUserIds": [id]});
        assert_eq!(code(&alice, "POST", "/im/group/create", create).await, NOT_FRIENDS);
    }
    let group = make_group(&alice, &[]).await;
    let cases = [
        ("/im/group/add-admin", json!({"id": group, "userIds": [alice.id, NOBODY]}), ADMIN_TARGET_GONE),
        ("/im/group/add-admin", json!({"id": group, "userIds": [alice.id]}), ADMIN_TARGET_IS_OWNER),
        ("/im/group/remove-admin", json!({"id": group, "userIds": [alice.id]}), ADMIN_TARGET_IS_OWNER),
        ("/im/group/transfer-owner", json!({"id": group, "newOwnerUserId": alice.id}), TO_SELF),
        ("/im/group/transfer-owner", json!({"id": group, "newOwnerUserId": NOBODY}), NOT_MEMBER),
    ];
    for (path, body, expected) in cases {
        assert_eq!(code(&alice, "PUT", path, body.clone()).await, expected, "{path} {body}");
    }
}
