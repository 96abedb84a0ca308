//! `groupListTime` of `/im/sync`: a device that asks with it gets its group list whenever something in it has changed.

use serde_json::{Value, json};

use crate::support::app::{Person, TestApp};
use crate::support::databases::{Backend, on_every_database};
use crate::support::groups::{Crew, code, say};

on_every_database! {
    a_device_gets_its_group_list_whenever_it_has_changed,
}

/// The new list and its time, or nothing.
async fn sync(person: &Person, time: i64) -> Option<(Value, i64)> {
    let answer = person.post("/im/sync", json!({"groupListTime": time})).await;
    let list = answer["groupList"].clone();
    (!list.is_null()).then(|| (list["list"].clone(), list["time"].as_i64().unwrap()))
}

async fn a_device_gets_its_group_list_whenever_it_has_changed(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let Crew { owner, admin, member, outsider, group } = &crew;
    let operator = &app.operator().await;
    let people = [owner, admin, member, outsider];
    let message = say(member, *group, "a word").await;
    let pin = json!({"id": group, "messageId": message});
    let own = |mut change: Value| {
        change["groupId"] = json!(group);
        change
    };
    let users = |user: &Person| json!({"groupId": group, "memberUserIds": [user.id]});
    let update = |mut change: Value| {
        change["id"] = json!(group);
        change
    };
    let target = json!({"id": group, "userId": member.id, "mutedSeconds": 60});
    let admins = json!({"id": group, "userIds": [member.id]});
    let recall = format!("/im/message/group/recall?id={message}");
    let unban = format!("/im/manager/group/unban?id={group}");
    let dissolve = format!("/im/group/dissolve?id={group}");
    const UPDATE: &str = "/im/group/update";
    const MEMBER: &str = "/im/group-member/update";
    // Whose list looks different then: of owner, admin, member, outsider.
    let members = [true, true, true, false];
    let nobody = [false; 4];
    let steps = [
        (owner, "PUT", UPDATE, update(json!({"name": "new"})), members),
        (owner, "PUT", UPDATE, update(json!({"notice": "new"})), members),
        (owner, "PUT", UPDATE, update(json!({"avatar": "/new.png"})), members),
        (owner, "PUT", UPDATE, update(json!({"joinApproval": true})), members),
        (owner, "PUT", UPDATE, update(json!({"joinApproval": true})), nobody),
        (member, "PUT", MEMBER, own(json!({"silent": true})), [false, false, true, false]),
        (member, "PUT", MEMBER, own(json!({"groupRemark": "mine"})), [false, false, true, false]),
        (member, "PUT", MEMBER, own(json!({"displayUserName": "me"})), nobody),
        (admin, "PUT", "/im/group/mute-all", json!({"id": group, "mutedAll": true}), members),
        (admin, "PUT", "/im/group/mute-member", target.clone(), nobody),
        (admin, "PUT", "/im/group/cancel-mute-member", target, nobody),
        (admin, "PUT", "/im/group/pin-message", pin.clone(), members),
        (member, "DELETE", recall.as_str(), Value::Null, members),
        (admin, "PUT", "/im/group/unpin-message", pin, members),
        (owner, "PUT", "/im/group/add-admin", admins.clone(), nobody),
        (owner, "PUT", "/im/group/remove-admin", admins, nobody),
        (operator, "PUT", "/im/manager/group/ban", json!({"id": group, "reason": "spam"}), members),
        (operator, "PUT", "/im/manager/group/ban", json!({"id": group, "reason": "spam"}), nobody),
        (operator, "PUT", unban.as_str(), Value::Null, members),
        (operator, "PUT", unban.as_str(), Value::Null, nobody),
        (outsider, "POST", "/im/group-request/apply", json!({"groupId": group}), nobody),
        (owner, "POST", "/im/group/invite", users(outsider), [false, false, false, true]),
        (admin, "DELETE", "/im/group/kicking", users(member), [false, false, true, false]),
        // From here on the former member still has the group in his list.
        (owner, "PUT", "/im/group/transfer-owner", json!({"id": group, "newOwnerUserId": admin.id}), [true; 4]),
        (admin, "DELETE", dissolve.as_str(), Value::Null, [true; 4]),
    ];
    let mut known = Vec::new();
    for person in people {
        known.push(sync(person, 0).await.unwrap_or((json!([]), 0)));
    }
    for (caller, method, path, body, expected) in steps {
        let what = format!("{method} {path} {body}");
        assert_eq!(code(caller, method, path, body).await, 0, "{what}");
        for ((person, known), expected) in people.iter().zip(&mut known).zip(expected) {
            let list = person.get("/im/group/list").await;
            assert_eq!(list != known.0, expected, "{what}: the list of {}", person.external_id);
            match sync(person, known.1).await {
                Some((news, time)) => {
                    assert_eq!(news, list);
                    assert!(time > known.1);
                    *known = (news, time);
                }
                None => assert!(!expected, "{what}: {} is not told", person.external_id),
            }
            assert_eq!(sync(person, known.1).await, None, "once is enough");
        }
    }
}
