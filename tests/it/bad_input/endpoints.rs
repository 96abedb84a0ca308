//! Every endpoint with a valid example, and the people and things that the examples speak of.

use serde_json::{Value, json};

use super::groups::{self, Groups};
use super::manager;
use crate::support::app::{Person, befriend, data, id_of, server_api};
use crate::support::operators::permit;
use crate::support::raw::answer;
use crate::support::tables::open;

/// Who may enter.
#[derive(Clone, Copy, PartialEq)]
pub enum Door {
    /// Anybody with the tenant header.
    Open,
    /// Anybody.
    Free,
    Login,
    Key,
    /// Operators.
    Permission,
}

/// Where parameters stand.
#[derive(Clone, Copy, PartialEq)]
pub enum Place {
    Query,
    Json,
}

/// What a parameter must be.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Integer,
    Text,
    Flag,
    List,
    /// A list of users.
    Users,
    /// A list of users who need not exist.
    Mentions,
    /// An integer that need not be an id.
    Amount,
    /// The integer of a cursor: any is one.
    Cursor,
    /// A cursor of a state table.
    StateCursor,
    /// Two times in a query.
    Times,
    /// Several integers in a query.
    Ids,
}

pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    pub valid: Value,
    /// The id of something that is not the caller's.
    pub foreign: Option<Value>,
}

pub struct Endpoint {
    pub method: &'static str,
    pub path: &'static str,
    pub door: Door,
    pub place: Place,
    pub fields: Vec<Field>,
    /// The code of the valid example.
    pub answer: i64,
}

/// Two friends with a message between them that is read, and strangers with things of their own.
pub struct World {
    pub alice: Person,
    pub bob: Person,
    pub operator: Person,
    /// Three sensitive words.
    pub words: [i64; 3],
    pub expired_token: String,
    message: i64,
    foreign_message: i64,
    /// Not alice's friend.
    pub stranger: i64,
    /// Alice's friend once the request is agreed to.
    pub invitee: i64,
    /// Nobody's friend and in no group.
    pub outsider: i64,
    pub groups: Groups,
    request: Value,
    to_refuse: Value,
    foreign_request: Value,
    foreign_session: Value,
    _foreign_socket: crate::support::app::Socket,
}

impl World {
    pub async fn create(http: &reqwest::Client, base: &str, database_url: &str) -> World {
        let person = async |name: &str| Person::create(http, base, name, name).await;
        let (alice, bob) = (person("alice").await, person("bob").await);
        let operator = person("operator").await;
        permit(database_url, &operator, &[]).await;
        let mut words = [0; 3];
        for (number, id) in words.iter_mut().enumerate() {
            let word = json!({"word": format!("a word that nobody says {number}"), "status": 0});
            *id = operator.post("/im/manager/sensitive-word/create", word).await.as_i64().unwrap();
        }
        let (carol, dora, erin) = (person("carol").await, person("dora").await, person("erin").await);
        befriend(&alice, &bob).await;
        befriend(&carol, &dora).await;
        let foreign_message = id_of(&carol.send(&dora, "not alice's").await);
        let message = id_of(&alice.send(&bob, "hello").await);
        alice.read(&bob, message).await;
        let request = carol.post("/im/friend-request/apply", json!({"toUserId": alice.id})).await;
        let foreign_request = carol.post("/im/friend-request/apply", json!({"toUserId": bob.id})).await;
        let to_refuse = erin.post("/im/friend-request/apply", json!({"toUserId": alice.id})).await;
        let groups = Groups::create([&alice, &bob, &carol, &dora, &erin]).await;
        let foreign_socket = carol.connect().await;
        let foreign_session = carol.get("/im/session/list").await[0]["id"].clone();
        let account = json!({"username": "signer", "nickname": "Signer", "password": "secret"});
        let register = http.post(format!("{base}/admin-api/system/auth/register")).header("tenant-id", "1");
        let signer = data(answer(register.json(&account)).await);
        let expire =
            format!("UPDATE system_oauth2_access_token SET expires_time = 1 WHERE user_id = {}", signer["userId"]);
        open(database_url).await.run_text(&expire).await.unwrap();
        let disabled = json!({"users": [{"externalId": "status", "nickname": "Status"}]});
        server_api(http, base, "/users", disabled).await;
        World {
            alice,
            bob,
            operator,
            words,
            expired_token: signer["accessToken"].as_str().unwrap().to_owned(),
            message,
            foreign_message,
            stranger: dora.id,
            invitee: carol.id,
            outsider: erin.id,
            groups,
            request,
            to_refuse,
            foreign_request,
            foreign_session,
            _foreign_socket: foreign_socket,
        }
    }
}

pub fn field(name: &'static str, kind: Kind, valid: Value) -> Field {
    Field { name, kind, required: true, valid, foreign: None }
}

pub fn integer(name: &'static str, valid: i64) -> Field {
    field(name, Kind::Integer, json!(valid))
}

pub fn text(name: &'static str, valid: &str) -> Field {
    field(name, Kind::Text, json!(valid))
}

impl Field {
    pub fn optional(self) -> Field {
        Field { required: false, ..self }
    }

    pub fn foreign(self, id: impl Into<Value>) -> Field {
        Field { foreign: Some(id.into()), ..self }
    }
}

pub fn endpoint(door: Door, method: &'static str, path: &'static str, place: Place, fields: Vec<Field>) -> Endpoint {
    Endpoint { method, path, door, place, fields, answer: 0 }
}

pub fn endpoints(world: &World) -> Vec<Endpoint> {
    let mut endpoints = accounts(world);
    endpoints.extend(messages(world));
    endpoints.extend(everything());
    endpoints.extend(friend_requests(world));
    endpoints.extend(groups::endpoints(world));
    endpoints.extend(manager::endpoints(world));
    // Last, since friendships end here.
    endpoints.extend(friends(world));
    endpoints.extend(files());
    endpoints.extend(server());
    endpoints
}

fn accounts(world: &World) -> Vec<Endpoint> {
    use Door::{Free, Login, Open};
    use Place::{Json, Query};
    let credentials = || vec![text("username", "signer"), text("password", "secret")];
    let mut register = credentials();
    register[0] = text("username", "newcomer");
    register.push(text("nickname", "New"));
    let profile = vec![
        text("nickname", "Alice").optional(),
        text("email", "a@example.org").optional(),
        text("mobile", "1").optional(),
        integer("sex", 1).optional(),
        text("avatar", "/a.png").optional(),
    ];
    let passwords = vec![text("oldPassword", "secret"), text("newPassword", "changed")];
    // The caller has no password.
    let password = Endpoint {
        answer: 1_002_003_005,
        ..endpoint(Login, "PUT", "/admin-api/system/user/profile/update-password", Json, passwords)
    };
    let refresh = vec![text("refreshToken", &world.bob.refresh_token)];
    let id = || vec![integer("id", world.bob.id)];
    vec![
        endpoint(Open, "POST", "/admin-api/system/auth/register", Json, register),
        endpoint(Open, "POST", "/admin-api/system/auth/login", Json, credentials()),
        endpoint(Open, "POST", "/admin-api/system/auth/logout", Query, vec![]),
        endpoint(Open, "POST", "/admin-api/system/auth/refresh-token", Query, refresh),
        endpoint(Login, "GET", "/admin-api/system/auth/get-permission-info", Query, vec![]),
        endpoint(Free, "GET", "/admin-api/system/tenant/get-by-website", Query, vec![]),
        endpoint(Free, "GET", "/admin-api/system/tenant/get-id-by-name", Query, vec![]),
        endpoint(Free, "GET", "/admin-api/system/tenant/simple-list", Query, vec![]),
        endpoint(Login, "GET", "/admin-api/system/dict-data/simple-list", Query, vec![]),
        endpoint(Login, "GET", "/admin-api/system/notify-message/get-unread-count", Query, vec![]),
        endpoint(Login, "GET", "/admin-api/system/notify-message/get-unread-list", Query, vec![]),
        endpoint(Login, "GET", "/admin-api/system/user/get-simple", Query, id()),
        endpoint(Login, "GET", "/admin-api/system/user/list-by-nickname", Query, vec![text("nickname", "b")]),
        endpoint(Login, "GET", "/admin-api/system/user/profile/get", Query, vec![]),
        endpoint(Login, "PUT", "/admin-api/system/user/profile/update", Json, profile),
        password,
    ]
}

fn messages(world: &World) -> Vec<Endpoint> {
    use Door::Login;
    use Place::{Json, Query};
    let peer = |name: &'static str| integer(name, world.bob.id).foreign(world.stranger);
    let send = vec![
        text("clientMessageId", "a-key-of-its-own"),
        peer("receiverId"),
        integer("type", 101),
        text("content", r#"{"content":"hello"}"#),
        field("receipt", Kind::Flag, json!(true)).optional(),
    ];
    let list = vec![peer("receiverId"), integer("maxId", world.message).optional(), integer("limit", 10)];
    let read = vec![peer("receiverId"), integer("messageId", world.message).foreign(world.foreign_message)];
    let session = integer("id", 1 << 40).foreign(world.foreign_session.clone());
    let recalled = integer("id", world.message).foreign(world.foreign_message);
    vec![
        // First, while the newest message is read.
        endpoint(Login, "PUT", "/admin-api/im/message/private/read", Query, read),
        endpoint(Login, "POST", "/admin-api/im/message/private/send", Json, send),
        endpoint(
            Login,
            "GET",
            "/admin-api/im/message/private/pull",
            Query,
            vec![integer("minId", 0), integer("size", 10)],
        ),
        endpoint(Login, "GET", "/admin-api/im/message/private/list", Query, list),
        endpoint(Login, "GET", "/admin-api/im/message/private/max-read-message-id", Query, vec![peer("peerId")]),
        endpoint(Login, "DELETE", "/admin-api/im/message/private/recall", Query, vec![recalled]),
        endpoint(Login, "PUT", "/admin-api/im/message/private/typing", Query, vec![peer("receiverId")]),
        endpoint(Login, "GET", "/admin-api/im/conversation-read/pull", Query, cursor()),
        endpoint(Login, "GET", "/admin-api/im/session/list", Query, vec![]),
        endpoint(Login, "DELETE", "/admin-api/im/session/close", Query, vec![session]),
    ]
}

fn cursor() -> Vec<Field> {
    vec![integer("lastUpdateTime", 1).optional(), integer("lastId", 1).optional(), integer("limit", 10)]
}

fn friend_requests(world: &World) -> Vec<Endpoint> {
    use Door::Login;
    use Place::{Json, Query};
    let apply = vec![
        integer("toUserId", world.stranger),
        text("applyContent", "hi").optional(),
        text("displayName", "D").optional(),
        integer("addSource", 1).optional(),
    ];
    let request = |id: &Value| field("id", Kind::Integer, id.clone()).foreign(world.foreign_request.clone());
    let list = vec![integer("maxId", 1 << 40).optional(), integer("limit", 10)];
    let refuse = vec![request(&world.to_refuse), text("handleContent", "no").optional()];
    vec![
        endpoint(Login, "POST", "/admin-api/im/friend-request/apply", Json, apply),
        endpoint(Login, "PUT", "/admin-api/im/friend-request/agree", Query, vec![request(&world.request)]),
        endpoint(Login, "PUT", "/admin-api/im/friend-request/refuse", Query, refuse),
        endpoint(Login, "GET", "/admin-api/im/friend-request/list", Query, list),
        endpoint(Login, "GET", "/admin-api/im/friend-request/pull", Query, cursor()),
        endpoint(Login, "GET", "/admin-api/im/friend-request/get", Query, vec![request(&world.request)]),
    ]
}

fn friends(world: &World) -> Vec<Endpoint> {
    use Door::Login;
    use Place::{Json, Query};
    let friend = || integer("friendUserId", world.bob.id).foreign(world.stranger);
    let update = vec![
        friend(),
        field("silent", Kind::Flag, json!(true)).optional(),
        text("displayName", "B").optional(),
        field("pinned", Kind::Flag, json!(true)).optional(),
    ];
    let delete = vec![friend(), field("clear", Kind::Flag, json!(true)).optional()];
    vec![
        endpoint(Login, "GET", "/admin-api/im/friend/list", Query, vec![]),
        endpoint(Login, "GET", "/admin-api/im/friend/pull", Query, cursor()),
        endpoint(Login, "GET", "/admin-api/im/friend/get", Query, vec![friend()]),
        endpoint(Login, "PUT", "/admin-api/im/friend/update", Json, update),
        endpoint(Login, "PUT", "/admin-api/im/friend/block", Query, vec![friend()]),
        endpoint(Login, "PUT", "/admin-api/im/friend/unblock", Query, vec![friend()]),
        endpoint(Login, "DELETE", "/admin-api/im/friend/delete", Query, delete),
    ]
}

/// What asks for news of everything at once.
fn everything() -> Vec<Endpoint> {
    use Door::Login;
    use Place::Json;
    let id = |name| field(name, Kind::Cursor, json!(0)).optional();
    let state = |name| field(name, Kind::StateCursor, json!({"lastUpdateTime": 1, "lastId": 1})).optional();
    let sync = vec![
        id("privateMinId"),
        id("groupMinId"),
        id("channelMinId"),
        state("friend"),
        state("friendRequest"),
        state("groupRequest"),
        state("read"),
        id("groupListTime"),
        integer("size", 10).optional(),
    ];
    vec![
        endpoint(Login, "POST", "/admin-api/im/sync", Json, sync),
        endpoint(Login, "POST", "/admin-api/im/unread", Json, vec![]),
    ]
}

fn files() -> Vec<Endpoint> {
    use Door::Login;
    use Place::{Json, Query};
    let presign = vec![text("name", "cat.png"), text("directory", "im").optional()];
    let create = vec![text("path", "20261201/00000000000000000000000000000000/cat.png")];
    vec![
        // A folder takes no direct uploads.
        Endpoint { answer: 400, ..endpoint(Login, "GET", "/admin-api/infra/file/presigned-url", Query, presign) },
        Endpoint { answer: 1_001_003_001, ..endpoint(Login, "POST", "/admin-api/infra/file/create", Json, create) },
    ]
}

fn server() -> Vec<Endpoint> {
    use Door::Key;
    use Place::Json;
    let users = field("users", Kind::List, json!([{"externalId": "made", "nickname": "Made"}]));
    let status = vec![text("externalId", "status"), field("enabled", Kind::Flag, json!(false))];
    let tokens = field("externalIds", Kind::List, json!(["alice"]));
    vec![
        endpoint(Key, "POST", "/api/v1/users", Json, vec![users]),
        endpoint(Key, "PUT", "/api/v1/users/status", Json, status),
        endpoint(Key, "POST", "/api/v1/tokens", Json, vec![tokens]),
    ]
}
