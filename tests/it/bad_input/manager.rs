//! The endpoints of operators.

use serde_json::json;

use super::endpoints::{Door, Endpoint, Field, Kind, Place, World, endpoint, field, integer, text};

fn get(path: &'static str, fields: Vec<Field>) -> Endpoint {
    endpoint(Door::Permission, "GET", path, Place::Query, fields)
}

/// A page with its filters.
fn page(path: &'static str, time: &'static str, filters: Vec<Field>) -> Endpoint {
    let two_times = json!("2026-01-01%2000:00:00,2026-12-31%2023:59:59");
    let mut fields = vec![integer("pageNo", 1), integer("pageSize", 10), field(time, Kind::Times, two_times)];
    fields.extend(filters);
    get(path, fields.into_iter().map(Field::optional).collect())
}

fn flag(name: &'static str) -> Field {
    field(name, Kind::Flag, json!(true))
}

pub fn endpoints(world: &World) -> Vec<Endpoint> {
    let groups = &world.groups;
    let user = |name| integer(name, world.bob.id);
    let number = |name| integer(name, 1);
    let ban = vec![integer("id", groups.foreign), text("reason", "spam")];
    let unban = vec![integer("id", groups.foreign)];
    let group_filters = vec![text("name", "us"), user("ownerUserId"), number("status"), flag("banned")];
    let join_filters = vec![
        integer("groupId", groups.foreign),
        user("userId"),
        user("inviterUserId"),
        number("handleResult"),
        number("addSource"),
    ];
    let friend_filters = vec![user("userId"), user("friendUserId"), number("status"), flag("silent")];
    let request_filters = vec![user("fromUserId"), user("toUserId"), number("handleResult"), number("addSource")];
    let word = |word| vec![text("word", word), field("status", Kind::Amount, json!(1))];
    let changed = word("a changed word").into_iter().chain([integer("id", world.words[0])]).collect();
    let word_filters = vec![text("word", "nobody"), number("status")];
    let message = || vec![number("type"), text("content", "hello"), number("status")];
    let private_filters = message().into_iter().chain([user("senderId"), user("receiverId")]).collect();
    let message_filters = message().into_iter().chain([user("senderId"), integer("groupId", groups.foreign)]).collect();
    vec![
        page("/admin-api/im/manager/group/page", "createTime", group_filters),
        get("/admin-api/im/manager/group/get", vec![integer("id", groups.foreign)]),
        get("/admin-api/im/manager/group/member/list", vec![integer("groupId", groups.foreign)]),
        page("/admin-api/im/manager/group-request/page", "createTime", join_filters),
        page("/admin-api/im/manager/friend/page", "addTime", friend_filters),
        page("/admin-api/im/manager/friend-request/page", "createTime", request_filters),
        page("/admin-api/im/manager/message/private/page", "sendTime", private_filters),
        get("/admin-api/im/manager/message/private/get", vec![integer("id", 1)]),
        page("/admin-api/im/manager/message/group/page", "sendTime", message_filters),
        get("/admin-api/im/manager/message/group/get", vec![integer("id", 1)]),
        page("/admin-api/im/manager/sensitive-word/page", "createTime", word_filters),
        get("/admin-api/im/manager/sensitive-word/get", vec![integer("id", world.words[0])]),
        endpoint(
            Door::Permission,
            "POST",
            "/admin-api/im/manager/sensitive-word/create",
            Place::Json,
            word("a new word"),
        ),
        endpoint(Door::Permission, "PUT", "/admin-api/im/manager/sensitive-word/update", Place::Json, changed),
        endpoint(
            Door::Permission,
            "DELETE",
            "/admin-api/im/manager/sensitive-word/delete",
            Place::Query,
            vec![integer("id", world.words[1])],
        ),
        endpoint(
            Door::Permission,
            "DELETE",
            "/admin-api/im/manager/sensitive-word/delete-list",
            Place::Query,
            vec![field("ids", Kind::Ids, json!(world.words[2]))],
        ),
        get("/admin-api/im/manager/statistics/overview", vec![]),
        get("/admin-api/im/manager/statistics/message-trend", vec![integer("days", 2).optional()]),
        get("/admin-api/im/manager/statistics/user-trend", vec![integer("days", 2).optional()]),
        get("/admin-api/im/manager/statistics/message-type-distribution", vec![]),
        get("/admin-api/im/manager/statistics/group-size-distribution", vec![]),
        get("/admin-api/im/manager/statistics/top-senders", vec![]),
        endpoint(Door::Permission, "PUT", "/admin-api/im/manager/group/ban", Place::Json, ban),
        endpoint(Door::Permission, "PUT", "/admin-api/im/manager/group/unban", Place::Query, unban),
        endpoint(
            Door::Permission,
            "DELETE",
            "/admin-api/im/manager/group/dissolve",
            Place::Query,
            vec![integer("id", groups.ended_by_operator)],
        ),
    ]
}
