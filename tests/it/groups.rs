//! Groups: making, changing, showing and dissolving them, and who is told of it.

use nudge::config::Config;
use serde_json::{Value, json};

use crate::support::app::{Setup, TestApp, befriend, data, id_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{code_of, only_push, unfriend};
use crate::support::groups::{
    Crew, GROUP_DISSOLVED, GROUP_NOT_FOUND, MEMBER_LIMIT, NOBODY, NOT_FRIENDS, NOT_OWNER, code, dissolve, group,
    member, pulled_after, put, quit, read_event, say, set_row,
};

on_every_database! {
    a_new_group_has_its_founder_and_his_friends,
    only_own_friends_can_be_founding_members,
    a_new_group_keeps_the_member_limit,
    each_change_of_a_group_is_an_event_of_its_own,
    unchanged_values_are_told_to_nobody,
    a_group_is_shown_to_everybody_but_its_pins_only_to_members,
    the_list_holds_left_and_dissolved_groups,
    a_dissolved_group_has_no_members,
    a_banned_group_can_be_dissolved,
}

async fn a_new_group_has_its_founder_and_his_friends(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    let (mut alices, mut bobs, mut carols) = (alice.connect().await, bob.connect().await, carol.connect().await);
    // Repeated ids and the founder himself are passed over; ids may be texts.
    let members = json!([bob.id.to_string(), carol.id, bob.id, alice.id]);
    let name = "ä".repeat(64);
    let body = json!({"name": name, "memberUserIds": members, "joinApproval": true});
    let made = alice.post("/im/group/create", body).await;
    let id = id_of(&made);
    let create_time = made["createTime"].clone();
    assert!(create_time.as_i64() > Some(0));
    let expected = json!({"id": id, "name": name, "ownerUserId": alice.id, "avatar": null, "notice": null,
        "banned": false, "mutedAll": false, "joinApproval": true, "bannedTime": null, "dissolvedTime": null,
        "createTime": create_time, "status": 0, "joinStatus": 0, "groupRemark": null, "silent": false,
        "pinnedMessages": null});
    assert_eq!(made, expected);
    assert_eq!(group(&bob, id).await, expected);

    let push = only_push([&mut alices, &mut bobs, &mut carols]).await;
    let event = read_event(&push, &alice, id, 1501);
    let everybody = json!([alice.id, bob.id, carol.id]);
    assert_eq!(event.content, json!({"operatorUserId": alice.id, "memberUserIds": everybody}));
    assert!(event.id.is_some());
    for person in [&alice, &bob, &carol] {
        assert_eq!(pulled_after(person, 0).await, [1501]);
    }
    let roles = async |user| member(&bob, id, user).await["role"].clone();
    assert_eq!((roles(&alice).await, roles(&bob).await), (json!(1), json!(3)));
}

async fn only_own_friends_can_be_founding_members(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (carol, dave) = (app.user("carol").await, app.user("dave").await);
    befriend(&alice, &dave).await;
    unfriend(&dave, &alice).await;
    let create = async |members: Value| {
        let body = json!({"name": "us", "memberUserIds": members});
        alice.call("POST", "/im/group/create", Some(body)).await
    };
    let refused = create(json!([bob.id, carol.id, NOBODY])).await;
    assert_eq!(code_of(&refused), NOT_FRIENDS);
    let text = refused["msg"].as_str().unwrap();
    assert!(text.contains("carol") && text.contains(&NOBODY.to_string()) && !text.contains("bob"), "{text}");
    assert_eq!(alice.get("/im/group/list").await, json!([]));
    // The other side's row does not matter.
    assert_eq!(code_of(&create(json!([dave.id])).await), 0);
    unfriend(&alice, &dave).await;
    assert_eq!(code_of(&create(json!([dave.id])).await), NOT_FRIENDS);
    assert_eq!(code_of(&create(Value::Null).await), 0);
}

async fn a_new_group_keeps_the_member_limit(backend: Backend) {
    let mut config = Config::default();
    config.group.max_member = 2;
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    let create = async |members: Value| {
        code(&alice, "POST", "/im/group/create", json!({"name": "us", "memberUserIds": members})).await
    };
    // Friendship is looked at first.
    assert_eq!(create(json!([bob.id, carol.id])).await, NOT_FRIENDS);
    befriend(&alice, &carol).await;
    assert_eq!(create(json!([bob.id, carol.id])).await, MEMBER_LIMIT);
    assert_eq!(create(json!([bob.id, alice.id, bob.id])).await, 0);
}

async fn each_change_of_a_group_is_an_event_of_its_own(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    let owner = crew.owner.id;
    let changes =
        json!({"id": crew.group, "name": "them", "notice": "be nice", "avatar": "/a.png", "joinApproval": true});
    let changed = put(&crew.owner, "/im/group/update", changes).await;
    assert_eq!(changed, group(&crew.owner, crew.group).await);
    let shown = ["name", "notice", "avatar", "joinApproval"].map(|key| changed[key].clone());
    assert_eq!(shown, [json!("them"), json!("be nice"), json!("/a.png"), json!(true)]);
    let info = |avatar: [Value; 2], approval: [Value; 2]| {
        let [old, new] = avatar;
        let [old_approval, new_approval] = approval;
        json!({"operatorUserId": owner, "oldAvatar": old, "newAvatar": new, "oldJoinApproval": old_approval,
            "newJoinApproval": new_approval})
    };
    let none = || [Value::Null, Value::Null];
    let expected = [
        (1520, json!({"operatorUserId": owner, "oldName": "us", "newName": "them"})),
        (1519, json!({"operatorUserId": owner, "oldNotice": null, "newNotice": "be nice"})),
        (1502, info([Value::Null, json!("/a.png")], none())),
        (1502, info(none(), [json!(false), json!(true)])),
    ];
    for socket in &mut watch.members {
        let pushes = socket.drain().await;
        assert_eq!(pushes.len(), expected.len(), "{pushes:?}");
        for (push, (content_type, content)) in pushes.iter().zip(&expected) {
            assert_eq!(read_event(push, &crew.owner, crew.group, *content_type).content, *content);
        }
    }
    watch.nothing().await;
    assert_eq!(pulled_after(&crew.member, 0).await, [1501, 1517, 1520, 1519, 1502, 1502]);
    // An empty notice takes it away, and one field alone is one event.
    put(&crew.owner, "/im/group/update", json!({"id": crew.group, "notice": ""})).await;
    let content = watch.event(&crew.owner, 1519).await.content;
    assert_eq!(content, json!({"operatorUserId": owner, "oldNotice": "be nice", "newNotice": ""}));
}

async fn unchanged_values_are_told_to_nobody(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let values = json!({"id": crew.group, "name": "us", "notice": "n", "avatar": "/a.png", "joinApproval": false});
    put(&crew.owner, "/im/group/update", values.clone()).await;
    let mut watch = crew.connect().await;
    let before = group(&crew.owner, crew.group).await;
    assert_eq!(put(&crew.owner, "/im/group/update", values).await, before);
    put(&crew.owner, "/im/group/update", json!({"id": crew.group})).await;
    watch.nothing().await;
    assert_eq!(pulled_after(&crew.member, 0).await, [1501, 1517, 1519, 1502]);
}

async fn a_group_is_shown_to_everybody_but_its_pins_only_to_members(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let (first, second) = (say(&crew.owner, crew.group, "one").await, say(&crew.admin, crew.group, "two").await);
    for id in [second, first] {
        put(&crew.admin, "/im/group/pin-message", json!({"id": crew.group, "messageId": id})).await;
    }
    put(&crew.member, "/im/group-member/update", json!({"groupId": crew.group, "groupRemark": "mine", "silent": true}))
        .await;
    let own = group(&crew.member, crew.group).await;
    assert_eq!((&own["groupRemark"], &own["silent"], &own["joinStatus"]), (&json!("mine"), &json!(true), &json!(0)));
    let pins = own["pinnedMessages"].as_array().unwrap();
    assert_eq!(pins.iter().map(id_of).collect::<Vec<_>>(), [second, first], "the oldest pin is first");
    assert_eq!(pins[1]["content"], json!({"content": "one"}).to_string());
    let keys = "atUserIds clientMessageId content groupId id readCount receiptStatus receiverUserIds sendTime senderId \
        status type";
    let mut found: Vec<&str> = pins[0].as_object().unwrap().keys().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found.join(" "), keys);
    let foreign = group(&crew.outsider, crew.group).await;
    let shown = ["joinStatus", "silent", "groupRemark", "pinnedMessages"].map(|key| foreign[key].clone());
    assert_eq!(shown, [json!(1), Value::Null, Value::Null, Value::Null]);
    // A recalled one stays in its place, without its content.
    crew.owner.delete(&format!("/im/message/group/recall?id={first}")).await;
    let pins = group(&crew.member, crew.group).await["pinnedMessages"].take();
    assert_eq!((pins[1]["status"].clone(), pins[1]["content"].clone()), (json!(2), json!("{}")));
    assert_eq!(pins[0]["status"], 0);
    // One whose row is gone is left out.
    set_row(&app, crew.group, &format!("pinned_message_ids = '{NOBODY},{second}'")).await;
    let pins = group(&crew.member, crew.group).await["pinnedMessages"].take();
    assert_eq!(pins.as_array().unwrap().iter().map(id_of).collect::<Vec<_>>(), [second]);
    // A former member sees his remark and no pins.
    assert_eq!(quit(&crew.member, crew.group).await, 0);
    let left = group(&crew.member, crew.group).await;
    let shown = ["joinStatus", "silent", "groupRemark", "pinnedMessages"].map(|key| left[key].clone());
    assert_eq!(shown, [json!(1), json!(true), json!("mine"), Value::Null]);
    assert_eq!(group(&crew.member, NOBODY).await, Value::Null);
}

async fn the_list_holds_left_and_dissolved_groups(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut groups = Vec::new();
    for name in ["kept", "left", "kicked from", "dissolved", "banned"] {
        let body = json!({"name": name, "memberUserIds": [bob.id]});
        groups.push(id_of(&alice.post("/im/group/create", body).await));
    }
    id_of(&alice.post("/im/group/create", json!({"name": "without bob"})).await);
    assert_eq!(quit(&bob, groups[1]).await, 0);
    let body = json!({"groupId": groups[2], "memberUserIds": [bob.id]});
    data(alice.call("DELETE", "/im/group/kicking", Some(body)).await);
    assert_eq!(dissolve(&alice, groups[3]).await, 0);
    set_row(&app, groups[4], "banned = TRUE, banned_time = 5").await;
    let list = bob.get("/im/group/list").await;
    let rows = list.as_array().unwrap();
    let shown: Vec<_> = rows.iter().map(|row| (id_of(row), row["joinStatus"].clone(), row["status"].clone())).collect();
    let expected: Vec<_> = groups
        .iter()
        .zip([(0, 0), (1, 0), (1, 0), (1, 1), (0, 0)])
        .map(|(id, (a, b))| (*id, json!(a), json!(b)))
        .collect();
    assert_eq!(shown, expected);
    assert_eq!((rows[4]["banned"].clone(), rows[4]["bannedTime"].clone()), (json!(true), json!(5)));
    for (row, id) in rows.iter().zip(&groups) {
        assert_eq!(*row, group(&bob, *id).await);
    }
}

async fn a_dissolved_group_has_no_members(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let mut watch = crew.connect().await;
    for person in [&crew.admin, &crew.member, &crew.outsider] {
        assert_eq!(dissolve(person, crew.group).await, NOT_OWNER);
    }
    watch.nothing().await;
    assert_eq!(dissolve(&crew.owner, crew.group).await, 0);
    let event = watch.event(&crew.owner, 1511).await;
    assert_eq!(event.content, json!({"operatorUserId": crew.owner.id}));
    for person in [&crew.owner, &crew.admin, &crew.member] {
        assert_eq!(pulled_after(person, event.id.unwrap() - 1).await, [1511]);
        let shown = group(person, crew.group).await;
        assert_eq!((&shown["status"], &shown["joinStatus"]), (&json!(1), &json!(1)));
        assert!(shown["dissolvedTime"].as_i64() > Some(0));
    }
    assert_eq!(dissolve(&crew.owner, crew.group).await, GROUP_DISSOLVED);
    assert_eq!(dissolve(&crew.owner, NOBODY).await, GROUP_NOT_FOUND);
    watch.nothing().await;
}

async fn a_banned_group_can_be_dissolved(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    set_row(&app, crew.group, "banned = TRUE").await;
    assert_eq!(dissolve(&crew.member, crew.group).await, NOT_OWNER);
    assert_eq!(dissolve(&crew.owner, crew.group).await, 0);
    assert_eq!(group(&crew.member, crew.group).await["status"], 1);
    assert_eq!(dissolve(&crew.owner, crew.group).await, GROUP_DISSOLVED);
}
