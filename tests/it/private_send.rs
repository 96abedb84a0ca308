//! Sending private messages: what may be sent to whom, quotes, and the order of the checks (`contract/02` section 2).

use serde_json::{Value, json};

use crate::support::app::{Person, TestApp, befriend, data, id_of, random_id};
use crate::support::barrier::told;
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::{code, redacted};
use crate::support::tables::{fingerprint, open};

on_every_database! {
    a_message_has_one_shape_everywhere,
    every_user_content_type_is_taken,
    content_that_breaks_its_rule_is_refused,
    a_request_that_is_malformed_is_refused,
    only_friends_may_write,
    a_quote_is_rebuilt_from_the_stored_original,
    a_quote_that_cannot_be_used_is_removed,
    a_quote_must_name_a_living_message_of_the_conversation,
    checks_come_in_the_order_of_the_contract,
    a_repeat_is_answered_without_any_check,
}

const INVALID: i64 = 1_040_300_013;
const QUOTE_INVALID: i64 = 1_040_300_008;
const NOT_FRIEND: i64 = 1_040_600_001;
const BLOCKED: i64 = 1_040_600_004;

fn message(receiver: i64, content_type: i64, content: &str) -> Value {
    json!({"clientMessageId": random_id(), "receiverId": receiver, "type": content_type, "content": content})
}

async fn send(sender: &Person, body: Value) -> Value {
    sender.call("POST", "/im/message/private/send", Some(body)).await
}

async fn send_code(sender: &Person, receiver: &Person, content_type: i64, content: &str) -> i64 {
    code(&send(sender, message(receiver.id, content_type, content)).await)
}

/// Sets whether `owner` blocks `other`, for which there is no endpoint yet.
async fn set_blocked(app: &TestApp, owner: &Person, other: &Person, blocked: bool) {
    let row = format!("user_id = {} AND friend_user_id = {}", owner.id, other.id);
    let sql = format!("UPDATE im_friend SET blocked = {blocked} WHERE {row}");
    open(&app.database.url).await.run_text(&sql).await.unwrap();
}

async fn a_message_has_one_shape_everywhere(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (mut alices, mut bobs) = (alice.connect().await, bob.connect().await);
    let body = message(bob.id, 101, r#"{"content":"hello","extra":[1]}"#);
    let sent = data(send(&alice, body.clone()).await);
    insta::allow_duplicates! {
        insta::assert_snapshot!(redacted(&sent, &["id", "clientMessageId", "senderId", "receiverId", "sendTime"]), @r#"
    {
      "clientMessageId": "[clientMessageId]",
      "content": "{\"content\":\"hello\",\"extra\":[1]}",
      "id": "[id]",
      "receiptStatus": 1,
      "receiverId": "[receiverId]",
      "sendTime": "[sendTime]",
      "senderId": "[senderId]",
      "status": 0,
      "type": 101
    }
    "#);
    }
    assert_eq!((&sent["senderId"], &sent["receiverId"]), (&json!(alice.id), &json!(bob.id)));
    assert_eq!(sent["clientMessageId"], body["clientMessageId"]);
    for socket in [&mut alices, &mut bobs] {
        let push = socket.next().await;
        assert_eq!((push.conversation_type, push.content_type, &push.payload), (1, 101, &sent));
    }
    for person in [&alice, &bob] {
        assert_eq!(person.pull_all(100).await.last(), Some(&sent));
        let peer = if person.id == alice.id { bob.id } else { alice.id };
        let history = person.get(&format!("/im/message/private/list?receiverId={peer}&limit=1")).await;
        assert_eq!(history, json!([sent]));
    }
}

async fn every_user_content_type_is_taken(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let emoji = "😀".repeat(2_048);
    let hundred = vec!["{}"; 100].join(",");
    let contents: &[(i64, String)] = &[
        (101, r#"{"content":"hi"}"#.into()),
        (101, format!(r#"{{"content":"{emoji}"}}"#)),
        (102, r#"{"url":"https://x.example/a.png","thumbnailUrl":"/t.png","width":1,"height":2,"size":3}"#.into()),
        (103, r#"{"url":"/a.mp3","duration":0}"#.into()),
        (104, r#"{"url":"blob:x","coverUrl":"/c.png"}"#.into()),
        (105, r#"{"url":"/a.pdf","name":"a.pdf","size":1}"#.into()),
        (107, format!(r#"{{"title":"t","messages":[{hundred}]}}"#)),
        (108, r#"{"targetType":1,"targetId":7,"name":"n"}"#.into()),
        (115, format!(r#"{{"url":"{}"}}"#, "u".repeat(2_048))),
        (125, r#"{"materialId":1}"#.into()),
        (125, r#"{"title":"t","url":"","coverUrl":null}"#.into()),
    ];
    for (content_type, content) in contents {
        let sent = data(send(&alice, message(bob.id, *content_type, content)).await);
        assert_eq!((&sent["type"], &sent["content"]), (&json!(content_type), &json!(content)), "byte for byte");
        assert_eq!(bob.pull_from(id_of(&sent) - 1, 1).await, [sent]);
    }
}

async fn content_that_breaks_its_rule_is_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let before = fingerprint(&app.database.url).await;
    let long_text = format!(r#"{{"content":"{}"}}"#, "x".repeat(4_097));
    let long_url = format!(r#"{{"url":"{}"}}"#, "u".repeat(2_049));
    let large = format!(r#"{{"content":"x","padding":"{}"}}"#, "x".repeat(64 << 10));
    let many = format!(r#"{{"title":"t","messages":[{}]}}"#, vec!["{}"; 101].join(","));
    let deep = format!(r#"{{"content":"x","deep":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    let cases: &[(i64, &[&str])] = &[
        (101, &["hello", "[]", "null", r#""x""#, "{}", r#"{"content":" "}"#, r#"{"content":1}"#, r#"{"content":"x""#]),
        (101, &[&long_text, &large, &deep, r#"{"content":"\u0000"}"#, r#"{"content":"x","y":"\u0000"}"#]),
        (
            102,
            &["{}", r#"{"url":" "}"#, r#"{"url":1}"#, r#"{"url":" JavaScript:x"}"#, r#"{"url":"data:x"}"#, &long_url],
        ),
        (
            103,
            &[
                r#"{"url":"/a"}"#,
                r#"{"duration":1}"#,
                r#"{"url":"/a","duration":-1}"#,
                r#"{"url":"/a","duration":"x"}"#,
            ],
        ),
        (104, &[r#"{"coverUrl":"/c"}"#, r#"{"url":"vbscript:x"}"#]),
        (
            105,
            &[r#"{"url":"/a"}"#, r#"{"name":"n"}"#, r#"{"url":"/a","name":" "}"#, r#"{"url":"file:///x","name":"n"}"#],
        ),
        (
            107,
            &[
                "{}",
                r#"{"title":"t","messages":[]}"#,
                r#"{"title":" ","messages":[{}]}"#,
                r#"{"messages":[{}]}"#,
                &many,
            ],
        ),
        (108, &[r#"{"targetType":1,"name":"n"}"#, r#"{"targetId":1,"name":"n"}"#, r#"{"targetType":1,"targetId":1}"#]),
        (115, &["{}", r#"{"url":"javascript:x"}"#]),
        (
            125,
            &["{}", r#"{"title":" "}"#, r#"{"materialId":1,"url":"data:x"}"#, r#"{"title":"t","coverUrl":"data:x"}"#],
        ),
    ];
    for (content_type, contents) in cases {
        for content in *contents {
            assert_eq!(send_code(&alice, &bob, *content_type, content).await, INVALID, "{content_type} {content:.80}");
        }
    }
    assert_eq!(fingerprint(&app.database.url).await, before);
}

async fn a_request_that_is_malformed_is_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let before = fingerprint(&app.database.url).await;
    for client_message_id in ["", " ", "a b", "ä", "a\tb", &"x".repeat(65)] {
        let mut body = message(bob.id, 101, r#"{"content":"x"}"#);
        body["clientMessageId"] = json!(client_message_id);
        assert_eq!(code(&send(&alice, body).await), 400, "{client_message_id:?}");
    }
    // Signals, events and numbers that nobody knows are not for users.
    for content_type in [0, 1, 106, 1204, 1501, 1610, 2101, 2200, 2201, 2301, -101, 1 << 40] {
        assert_eq!(
            send_code(&alice, &bob, content_type, r#"{"content":"x","messageId":1}"#).await,
            400,
            "{content_type}"
        );
    }
    assert_eq!(send_code(&alice, &bob, 101, "").await, 400, "empty content");
    assert_eq!(fingerprint(&app.database.url).await, before);
    let mut body = message(bob.id, 101, r#"{"content":"x"}"#);
    body["receiverId"] = json!(bob.id.to_string());
    body["type"] = json!("101");
    body["unknown"] = json!({"is": "ignored"});
    assert_eq!(code(&send(&alice, body).await), 0, "numbers may be strings");
}

async fn only_friends_may_write(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("stranger").await;
    let mut bobs = bob.connect().await;
    let before = fingerprint(&app.database.url).await;
    let text = r#"{"content":"x"}"#;
    assert_eq!(send_code(&stranger, &bob, 101, text).await, NOT_FRIEND);
    assert_eq!(send_code(&alice, &alice, 101, text).await, NOT_FRIEND, "oneself");
    for nobody in [0, -1, 9_007_199_254_740_991, i64::MAX] {
        assert_eq!(code(&send(&alice, message(nobody, 101, text)).await), NOT_FRIEND, "{nobody}");
    }
    // A request that waits is no friendship.
    alice.post("/im/friend-request/apply", json!({"toUserId": stranger.id})).await;
    assert_eq!(send_code(&alice, &stranger, 101, text).await, NOT_FRIEND);

    set_blocked(&app, &bob, &alice, true).await;
    assert_eq!(send_code(&alice, &bob, 101, text).await, BLOCKED);
    let messages =
        |tables: Vec<(&'static str, i64, i64)>| tables.into_iter().find(|table| table.0 == "im_private_message");
    assert_eq!(messages(fingerprint(&app.database.url).await), messages(before), "nothing was stored");
    assert_eq!(told(&app, &bob, &mut bobs).await, vec![]);
    assert_eq!(send_code(&bob, &alice, 101, text).await, 0, "one's own block does not limit oneself");
    set_blocked(&app, &bob, &alice, false).await;
    assert_eq!(send_code(&alice, &bob, 101, text).await, 0);

    // One side is not enough.
    for (owner, friend) in [(&alice, &bob), (&bob, &alice)] {
        let row = format!("user_id = {} AND friend_user_id = {}", owner.id, friend.id);
        let mut db = open(&app.database.url).await;
        db.run_text(&format!("UPDATE im_friend SET status = 1 WHERE {row}")).await.unwrap();
        assert_eq!(send_code(&alice, &bob, 101, text).await, NOT_FRIEND);
        assert_eq!(send_code(&bob, &alice, 101, text).await, NOT_FRIEND);
        db.run_text(&format!("UPDATE im_friend SET status = 0 WHERE {row}")).await.unwrap();
    }
    assert_eq!(send_code(&alice, &bob, 101, text).await, 0);
}

fn quoting(id: &Value) -> String {
    json!({"content": "re", "quote": {"messageId": id, "senderId": 1, "type": 102, "content": "a lie"}}).to_string()
}

async fn a_quote_is_rebuilt_from_the_stored_original(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let original = alice.send(&bob, "original").await;
    let reply = data(send(&bob, message(alice.id, 101, &quoting(&original["id"]))).await);
    let quote = json!({
        "messageId": original["id"], "senderId": alice.id, "type": 101, "content": original["content"]
    });
    let content = |message: &Value| serde_json::from_str::<Value>(message["content"].as_str().unwrap()).unwrap();
    assert_eq!(content(&reply), json!({"content": "re", "quote": quote}));
    assert_eq!(alice.pull_from(id_of(&reply) - 1, 1).await.last(), Some(&reply));

    // A quote of a reply holds the reply without its own quote; the id may be a string.
    let again = data(send(&alice, message(bob.id, 101, &quoting(&json!(reply["id"].to_string())))).await);
    let quoted = &content(&again)["quote"];
    assert_eq!((&quoted["messageId"], &quoted["content"]), (&reply["id"], &json!(r#"{"content":"re"}"#)));

    // Rows that the server made can be quoted, and a later recall leaves the copy alone.
    let event = &bob.pull_all(1).await[0];
    assert_eq!(event["type"], 1204);
    assert_eq!(send_code(&bob, &alice, 101, &quoting(&event["id"])).await, 0);
    alice.delete(&format!("/im/message/private/recall?id={}", original["id"])).await;
    assert_eq!(content(&bob.pull_from(id_of(&reply) - 1, 1).await[0])["quote"], quote);
}

async fn a_quote_that_cannot_be_used_is_removed(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    for quote in [r#"null"#, r#"[7]"#, r#""7""#, r#"{}"#, r#"{"messageId":null}"#, r#"{"messageId":"x"}"#] {
        let sent = data(send(&alice, message(bob.id, 101, &format!(r#"{{"content":"x","quote":{quote}}}"#))).await);
        assert_eq!(sent["content"], r#"{"content":"x"}"#, "{quote}");
    }
}

async fn a_quote_must_name_a_living_message_of_the_conversation(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    let elsewhere = carol.send(&alice, "another conversation").await;
    let recalled = alice.send(&bob, "recalled").await;
    alice.delete(&format!("/im/message/private/recall?id={}", recalled["id"])).await;
    let before = fingerprint(&app.database.url).await;
    for id in [&elsewhere["id"], &recalled["id"], &json!(9_007_199_254_740_991_i64), &json!(1)] {
        assert_eq!(send_code(&alice, &bob, 101, &quoting(id)).await, QUOTE_INVALID, "{id}");
    }
    assert_eq!(fingerprint(&app.database.url).await, before);
}

async fn checks_come_in_the_order_of_the_contract(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("stranger").await;
    let bad_quote = quoting(&json!(9_007_199_254_740_991_i64));
    // Form before content, content before friendship, friendship before quote.
    assert_eq!(send_code(&stranger, &bob, 2101, "{}").await, 400);
    assert_eq!(send_code(&stranger, &bob, 101, "{}").await, INVALID);
    assert_eq!(send_code(&stranger, &bob, 101, &bad_quote).await, NOT_FRIEND);
    set_blocked(&app, &bob, &alice, true).await;
    assert_eq!(send_code(&alice, &bob, 101, &bad_quote).await, BLOCKED);
    set_blocked(&app, &bob, &alice, false).await;
    assert_eq!(send_code(&alice, &bob, 101, &bad_quote).await, QUOTE_INVALID);
}

async fn a_repeat_is_answered_without_any_check(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let original = bob.send(&alice, "original").await;
    let body = message(bob.id, 101, &quoting(&original["id"]));
    let first = data(send(&alice, body.clone()).await);
    let mut bobs = bob.connect().await;
    set_blocked(&app, &bob, &alice, true).await;
    assert_eq!(data(send(&alice, body.clone()).await), first, "blocked since");
    bob.delete(&format!("/im/message/private/recall?id={}", original["id"])).await;
    assert_eq!(data(send(&alice, body.clone()).await), first, "the quoted message recalled since");
    // Another content under the same key is an error, also where a check would refuse it anyway.
    let mut other = body.clone();
    other["content"] = json!(r#"{"content":"another"}"#);
    assert_eq!(code(&send(&alice, other).await), 1_040_300_014);
    bob.read(&alice, id_of(&first)).await;
    assert_eq!(data(send(&alice, body).await)["receiptStatus"], 2, "the row as it is now");
    let pushes = told(&app, &bob, &mut bobs).await;
    assert!(pushes.iter().all(|push| push.content_type != 101), "no second push: {pushes:?}");
}
