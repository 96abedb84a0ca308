//! The endpoints of groups, and the groups that their examples speak of.

use serde_json::{Value, json};

use super::endpoints::{Door, Endpoint, Field, Kind, Place, World, endpoint, field, integer, text};
use crate::support::app::{Person, id_of, random_id};

/// A group of two friends with a message of each, both read, pinned the second; two who ask to join; groups of others.
pub struct Groups {
    group: i64,
    message: i64,
    pinned: i64,
    to_agree: Value,
    to_refuse: Value,
    /// A group that nobody needs.
    other: i64,
    /// Another one.
    pub ended_by_operator: i64,
    /// A group that can be asked to be let in.
    pub foreign: i64,
    foreign_message: i64,
    foreign_request: Value,
}

async fn create(owner: &Person, members: &[&Person]) -> i64 {
    let members: Vec<i64> = members.iter().map(|person| person.id).collect();
    let body = json!({"name": "us", "memberUserIds": members, "joinApproval": true});
    id_of(&owner.post("/im/group/create", body).await)
}

async fn say(person: &Person, group: i64) -> i64 {
    let content = r#"{"content":"hello"}"#;
    let body = json!({
        "clientMessageId": random_id(), "groupId": group, "type": 101, "content": content, "receipt": true,
    });
    id_of(&person.post("/im/message/group/send", body).await)
}

async fn apply(person: &Person, group: i64) -> Value {
    person.post("/im/group-request/apply", json!({"groupId": group})).await
}

impl Groups {
    /// `alice` and `bob` are friends, and so are `carol` and `dora`.
    pub async fn create([alice, bob, carol, dora, erin]: [&Person; 5]) -> Groups {
        let group = create(alice, &[bob]).await;
        let foreign = create(carol, &[dora]).await;
        let (to_agree, to_refuse) = (apply(dora, group).await, apply(erin, group).await);
        let foreign_request = apply(erin, foreign).await;
        let pinned = say(bob, group).await;
        let pin = json!({"id": group, "messageId": pinned});
        alice.call("PUT", "/im/group/pin-message", Some(pin)).await;
        let message = say(alice, group).await;
        alice.put(&format!("/im/message/group/read?groupId={group}&messageId={message}")).await;
        Groups {
            group,
            message,
            pinned,
            to_agree,
            to_refuse,
            other: create(alice, &[]).await,
            ended_by_operator: create(alice, &[]).await,
            foreign,
            foreign_message: say(carol, foreign).await,
            foreign_request,
        }
    }
}

fn get(path: &'static str, fields: Vec<Field>) -> Endpoint {
    endpoint(Door::Login, "GET", path, Place::Query, fields)
}

fn put(path: &'static str, fields: Vec<Field>) -> Endpoint {
    endpoint(Door::Login, "PUT", path, Place::Query, fields)
}

fn put_json(path: &'static str, fields: Vec<Field>) -> Endpoint {
    endpoint(Door::Login, "PUT", path, Place::Json, fields)
}

fn post(path: &'static str, fields: Vec<Field>) -> Endpoint {
    endpoint(Door::Login, "POST", path, Place::Json, fields)
}

fn delete(path: &'static str, fields: Vec<Field>) -> Endpoint {
    endpoint(Door::Login, "DELETE", path, Place::Query, fields)
}

fn flag(name: &'static str) -> Field {
    field(name, Kind::Flag, json!(true))
}

fn users(name: &'static str, ids: &[i64]) -> Field {
    field(name, Kind::Users, json!(ids))
}

/// In the order in which each valid example can follow those before it.
pub fn endpoints(world: &World) -> Vec<Endpoint> {
    let mut endpoints = group_messages(world);
    endpoints.extend(requests(world));
    endpoints.extend(groups(world));
    endpoints
}

fn group(world: &World, name: &'static str) -> Field {
    integer(name, world.groups.group).foreign(world.groups.foreign)
}

fn group_messages(world: &World) -> Vec<Endpoint> {
    let groups = &world.groups;
    let message = |name| integer(name, groups.message).foreign(groups.foreign_message);
    let send = vec![
        text("clientMessageId", "a-key-for-the-group"),
        group(world, "groupId"),
        integer("type", 101),
        text("content", r#"{"content":"hello"}"#),
        field("atUserIds", Kind::Mentions, json!([world.bob.id])).optional(),
        flag("receipt").optional(),
    ];
    let list = vec![group(world, "groupId"), integer("maxId", groups.message).optional(), integer("limit", 10)];
    let one = || vec![group(world, "groupId"), message("messageId")];
    vec![
        // First, while the newest message is read.
        put("/admin-api/im/message/group/read", one()),
        get("/admin-api/im/message/group/get-read-user-ids", one()),
        post("/admin-api/im/message/group/send", send),
        get("/admin-api/im/message/group/pull", vec![integer("minId", 0), integer("size", 10)]),
        get("/admin-api/im/message/group/list", list),
        delete("/admin-api/im/message/group/recall", vec![message("id")]),
        put("/admin-api/im/message/group/typing", vec![group(world, "groupId")]),
    ]
}

fn requests(world: &World) -> Vec<Endpoint> {
    let groups = &world.groups;
    let request = |id: &Value| field("id", Kind::Integer, id.clone()).foreign(groups.foreign_request.clone());
    let apply = vec![
        integer("groupId", groups.foreign),
        text("applyContent", "hi").optional(),
        integer("addSource", 1).optional(),
    ];
    let refuse = vec![request(&groups.to_refuse), text("handleContent", "no").optional()];
    let cursor = vec![integer("lastUpdateTime", 1).optional(), integer("lastId", 1).optional(), integer("limit", 10)];
    vec![
        get("/admin-api/im/group-request/unhandled-list", vec![]),
        get("/admin-api/im/group-request/pull", cursor),
        get("/admin-api/im/group-request/list-by-group", vec![group(world, "groupId")]),
        get("/admin-api/im/group-request/get", vec![request(&groups.to_agree)]),
        put("/admin-api/im/group-request/agree", vec![request(&groups.to_agree)]),
        put("/admin-api/im/group-request/refuse", refuse),
        post("/admin-api/im/group-request/apply", apply),
    ]
}

fn groups(world: &World) -> Vec<Endpoint> {
    let groups = &world.groups;
    let (alice, bob) = (world.alice.id, world.bob.id);
    let create = vec![
        text("name", "new"),
        users("memberUserIds", &[bob]).foreign(json!([world.stranger])).optional(),
        flag("joinApproval").optional(),
    ];
    let update = vec![
        group(world, "id"),
        text("name", "renamed").optional(),
        text("avatar", "/a.png").optional(),
        text("notice", "news").optional(),
        flag("joinApproval").optional(),
    ];
    let member_update = vec![
        group(world, "groupId"),
        text("displayUserName", "A").optional(),
        text("groupRemark", "R").optional(),
        flag("silent").optional(),
    ];
    let kick = Endpoint {
        place: Place::Json,
        ..delete("/admin-api/im/group/kicking", vec![group(world, "groupId"), users("memberUserIds", &[world.invitee])])
    };
    let invite = users("memberUserIds", &[world.invitee]).foreign(json!([world.outsider]));
    let admins = || vec![group(world, "id"), users("userIds", &[bob]).foreign(json!([world.outsider]))];
    let member = || vec![group(world, "id"), integer("userId", bob).foreign(world.outsider)];
    let mut mute = member();
    mute.push(field("mutedSeconds", Kind::Amount, json!(60)));
    let pin = |message: i64| vec![group(world, "id"), integer("messageId", message).foreign(groups.foreign_message)];
    let get_member = vec![group(world, "groupId").optional(), integer("userId", alice).optional()];
    vec![
        post("/admin-api/im/group/create", create),
        put_json("/admin-api/im/group/update", update),
        get("/admin-api/im/group/get", vec![group(world, "id")]),
        get("/admin-api/im/group/list", vec![]),
        put_json("/admin-api/im/group/unpin-message", pin(groups.pinned)),
        put_json("/admin-api/im/group/pin-message", pin(groups.pinned)),
        put_json("/admin-api/im/group/add-admin", admins()),
        put_json("/admin-api/im/group/remove-admin", admins()),
        put_json("/admin-api/im/group/mute-all", vec![group(world, "id"), flag("mutedAll")]),
        put_json("/admin-api/im/group/mute-member", mute),
        put_json("/admin-api/im/group/cancel-mute-member", member()),
        put_json("/admin-api/im/group-member/update", member_update),
        get("/admin-api/im/group-member/get", get_member),
        get("/admin-api/im/group-member/list", vec![group(world, "groupId")]),
        post("/admin-api/im/group/invite", vec![group(world, "groupId"), invite]),
        kick,
        put_json(
            "/admin-api/im/group/transfer-owner",
            vec![group(world, "id"), integer("newOwnerUserId", bob).foreign(world.outsider)],
        ),
        delete("/admin-api/im/group/quit", vec![group(world, "groupId")]),
        delete("/admin-api/im/group/dissolve", vec![integer("id", groups.other).foreign(groups.foreign)]),
    ]
}
