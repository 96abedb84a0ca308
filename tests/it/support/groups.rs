//! Groups as a client handles them.

use serde_json::{Value, json};

use super::app::{Person, Push, Socket, TestApp, befriend, data, id_of, random_id};
use super::friends::{code_of, nothing_came, only_push};
use super::second_connection::SecondConnection;

pub const NOT_IN_GROUP: i64 = 1_040_300_009;
pub const GROUP_NOT_FOUND: i64 = 1_040_400_000;
pub const GROUP_BANNED: i64 = 1_040_400_001;
pub const GROUP_DISSOLVED: i64 = 1_040_400_002;
pub const NOT_OWNER: i64 = 1_040_400_003;
pub const NOT_MANAGER: i64 = 1_040_400_004;
pub const NOT_MEMBER: i64 = 1_040_500_001;
pub const MEMBER_LIMIT: i64 = 1_040_500_005;
pub const NOT_FRIENDS: i64 = 1_040_500_006;
pub const REQUEST_HANDLED: i64 = 1_040_510_002;
pub const ALREADY_MEMBER: i64 = 1_040_510_004;
/// An id that no group, message or request of a test has.
pub const NOBODY: i64 = 987_654_321;

/// An owner, an admin, a normal member and somebody outside, who all are friends of the owner. Their group.
pub struct Crew {
    pub owner: Person,
    pub admin: Person,
    pub member: Person,
    pub outsider: Person,
    pub group: i64,
}

impl Crew {
    pub async fn gather(app: &TestApp) -> Crew {
        let owner = app.user("owner").await;
        let (admin, member, outsider) = (app.user("admin").await, app.user("member").await, app.user("outsider").await);
        for other in [&admin, &member, &outsider] {
            befriend(&owner, other).await;
        }
        let group = make_group(&owner, &[&admin, &member]).await;
        put(&owner, "/im/group/add-admin", json!({"id": group, "userIds": [admin.id]})).await;
        Crew { owner, admin, member, outsider, group }
    }

    /// One socket each: owner, admin, member, outsider.
    pub async fn connect(&self) -> Watch {
        Watch {
            group: self.group,
            members: [self.owner.connect().await, self.admin.connect().await, self.member.connect().await],
            outsider: self.outsider.connect().await,
        }
    }
}

/// What the people of a crew are told.
pub struct Watch {
    group: i64,
    pub members: [Socket; 3],
    pub outsider: Socket,
}

impl Watch {
    /// The one event that came to all members, and not to the outsider.
    pub async fn event(&mut self, sender: &Person, content_type: i64) -> Event {
        let push = only_push(self.members.each_mut()).await;
        nothing_came([&mut self.outsider]).await;
        read_event(&push, sender, self.group, content_type)
    }

    /// The one event that came to all members and to the outsider, who joins by it.
    pub async fn event_with_outsider(&mut self, sender: &Person, content_type: i64) -> Event {
        let [a, b, c] = &mut self.members;
        let push = only_push([a, b, c, &mut self.outsider]).await;
        read_event(&push, sender, self.group, content_type)
    }

    pub async fn nothing(&mut self) {
        nothing_came(self.members.each_mut()).await;
        nothing_came([&mut self.outsider]).await;
    }

    /// Passes over everything that came.
    pub async fn skip(&mut self) {
        for socket in self.members.iter_mut().chain([&mut self.outsider]) {
            socket.drain().await;
        }
    }
}

/// An event of a group as it was pushed.
#[derive(Debug, PartialEq)]
pub struct Event {
    /// `None` where it is not stored.
    pub id: Option<i64>,
    pub content: Value,
}

/// Checks the frame around an event.
pub fn read_event(push: &Push, sender: &Person, group: i64, content_type: i64) -> Event {
    assert_eq!((push.conversation_type, push.content_type), (2, content_type), "{push:?}");
    let mut payload = push.payload.clone();
    let client_id = payload["clientMessageId"].take();
    assert_eq!(client_id.as_str().map(str::len), Some(32), "{push:?}");
    assert!(payload["sendTime"].take().as_i64() > Some(0), "{push:?}");
    let (id, content) = (payload["id"].take(), payload["content"].take());
    let expected = json!({"id": null, "clientMessageId": null, "senderId": sender.id, "groupId": group,
        "type": content_type, "content": null, "status": 0, "sendTime": null, "atUserIds": null,
        "receiverUserIds": null, "receiptStatus": 0, "readCount": 0});
    assert_eq!(payload, expected);
    let content = serde_json::from_str(content.as_str().expect("content is text")).unwrap();
    Event { id: id.as_i64(), content }
}

/// Makes a group of friends of the owner; its id.
pub async fn make_group(owner: &Person, members: &[&Person]) -> i64 {
    let ids: Vec<i64> = members.iter().map(|member| member.id).collect();
    id_of(&owner.post("/im/group/create", json!({"name": "us", "memberUserIds": ids})).await)
}

/// A PUT with a body that must succeed.
pub async fn put(person: &Person, path: &str, body: Value) -> Value {
    data(person.call("PUT", path, Some(body)).await)
}

/// The code that a call with a body is answered with; `Null` is no body.
pub async fn code(person: &Person, method: &str, path: &str, body: Value) -> i64 {
    code_of(&person.call(method, path, Some(body).filter(|body| !body.is_null())).await)
}

pub async fn invite(person: &Person, group: i64, users: &[i64]) -> i64 {
    code(person, "POST", "/im/group/invite", json!({"groupId": group, "memberUserIds": users})).await
}

pub async fn kick(person: &Person, group: i64, users: &[i64]) -> i64 {
    code(person, "DELETE", "/im/group/kicking", json!({"groupId": group, "memberUserIds": users})).await
}

pub async fn quit(person: &Person, group: i64) -> i64 {
    code(person, "DELETE", &format!("/im/group/quit?groupId={group}"), Value::Null).await
}

pub async fn dissolve(person: &Person, group: i64) -> i64 {
    code(person, "DELETE", &format!("/im/group/dissolve?id={group}"), Value::Null).await
}

/// Says something in a group; the whole answer.
pub async fn try_say(person: &Person, group: i64, text: &str) -> Value {
    let content = json!({"content": text}).to_string();
    let body = json!({"clientMessageId": random_id(), "groupId": group, "type": 101, "content": content});
    person.call("POST", "/im/message/group/send", Some(body)).await
}

/// Says something in a group; the id of the message.
pub async fn say(person: &Person, group: i64, text: &str) -> i64 {
    id_of(&data(try_say(person, group, text).await))
}

/// A group as somebody sees it.
pub async fn group(person: &Person, id: i64) -> Value {
    person.get(&format!("/im/group/get?id={id}")).await
}

/// A member row as somebody sees it.
pub async fn member(person: &Person, group: i64, user: &Person) -> Value {
    person.get(&format!("/im/group-member/get?groupId={group}&userId={}", user.id)).await
}

/// The types of the stored group messages that somebody pulls after an id.
pub async fn pulled_after(person: &Person, min_id: i64) -> Vec<i64> {
    let rows = person.get(&format!("/im/message/group/pull?minId={min_id}&size=200")).await;
    rows.as_array().unwrap().iter().map(|row| row["type"].as_i64().unwrap()).collect()
}

/// Changes the row of a group behind the server, as an operator does who bans it.
pub async fn set_row(app: &TestApp, group: i64, assignments: &str) {
    let mut tables = SecondConnection::open(&app.database.url).await;
    tables.execute(&format!("UPDATE im_group SET {assignments} WHERE id = {group}")).await;
}

/// Nobody has two open spans in one group, and no two spans of one user and group overlap.
pub async fn check_spans(url: &str) {
    let mut tables = SecondConnection::open(url).await;
    let overlaps = "SELECT COUNT(*) AS number FROM im_group_member_span a JOIN im_group_member_span b \
        ON a.user_id = b.user_id AND a.group_id = b.group_id AND a.id < b.id \
        AND a.from_id < b.to_id AND b.from_id < a.to_id";
    assert_eq!(tables.number(overlaps).await, 0, "spans overlap");
    // An active member has one open span, a former one none.
    let open = "SELECT COUNT(*) AS number FROM im_group_member m WHERE (SELECT COUNT(*) FROM im_group_member_span s \
        WHERE s.user_id = m.user_id AND s.group_id = m.group_id AND s.to_id > 4503599627370496) \
        <> CASE WHEN m.status = 0 THEN 1 ELSE 0 END";
    assert_eq!(tables.number(open).await, 0, "open spans do not fit the member rows");
}
