//! Who may do what in a group, and in which state of the group: the tables of the contract, operation by operation.

use serde_json::{Value, json};

use crate::support::app::{Person, TestApp, befriend};
use crate::support::databases::{Backend, on_every_database};
use crate::support::groups::{
    ALREADY_MEMBER, Crew, GROUP_BANNED, GROUP_DISSOLVED, GROUP_NOT_FOUND, NOBODY, NOT_MANAGER, NOT_MEMBER, NOT_OWNER,
    code, dissolve, make_group, put, say, set_row,
};

on_every_database! {
    every_operation_asks_for_its_role,
    the_state_of_a_group_comes_before_everything_else,
    what_a_ban_does_not_stop,
    what_is_left_of_a_dissolved_group,
}

const NOT_VISIBLE: i64 = 1_040_300_000;
const RECALL_DENIED: i64 = 1_040_300_002;
const NOT_PINNED: i64 = 1_040_400_008;
const OWNER_CANNOT_QUIT: i64 = 1_040_500_003;
const KICK_SELF: i64 = 1_040_500_004;
const KICK_OWNER: i64 = 1_040_500_010;
const KICK_ADMIN: i64 = 1_040_500_011;
const MUTE_SELF: i64 = 1_040_500_014;
const MUTE_OWNER: i64 = 1_040_500_015;
const MUTE_ADMIN: i64 = 1_040_500_016;
const REQUEST_NOT_TO_ME: i64 = 1_040_510_003;

/// A group with two admins and two normal members; what a refusal does not change goes on to the next operation.
struct Stage {
    people: [Person; 4],
    second_admin: Person,
    second_member: Person,
    guest: Person,
    applicant: Person,
}

/// What an operation is tried on.
struct Scene {
    group: i64,
    message: i64,
    request: i64,
}

impl Stage {
    async fn set(app: &TestApp) -> Stage {
        let people =
            [app.user("owner").await, app.user("admin").await, app.user("normal").await, app.user("none").await];
        let (second_admin, second_member) = (app.user("admin two").await, app.user("normal two").await);
        let (guest, applicant) = (app.user("guest").await, app.user("applicant").await);
        for other in people.iter().skip(1).take(2).chain([&second_admin, &second_member]) {
            befriend(&people[0], other).await;
        }
        for person in &people {
            befriend(person, &guest).await;
        }
        Stage { people, second_admin, second_member, guest, applicant }
    }

    async fn scene(&self) -> Scene {
        let [owner, admin, normal, _] = &self.people;
        let group = make_group(owner, &[admin, normal, &self.second_admin, &self.second_member]).await;
        let admins = json!({"id": group, "userIds": [admin.id, self.second_admin.id]});
        put(owner, "/im/group/add-admin", admins).await;
        put(owner, "/im/group/update", json!({"id": group, "joinApproval": true})).await;
        let message = say(&self.second_member, group, "a word").await;
        let request = self.applicant.post("/im/group-request/apply", json!({"groupId": group})).await;
        Scene { group, message, request: request.as_i64().unwrap() }
    }
}

type Call = (&'static str, String, Value);

/// An operation, and the codes for owner, admin, normal member and stranger.
type Operation<'a> = (&'static str, Box<dyn Fn(&Scene, i64) -> Call + 'a>, [i64; 4]);

fn op<'a>(name: &'static str, make: impl Fn(&Scene, i64) -> Call + 'a, expected: [i64; 4]) -> Operation<'a> {
    (name, Box::new(make), expected)
}

fn put_call(path: &str, body: Value) -> Call {
    ("PUT", path.to_owned(), body)
}

async fn every_operation_asks_for_its_role(backend: Backend) {
    let app = TestApp::start(backend).await;
    let stage = Stage::set(&app).await;
    let [owner, ..] = &stage.people;
    let (admin2, member2, guest) = (stage.second_admin.id, stage.second_member.id, stage.guest.id);
    let owner_only = [0, NOT_OWNER, NOT_OWNER, NOT_OWNER];
    let managers = [0, 0, NOT_MANAGER, NOT_MEMBER];
    let members = [0, 0, 0, NOT_MEMBER];
    let handlers = [0, 0, REQUEST_NOT_TO_ME, NOT_MEMBER];
    let everybody = [0, 0, 0, 0];
    let kick = |target: i64| {
        move |scene: &Scene, caller: i64| -> Call {
            let target = if target == 0 { caller } else { target };
            ("DELETE", "/im/group/kicking".to_owned(), json!({"groupId": scene.group, "memberUserIds": [target]}))
        }
    };
    let to_user = |path: &'static str, target: i64| {
        move |scene: &Scene, caller: i64| {
            let target = if target == 0 { caller } else { target };
            put_call(path, json!({"id": scene.group, "userId": target, "mutedSeconds": 60}))
        }
    };
    let to_users = |path: &'static str, target: i64| {
        move |scene: &Scene, _: i64| put_call(path, json!({"id": scene.group, "userIds": [target]}))
    };
    let on_request = |verb: &'static str| {
        move |scene: &Scene, _: i64| put_call(&format!("/im/group-request/{verb}?id={}", scene.request), Value::Null)
    };
    let read = |path: &'static str| {
        move |scene: &Scene, _: i64| -> Call { ("GET", format!("{path}{}", scene.group), Value::Null) }
    };
    const MUTE: &str = "/im/group/mute-member";
    const UNMUTE: &str = "/im/group/cancel-mute-member";
    let operations = [
        op("update", |s, _| put_call("/im/group/update", json!({"id": s.group, "name": "new"})), owner_only),
        op("dissolve", |s, _| ("DELETE", format!("/im/group/dissolve?id={}", s.group), Value::Null), owner_only),
        op(
            "transfer",
            |s, _| put_call("/im/group/transfer-owner", json!({"id": s.group, "newOwnerUserId": member2})),
            owner_only,
        ),
        op("add an admin", to_users("/im/group/add-admin", member2), owner_only),
        op("remove an admin", to_users("/im/group/remove-admin", admin2), owner_only),
        op("pin", |s, _| put_call("/im/group/pin-message", json!({"id": s.group, "messageId": s.message})), managers),
        op(
            "unpin",
            |s, _| put_call("/im/group/unpin-message", json!({"id": s.group, "messageId": s.message})),
            [NOT_PINNED, NOT_PINNED, NOT_MANAGER, NOT_MEMBER],
        ),
        op("mute all", |s, _| put_call("/im/group/mute-all", json!({"id": s.group, "mutedAll": true})), managers),
        op("kick a member", kick(member2), managers),
        op("kick an admin", kick(admin2), [0, KICK_ADMIN, NOT_MANAGER, NOT_MEMBER]),
        op("kick the owner", kick(owner.id), [KICK_SELF, KICK_OWNER, NOT_MANAGER, NOT_MEMBER]),
        op("kick oneself", kick(0), [KICK_SELF, KICK_SELF, NOT_MANAGER, NOT_MEMBER]),
        op("mute a member", to_user(MUTE, member2), managers),
        op("mute an admin", to_user(MUTE, admin2), [0, MUTE_ADMIN, NOT_MANAGER, NOT_MEMBER]),
        op("mute the owner", to_user(MUTE, owner.id), [MUTE_SELF, MUTE_OWNER, NOT_MANAGER, NOT_MEMBER]),
        op("mute oneself", to_user(MUTE, 0), [MUTE_SELF; 4]),
        op("mute a stranger", to_user(MUTE, guest), [NOT_MEMBER; 4]),
        op("unmute a member", to_user(UNMUTE, member2), managers),
        op("unmute an admin", to_user(UNMUTE, admin2), [0, MUTE_ADMIN, NOT_MANAGER, NOT_MEMBER]),
        op("unmute the owner", to_user(UNMUTE, owner.id), [MUTE_OWNER, MUTE_OWNER, NOT_MANAGER, NOT_MEMBER]),
        op("unmute oneself", to_user(UNMUTE, 0), [MUTE_OWNER, MUTE_ADMIN, NOT_MANAGER, NOT_MEMBER]),
        op("unmute a stranger", to_user(UNMUTE, guest), [NOT_MEMBER; 4]),
        op(
            "invite",
            |s, _| ("POST", "/im/group/invite".into(), json!({"groupId": s.group, "memberUserIds": [guest]})),
            members,
        ),
        op(
            "quit",
            |s, _| ("DELETE", format!("/im/group/quit?groupId={}", s.group), Value::Null),
            [OWNER_CANNOT_QUIT, 0, 0, NOT_MEMBER],
        ),
        op(
            "apply",
            |s, _| ("POST", "/im/group-request/apply".into(), json!({"groupId": s.group})),
            [ALREADY_MEMBER, ALREADY_MEMBER, ALREADY_MEMBER, 0],
        ),
        op("agree", on_request("agree"), handlers),
        op("refuse", on_request("refuse"), handlers),
        op("requests of the group", read("/im/group-request/list-by-group?groupId="), handlers),
        op(
            "own settings",
            |s, _| put_call("/im/group-member/update", json!({"groupId": s.group, "silent": true})),
            members,
        ),
        op("members", read("/im/group-member/list?groupId="), members),
        op(
            "a member",
            move |s, _| ("GET", format!("/im/group-member/get?groupId={}&userId={member2}", s.group), Value::Null),
            members,
        ),
        op("the group", read("/im/group/get?id="), everybody),
        op(
            "recall",
            |s, _| ("DELETE", format!("/im/message/group/recall?id={}", s.message), Value::Null),
            [0, 0, RECALL_DENIED, NOT_VISIBLE],
        ),
        op("typing", |s, _| put_call(&format!("/im/message/group/typing?groupId={}", s.group), Value::Null), members),
    ];
    let mut scene = stage.scene().await;
    for (name, make, expected) in &operations {
        for (caller, expected) in stage.people.iter().zip(expected) {
            let (method, path, body) = make(&scene, caller.id);
            let answered = code(caller, method, &path, body).await;
            assert_eq!(answered, *expected, "{name}, by {}", caller.external_id);
            if answered == 0 && method != "GET" {
                scene = stage.scene().await;
            }
        }
    }
}

/// Every operation that begins with the gate. None of them changes anything when it is refused.
fn gated(crew: &Crew, group: i64) -> Vec<Call> {
    let (admin, member, outsider) = (crew.admin.id, crew.member.id, crew.outsider.id);
    let users = json!({"groupId": group, "memberUserIds": [outsider]});
    vec![
        put_call("/im/group/update", json!({"id": group, "name": "new"})),
        ("POST", "/im/group/invite".into(), users.clone()),
        ("DELETE", "/im/group/kicking".into(), users),
        put_call("/im/group/add-admin", json!({"id": group, "userIds": [member]})),
        put_call("/im/group/remove-admin", json!({"id": group, "userIds": [admin]})),
        put_call("/im/group/transfer-owner", json!({"id": group, "newOwnerUserId": member})),
        put_call("/im/group/pin-message", json!({"id": group, "messageId": NOBODY})),
        put_call("/im/group/unpin-message", json!({"id": group, "messageId": NOBODY})),
        put_call("/im/group/mute-all", json!({"id": group, "mutedAll": true})),
        put_call("/im/group/mute-member", json!({"id": group, "userId": member, "mutedSeconds": 0})),
        put_call("/im/group/cancel-mute-member", json!({"id": group, "userId": member})),
        ("POST", "/im/group-request/apply".into(), json!({"groupId": group})),
        ("GET", format!("/im/group-request/list-by-group?groupId={group}"), Value::Null),
        (
            "POST",
            "/im/message/group/send".into(),
            json!({"clientMessageId": "gate", "groupId": group, "type": 101,
            "content": "{\"content\":\"x\"}"}),
        ),
    ]
}

async fn the_state_of_a_group_comes_before_everything_else(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let check = async |group: i64, expected: i64| {
        for caller in [&crew.owner, &crew.outsider] {
            // Who mutes himself is told that first; the owner is not among the targets.
            for (method, path, body) in gated(&crew, group) {
                assert_eq!(code(caller, method, &path, body).await, expected, "{path}, by {}", caller.external_id);
            }
        }
    };
    for missing in [NOBODY, 0, -1, i64::MAX] {
        check(missing, GROUP_NOT_FOUND).await;
    }
    let mut watch = crew.connect().await;
    set_row(&app, crew.group, "banned = TRUE").await;
    check(crew.group, GROUP_BANNED).await;
    watch.nothing().await;
    assert_eq!(dissolve(&crew.owner, crew.group).await, 0);
    watch.skip().await;
    check(crew.group, GROUP_BANNED).await;
    set_row(&app, crew.group, "banned = FALSE").await;
    check(crew.group, GROUP_DISSOLVED).await;
    watch.nothing().await;
    let yourself = json!({"id": NOBODY, "userId": crew.owner.id, "mutedSeconds": 0});
    assert_eq!(code(&crew.owner, "PUT", "/im/group/mute-member", yourself).await, MUTE_SELF);
}

async fn what_a_ban_does_not_stop(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let group = crew.group;
    put(&crew.owner, "/im/group/update", json!({"id": group, "joinApproval": true})).await;
    let request = crew.outsider.post("/im/group-request/apply", json!({"groupId": group})).await;
    let message = say(&crew.member, group, "a word").await;
    set_row(&app, group, "banned = TRUE").await;
    let agree = format!("/im/group-request/agree?id={request}");
    assert_eq!(code(&crew.owner, "PUT", &agree, Value::Null).await, GROUP_BANNED);
    assert_eq!(code(&crew.outsider, "PUT", &agree, Value::Null).await, NOT_MEMBER);
    let waiting = crew.owner.get("/im/group-request/unhandled-list").await;
    assert_eq!((waiting[0]["id"].clone(), waiting[0]["groupName"].clone()), (request.clone(), json!("us")));
    let allowed = [
        ("PUT", format!("/im/group-request/refuse?id={request}"), Value::Null),
        ("PUT", "/im/group-member/update".into(), json!({"groupId": group, "silent": true})),
        ("GET", format!("/im/group-member/list?groupId={group}"), Value::Null),
        ("GET", format!("/im/group-member/get?groupId={group}&userId={}", crew.owner.id), Value::Null),
        ("GET", format!("/im/message/group/list?groupId={group}&limit=10"), Value::Null),
        ("PUT", format!("/im/message/group/read?groupId={group}&messageId={message}"), Value::Null),
        ("DELETE", format!("/im/message/group/recall?id={message}"), Value::Null),
    ];
    for (method, path, body) in allowed {
        assert_eq!(code(&crew.admin, method, &path, body).await, 0, "{path}");
    }
    let quit = format!("/im/group/quit?groupId={group}");
    assert_eq!(code(&crew.member, "DELETE", &quit, Value::Null).await, 0);
}

async fn what_is_left_of_a_dissolved_group(backend: Backend) {
    let app = TestApp::start(backend).await;
    let crew = Crew::gather(&app).await;
    let group = crew.group;
    put(&crew.owner, "/im/group/update", json!({"id": group, "joinApproval": true})).await;
    let request = crew.outsider.post("/im/group-request/apply", json!({"groupId": group})).await;
    let message = say(&crew.member, group, "a word").await;
    assert_eq!(dissolve(&crew.owner, group).await, 0);
    let cases = [
        ("PUT", format!("/im/group-request/agree?id={request}"), Value::Null, NOT_MEMBER),
        ("PUT", format!("/im/group-request/refuse?id={request}"), Value::Null, NOT_MEMBER),
        ("PUT", "/im/group-member/update".into(), json!({"groupId": group, "silent": true}), NOT_MEMBER),
        ("GET", format!("/im/group-member/list?groupId={group}"), Value::Null, NOT_MEMBER),
        ("GET", format!("/im/group-member/get?groupId={group}&userId={}", crew.owner.id), Value::Null, NOT_MEMBER),
        ("DELETE", format!("/im/message/group/recall?id={message}"), Value::Null, NOT_MEMBER),
        ("PUT", format!("/im/message/group/typing?groupId={group}"), Value::Null, NOT_MEMBER),
        ("DELETE", format!("/im/group/quit?groupId={group}"), Value::Null, GROUP_DISSOLVED),
        ("GET", format!("/im/message/group/list?groupId={group}&limit=10"), Value::Null, 0),
    ];
    for (method, path, body, expected) in cases {
        assert_eq!(code(&crew.owner, method, &path, body).await, expected, "{path}");
    }
    for path in ["/im/group-request/unhandled-list", "/im/group-request/pull?limit=10"] {
        assert_eq!(crew.owner.get(path).await, json!([]));
    }
    // The request stays as it was, for the applicant.
    let shown = crew.outsider.get(&format!("/im/group-request/get?id={request}")).await;
    assert_eq!(shown["handleResult"], 0);
}
