//! Messages in the eyes of operators (`contract/05` E3): everything that was said, recalled or not.

use serde_json::{Value, json};

use crate::support::app::{Person, TestApp, data, id_of, ids_of, random_id};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::check_forms;
use crate::support::groups::{make_group, say};

on_every_database! {
    private_messages_are_found_and_shown,
    group_messages_are_found_and_shown,
    operators_read_what_was_recalled_and_nobody_else_does,
    many_mentions_fit_on_one_page,
    messages_that_are_asked_for_in_the_wrong_form_are_refused,
}

const PRIVATE: &str = "/im/manager/message/private";
const GROUP: &str = "/im/manager/message/group";
const RECALLED: i64 = 2;

/// The ids on a page of many, and the total.
async fn page(operator: &Person, path: &str, query: &str) -> (Vec<i64>, i64) {
    let page = operator.get(&format!("{path}/page?pageSize=200&{query}")).await;
    (ids_of(page["list"].as_array().unwrap()), page["total"].as_i64().unwrap())
}

async fn check_found(operator: &Person, path: &str, cases: &[(String, Vec<i64>)]) {
    for (query, expected) in cases {
        assert_eq!(page(operator, path, query).await, (expected.clone(), expected.len() as i64), "{path} {query}");
    }
}

/// One message, by the page and by itself.
async fn shown(operator: &Person, path: &str, id: i64) -> (Value, Value) {
    let page = operator.get(&format!("{path}/page?pageSize=200")).await;
    let row = page["list"].as_array().unwrap().iter().find(|row| row["id"] == id).cloned();
    (row.expect("the page has the message"), operator.get(&format!("{path}/get?id={id}")).await)
}

/// Says something in a group to some of it, asking for a receipt; the id.
async fn mention(person: &Person, group: i64, text: &str, users: &[i64]) -> i64 {
    let content = json!({"content": text}).to_string();
    let body = json!({"clientMessageId": random_id(), "groupId": group, "type": 101, "content": content,
        "atUserIds": users, "receipt": true});
    id_of(&person.post("/im/message/group/send", body).await)
}

async fn private_messages_are_found_and_shown(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    crate::support::app::befriend(&bob, &carol).await;
    let there = id_of(&data(alice.send_as(&bob, "key-1", "Hello 100%").await));
    let back = id_of(&bob.send(&alice, "good day").await);
    let other = id_of(&bob.send(&carol, "hello you").await);
    bob.read(&alice, there).await;
    let (mut row, alone) = shown(&operator, PRIVATE, there).await;
    let time = row["sendTime"].clone();
    let expected = json!({
        "id": there, "clientMessageId": "key-1", "senderId": alice.id, "senderNickname": "alice",
        "receiverId": bob.id, "receiverNickname": "bob", "type": 101, "content": r#"{"content":"Hello 100%"}"#,
        "status": 0, "receiptStatus": 2, "sendTime": time, "createTime": time,
    });
    assert_eq!(row, expected);
    row["senderNickname"] = Value::Null;
    row["receiverNickname"] = Value::Null;
    assert_eq!(alone, row);
    let (a, b) = (alice.id, bob.id);
    let cases = [
        ("type=101".to_owned(), vec![other, back, there]),
        (format!("type=101&senderId={b}"), vec![other, back]),
        (format!("type=101&receiverId={b}"), vec![there]),
        (format!("type=101&senderId={a}&receiverId={b}"), vec![back, there]),
        (format!("type=101&senderId={b}&receiverId={a}"), vec![back, there]),
        (format!("senderId={a}&receiverId={}", carol.id), vec![]),
        ("content=HELLO".to_owned(), vec![other, there]),
        ("content=100%25".to_owned(), vec![there]),
        ("content=%27;--".to_owned(), vec![]),
        ("status=2".to_owned(), vec![]),
        ("type=101&sendTime=,2020-01-01%2000:00:00".to_owned(), vec![]),
        ("type=101&sendTime=2020-01-01%2000:00:00".to_owned(), vec![other, back, there]),
    ];
    check_found(&operator, PRIVATE, &cases).await;
    // That they are friends is a message too.
    let (everything, total) = page(&operator, PRIVATE, "").await;
    assert_eq!((everything.len(), total), (5, 5));
    assert!(everything.is_sorted_by(|one, next| one > next), "{everything:?}");
}

async fn group_messages_are_found_and_shown(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (one, two) = (make_group(&alice, &[&bob]).await, make_group(&bob, &[]).await);
    const NOBODY: i64 = 987_654_321;
    let called = mention(&alice, one, "Hello", &[-1, bob.id, NOBODY, alice.id]).await;
    let (plain, elsewhere) = (say(&bob, one, "good day").await, say(&bob, two, "hello?").await);
    bob.put(&format!("/im/message/group/read?groupId={one}&messageId={called}")).await;
    let (mut row, alone) = shown(&operator, GROUP, called).await;
    let time = row["sendTime"].clone();
    let expected = json!({
        "id": called, "clientMessageId": row["clientMessageId"], "groupId": one, "groupName": "us",
        "senderId": alice.id, "senderNickname": "alice", "type": 101, "content": r#"{"content":"Hello"}"#,
        "status": 0, "atUserIds": [-1, bob.id, NOBODY, alice.id], "atUserNicknames": [null, "bob", null, "alice"],
        "receiptStatus": 2, "sendTime": time, "createTime": time,
    });
    assert_eq!(row, expected);
    for key in ["groupName", "senderNickname", "atUserNicknames"] {
        row[key] = Value::Null;
    }
    assert_eq!(alone, row);
    let (plain_row, _) = shown(&operator, GROUP, plain).await;
    assert_eq!((&plain_row["atUserIds"], &plain_row["atUserNicknames"]), (&Value::Null, &Value::Null));
    let cases = [
        ("type=101".to_owned(), vec![elsewhere, plain, called]),
        (format!("type=101&groupId={one}"), vec![plain, called]),
        (format!("type=101&senderId={}", bob.id), vec![elsewhere, plain]),
        (format!("type=101&senderId={}&groupId={one}", bob.id), vec![plain]),
        ("content=hello".to_owned(), vec![elsewhere, called]),
        ("type=1501&content=member".to_owned(), page(&operator, GROUP, "type=1501").await.0),
        ("status=2".to_owned(), vec![]),
        (format!("groupId={NOBODY}"), vec![]),
        ("sendTime[1]=2020-01-01%2000:00:00".to_owned(), vec![]),
    ];
    check_found(&operator, GROUP, &cases).await;
}

async fn operators_read_what_was_recalled_and_nobody_else_does(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let group = make_group(&alice, &[&bob]).await;
    let (private, in_group) = (id_of(&alice.send(&bob, "a slip").await), say(&alice, group, "another slip").await);
    alice.delete(&format!("/im/message/private/recall?id={private}")).await;
    alice.delete(&format!("/im/message/group/recall?id={in_group}")).await;
    for (path, id, text) in [(PRIVATE, private, "a slip"), (GROUP, in_group, "another slip")] {
        let (row, alone) = shown(&operator, path, id).await;
        for row in [row, alone] {
            assert_eq!(row["status"], RECALLED, "{row}");
            assert_eq!(row["content"], json!({"content": text}).to_string());
        }
        check_found(&operator, path, &[("status=2".to_owned(), vec![id]), ("content=slip".to_owned(), vec![id])]).await;
    }
    for person in [&alice, &bob] {
        for table in ["private", "group"] {
            let rows = person.get(&format!("/im/message/{table}/pull?minId=0&size=200")).await;
            assert!(!rows.to_string().contains("slip"), "{rows}");
        }
    }
}

async fn many_mentions_fit_on_one_page(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (operator, alice) = (app.operator().await, app.user("alice").await);
    let group = make_group(&alice, &[]).await;
    for round in 0..36 {
        let users: Vec<i64> = (0..1_000).map(|number| 1_000_000 + round * 1_000 + number).collect();
        mention(&alice, group, "everybody", &users).await;
    }
    let (rows, _) = page(&operator, GROUP, "type=101").await;
    assert_eq!(rows.len(), 36, "36,000 people are mentioned on it");
}

async fn messages_that_are_asked_for_in_the_wrong_form_are_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    for path in [PRIVATE, GROUP] {
        let forms = ["pageNo=0", "pageSize=201", "type=x", "senderId=1.5", "status=no", "sendTime=now"];
        for form in forms.into_iter().map(str::to_owned).chain([format!("content={}", "x".repeat(201))]) {
            let asked = format!("{path}/page?{form}");
            check_forms(&operator, &[("GET", &asked, Value::Null)], &[("GET", &asked, Value::Null)]).await;
        }
        let (nothing, word) = (format!("{path}/get"), format!("{path}/get?id=x"));
        let malformed = [("GET", nothing.as_str(), Value::Null), ("GET", word.as_str(), Value::Null)];
        check_forms(&operator, &malformed, &malformed).await;
        for missing in [0, -1, i64::MAX] {
            assert_eq!(operator.get(&format!("{path}/get?id={missing}")).await, Value::Null);
        }
    }
}
