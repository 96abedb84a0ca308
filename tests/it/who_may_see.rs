//! Who may see what of a group (F1, `design.md` I7): whoever is removed learns nothing that comes later, by whatever
//! endpoint he asks. The matrix has a row for every endpoint below `/im`, taken from the route table, and a column for
//! every way to stand to a group; a new endpoint without a row fails [`every_endpoint_has_a_row`].

use std::collections::BTreeSet;

use nudge::db::sequence::Counter;
use nudge::http::im_endpoints;
use serde_json::{Value, json};

use crate::support::app::{Person, Socket, TestApp, befriend, data, id_of, random_id};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::DirectWriter;
use crate::support::friends::code_of;
use crate::support::stored::Tables;

on_every_database! {
    who_is_not_there_sees_nothing,
    who_is_no_operator_sees_nothing_of_what_operators_see,
    who_came_back_is_no_reader_of_what_he_missed,
}

/// What an endpoint answers to one of the columns.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// What was said while he was there, and nothing else.
    Sees,
    /// Nothing of messages.
    Hides,
    /// This code.
    Code(i64),
}
use Answer::{Code, Hides, Sees};

/// Member, left, kicked, never member, member of a dissolved group, kicked and back (as admin).
const COLUMNS: usize = 6;
const EVERYBODY: [Answer; COLUMNS] = [Hides; COLUMNS];
const MEMBERS: [Answer; COLUMNS] = [Hides, NOT_IN, NOT_IN, NOT_IN, NOT_IN, Hides];
const NOT_IN: Answer = Code(1_040_500_001);
const NO_SUCH_MESSAGE: Answer = Code(1_040_300_000);
const NOT_OF_GROUP: Answer = Code(1_040_300_009);
const DISSOLVED: Answer = Code(1_040_400_002);

/// Method, path, query or body (`GROUP`, `LATER` and `OWNER` stand for ids), and the answers. Those that change
/// something come last.
const MATRIX: &[(&str, &str, &str, [Answer; COLUMNS])] = &[
    ("get", "/message/group/pull", "?minId=0&size=1000", [Sees; COLUMNS]),
    ("get", "/message/group/list", "?groupId=GROUP&limit=200", [Sees, Sees, Sees, NOT_IN, Sees, Sees]),
    ("get", "/message/group/get-read-user-ids", "?groupId=GROUP&messageId=LATER", MEMBERS),
    ("post", "/sync", r#"{"size": 200}"#, [Sees; COLUMNS]),
    ("post", "/unread", "{}", EVERYBODY),
    ("get", "/conversation-read/pull", "?limit=200", EVERYBODY),
    ("get", "/group/get", "?id=GROUP", EVERYBODY),
    ("get", "/group/list", "", EVERYBODY),
    ("get", "/group-member/get", "?groupId=GROUP&userId=OWNER", MEMBERS),
    ("get", "/group-member/list", "?groupId=GROUP", MEMBERS),
    ("get", "/group-request/unhandled-list", "", EVERYBODY),
    ("get", "/group-request/pull", "?limit=200", EVERYBODY),
    (
        "get",
        "/group-request/list-by-group",
        "?groupId=GROUP",
        [Code(1_040_510_003), NOT_IN, NOT_IN, NOT_IN, DISSOLVED, Hides],
    ),
    ("get", "/group-request/get", "?id=1", EVERYBODY),
    ("get", "/message/private/pull", "?minId=0&size=1000", EVERYBODY),
    ("get", "/message/private/list", "?receiverId=OWNER&limit=200", EVERYBODY),
    ("get", "/message/private/max-read-message-id", "?peerId=OWNER", EVERYBODY),
    ("get", "/friend/list", "", EVERYBODY),
    ("get", "/friend/pull", "?limit=200", EVERYBODY),
    ("get", "/friend/get", "?friendUserId=OWNER", EVERYBODY),
    ("get", "/friend-request/list", "?limit=200", EVERYBODY),
    ("get", "/friend-request/pull", "?limit=200", EVERYBODY),
    ("get", "/friend-request/get", "?id=1", EVERYBODY),
    ("get", "/session/list", "", EVERYBODY),
    // Verbs that would show what they name: to oneself, or to others.
    (
        "delete",
        "/message/group/recall",
        "?id=LATER",
        [Code(1_040_300_002), NO_SUCH_MESSAGE, NO_SUCH_MESSAGE, NO_SUCH_MESSAGE, NO_SUCH_MESSAGE, NO_SUCH_MESSAGE],
    ),
    (
        "put",
        "/group/pin-message",
        r#"{"id": GROUP, "messageId": LATER}"#,
        [Code(1_040_400_004), NOT_IN, NOT_IN, NOT_IN, DISSOLVED, NOT_OF_GROUP],
    ),
    (
        "post",
        "/message/group/send",
        r#"{"groupId": GROUP, "type": 101, "clientMessageId": "quoting",
            "content": "{\"content\": \"see\", \"quote\": {\"messageId\": LATER}}"}"#,
        [Hides, NOT_IN, NOT_IN, NOT_IN, DISSOLVED, Code(1_040_300_008)],
    ),
    (
        "put",
        "/message/group/read",
        "?groupId=GROUP&messageId=LATER",
        [Hides, NOT_OF_GROUP, NOT_OF_GROUP, NOT_OF_GROUP, NOT_OF_GROUP, NOT_OF_GROUP],
    ),
];

/// Verbs whose answers say no more than whether they were done, or show what the caller wrote himself.
const NOT_ABOUT_MESSAGES: &[(&str, &str)] = &[
    ("post", "/message/private/send"),
    ("put", "/message/private/read"),
    ("delete", "/message/private/recall"),
    ("put", "/message/private/typing"),
    ("put", "/message/group/typing"),
    ("delete", "/friend/delete"),
    ("put", "/friend/update"),
    ("put", "/friend/block"),
    ("put", "/friend/unblock"),
    ("post", "/friend-request/apply"),
    ("put", "/friend-request/agree"),
    ("put", "/friend-request/refuse"),
    ("post", "/group/create"),
    // Shows the group to its owner.
    ("put", "/group/update"),
    ("delete", "/group/dissolve"),
    ("post", "/group/invite"),
    ("delete", "/group/quit"),
    ("delete", "/group/kicking"),
    ("put", "/group/add-admin"),
    ("put", "/group/remove-admin"),
    ("put", "/group/transfer-owner"),
    ("put", "/group/unpin-message"),
    ("put", "/group/mute-all"),
    ("put", "/group/mute-member"),
    ("put", "/group/cancel-mute-member"),
    ("put", "/group-member/update"),
    ("post", "/group-request/apply"),
    ("put", "/group-request/agree"),
    ("put", "/group-request/refuse"),
    ("delete", "/session/close"),
];

#[test]
fn every_endpoint_has_a_row() {
    let routes: BTreeSet<(&str, &str)> = im_endpoints().filter(|(_, path)| !is_for_operators(path)).collect();
    let rows = MATRIX.iter().map(|(method, path, _, _)| (*method, *path)).chain(NOT_ABOUT_MESSAGES.iter().copied());
    assert_eq!(rows.collect::<BTreeSet<_>>(), routes);
    let reads = NOT_ABOUT_MESSAGES.iter().filter(|(method, _)| *method == "get");
    assert_eq!(reads.count(), 0, "whatever reads belongs into the matrix");
}

/// What asks for a permission, which [`who_is_no_operator_sees_nothing_of_what_operators_see`] has not, and
/// `permissions.rs` has.
fn is_for_operators(path: &str) -> bool {
    path.starts_with("/manager/")
}

async fn who_is_no_operator_sees_nothing_of_what_operators_see(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (owner, viewers) = viewers(&app).await;
    let group = viewers[0].group;
    for (method, path) in im_endpoints().filter(|(_, path)| is_for_operators(path)) {
        let path = format!("/im{path}?id={group}&groupId={group}");
        let body = Some(json!({"id": group, "reason": "none"})).filter(|_| method != "get");
        for person in viewers.iter().map(|viewer| &viewer.person).chain([&owner]) {
            let answer = person.call(&method.to_uppercase(), &path, body.clone()).await;
            assert_eq!(code_of(&answer), 403, "{method} {path}: {answer}");
        }
    }
    assert_eq!(viewers[0].ask("get", "/group/get", "?id=GROUP").await["data"]["status"], 0, "nothing was done either");
}

/// One column: somebody, how he stands to a group, and what must stay hidden from him.
struct Viewer {
    name: &'static str,
    person: Person,
    socket: Socket,
    group: i64,
    owner: i64,
    /// A message that he may see, if there is one.
    seen: Option<i64>,
    /// A message that was sent when he was not there, or, to a member, any.
    later: i64,
    hidden: BTreeSet<i64>,
    /// Shown by its pin to everybody who is there now.
    pinned: i64,
    unread: i64,
}

const SECRET: &str = "a secret of those who are there";

async fn say(person: &Person, group: i64, text: &str, quote: Option<i64>) -> i64 {
    let content = json!({"content": text, "quote": {"messageId": quote}}).to_string();
    let body = json!({"clientMessageId": random_id(), "groupId": group, "type": 101, "content": content,
        "receipt": true});
    id_of(&person.post("/im/message/group/send", body).await)
}

async fn put(person: &Person, path: &str, body: Value) {
    data(person.call("PUT", path, Some(body)).await);
}

/// People in every relation to a group, and what was said in it meanwhile.
async fn viewers(app: &TestApp) -> (Person, Vec<Viewer>) {
    // Ids of group messages that no private message bears.
    let mut direct = DirectWriter::connect(&app.database.url).await;
    direct.set_counter(Counter::Group, 9_000_000).await;
    let titles = ["member", "left", "kicked", "never", "dissolved", "back"];
    let owner = app.user("owner").await;
    let mut people = Vec::new();
    for name in titles {
        let person = app.user(name).await;
        befriend(&owner, &person).await;
        let socket = person.connect().await;
        people.push((person, socket));
    }
    let id = |index: usize| people[index].0.id;
    let new = async |members: Value| {
        id_of(&owner.post("/im/group/create", json!({"name": "us", "memberUserIds": members})).await)
    };
    let ended = new(json!([id(4)])).await;
    let seen_there = say(&owner, ended, "soon over", None).await;
    owner.delete(&format!("/im/group/dissolve?id={ended}")).await;
    let too_late = direct.store_group_message(ended, owner.id, SECRET).await;

    let group = new(json!([id(0), id(1), id(2), id(5)])).await;
    let seen = say(&owner, group, "all of us", None).await;
    people[1].0.delete(&format!("/im/group/quit?groupId={group}")).await;
    let kick = json!({"groupId": group, "memberUserIds": [id(2), id(5)]});
    data(owner.call("DELETE", "/im/group/kicking", Some(kick)).await);
    let mut tables = Tables::open(&app.database.url).await;
    let removed = tables.newest_messages().await[1];

    let later = say(&owner, group, SECRET, None).await;
    say(&owner, group, "quoting", Some(later)).await;
    let pinned = say(&owner, group, "for whoever comes", None).await;
    put(&owner, "/im/group/pin-message", json!({"id": group, "messageId": pinned})).await;
    let recalled = say(&owner, group, SECRET, None).await;
    owner.delete(&format!("/im/message/group/recall?id={recalled}")).await;
    people[0].0.put(&format!("/im/message/group/read?groupId={group}&messageId={later}")).await;
    let missed = tables.newest_messages().await[1];
    owner.post("/im/group/invite", json!({"groupId": group, "memberUserIds": [id(5)]})).await;
    put(&owner, "/im/group/add-admin", json!({"id": group, "userIds": [id(5)]})).await;
    say(&owner, group, "welcome back", None).await;

    let all: BTreeSet<i64> = tables.group_messages_after(removed).await.iter().map(|row| row.id).collect();
    let everything: BTreeSet<i64> = tables.group_messages_after(0).await.iter().map(|row| row.id).collect();
    let in_absence = all.iter().copied().filter(|id| *id <= missed).collect();
    let here = |seen, hidden, unread| (group, seen, later, hidden, unread);
    let columns = [
        here(Some(seen), BTreeSet::new(), 3),
        here(Some(seen), all.clone(), 1),
        here(Some(seen), all, 1),
        here(None, everything, 0),
        (ended, Some(seen_there), too_late, BTreeSet::from([too_late]), 1),
        here(Some(seen), in_absence, 2),
    ];
    let viewers = titles.into_iter().zip(people).zip(columns);
    let owner_id = owner.id;
    let viewer = |((name, (person, socket)), (group, seen, later, hidden, unread))| Viewer {
        name,
        person,
        socket,
        group,
        owner: owner_id,
        seen,
        later,
        hidden,
        pinned,
        unread,
    };
    (owner, viewers.map(viewer).collect())
}

/// Whether an answer names a message: as a number, or in a text of JSON.
fn names(answer: &Value, message: i64) -> bool {
    match answer {
        Value::Number(number) => number.as_i64() == Some(message),
        Value::String(text) => {
            text.starts_with('{') && serde_json::from_str(text).is_ok_and(|inner: Value| names(&inner, message))
        }
        Value::Array(items) => items.iter().any(|item| names(item, message)),
        Value::Object(fields) => fields.values().any(|field| names(field, message)),
        _ => false,
    }
}

impl Viewer {
    async fn ask(&self, method: &str, path: &str, form: &str) -> Value {
        let ids = [("GROUP", self.group), ("LATER", self.later), ("OWNER", self.owner)];
        let form = ids.iter().fold(form.to_owned(), |form, (word, id)| form.replace(word, &id.to_string()));
        let method = method.to_uppercase();
        match form.strip_prefix('?') {
            None if !form.is_empty() => {
                self.person.call(&method, &format!("/im{path}"), Some(serde_json::from_str(&form).unwrap())).await
            }
            _ => self.person.call(&method, &format!("/im{path}{form}"), None).await,
        }
    }

    /// Nothing hidden is in it, but for what is pinned, where the pins of one's own group are shown.
    fn check_hidden(&self, answer: &Value, what: &str) {
        let mut answer = answer.clone();
        if self.name == "back" {
            take_pins(&mut answer);
        }
        for message in &self.hidden {
            assert!(!names(&answer, *message), "{what} shows {message} to {}: {answer}", self.name);
        }
        assert!(self.hidden.is_empty() || !answer.to_string().contains(SECRET), "{what}, {}: {answer}", self.name);
    }
}

/// Takes away the pinned messages of every group in an answer.
fn take_pins(answer: &mut Value) {
    match answer {
        Value::Array(items) => items.iter_mut().for_each(take_pins),
        Value::Object(fields) => {
            fields.remove("pinnedMessages");
            fields.values_mut().for_each(take_pins);
        }
        _ => {}
    }
}

async fn who_is_not_there_sees_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (_, mut viewers) = viewers(&app).await;
    for viewer in &mut viewers {
        let pushes = viewer.socket.drain().await;
        let payloads: Vec<Value> = pushes.into_iter().map(|push| push.payload).collect();
        let payloads = json!(payloads);
        viewer.check_hidden(&payloads, "a push");
        assert!(viewer.seen.is_none_or(|seen| names(&payloads, seen)), "{} was not told: {payloads}", viewer.name);
    }
    for viewer in &viewers {
        let unread = viewer.person.post("/im/unread", json!({})).await;
        let counts = unread["conversations"].as_array().unwrap().iter();
        let count: i64 =
            counts.filter(|row| row["conversationType"] == 2).filter_map(|row| row["count"].as_i64()).sum();
        assert_eq!(count, viewer.unread, "{}: {unread}", viewer.name);
        let group = viewer.ask("get", "/group/get", "?id=GROUP").await;
        let is_there = ["member", "back"].contains(&viewer.name);
        assert_eq!(names(&group["data"]["pinnedMessages"], viewer.pinned), is_there, "{}: {group}", viewer.name);
    }
    for (method, path, form, answers) in MATRIX {
        for (viewer, expected) in viewers.iter().zip(answers) {
            let (answer, what) = (viewer.ask(method, path, form).await, format!("{method} {path}"));
            let code = if let Code(code) = expected { *code } else { 0 };
            assert_eq!(code_of(&answer), code, "{what}, {}: {answer}", viewer.name);
            viewer.check_hidden(&answer, &what);
            if let (Sees, Some(seen)) = (expected, viewer.seen) {
                assert!(names(&answer, seen), "{what} hides {seen} from {}: {answer}", viewer.name);
                let is_member = viewer.name == "member";
                assert!(!is_member || names(&answer, viewer.later), "{what} hides from a member: {answer}");
            }
        }
    }
}

async fn who_came_back_is_no_reader_of_what_he_missed(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (owner, viewers) = viewers(&app).await;
    let back = &viewers[5];
    let newest = back.ask("get", "/message/group/list", "?groupId=GROUP&limit=1").await["data"][0].clone();
    back.person.put(&format!("/im/message/group/read?groupId={}&messageId={}", back.group, id_of(&newest))).await;
    let path = format!("/im/message/group/get-read-user-ids?groupId={}&messageId={}", back.group, back.later);
    assert_eq!(owner.get(&path).await, json!([viewers[0].person.id]));
    let page = owner.get(&format!("/im/message/group/pull?minId={}&size=1", back.later - 1)).await;
    assert_eq!((id_of(&page[0]), &page[0]["readCount"], &page[0]["receiptStatus"]), (back.later, &json!(1), &json!(2)));
}
