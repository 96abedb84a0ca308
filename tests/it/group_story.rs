//! The main story of groups: friends talk in a group, one is removed and comes back, receipts and recalls reach whom
//! they concern.

use serde_json::{Value, json};

use crate::support::app::{Person, TestApp, data, id_of, ids_of, random_id};
use crate::support::databases::{Backend, on_every_database};

on_every_database! {
    three_people_talk_in_a_group,
    a_recall_of_a_pinned_message_makes_group_lists_old,
}

const TEXT: i64 = 101;
const GROUP_CREATE: i64 = 1501;
const GROUP_MEMBER_KICK: i64 = 1508;
const RECALL: i64 = 2101;
const RECEIPT: i64 = 2200;

async fn say(person: &Person, group: i64, text: &str, receipt: bool) -> Value {
    let content = json!({"content": text}).to_string();
    let body = json!({
        "clientMessageId": random_id(), "groupId": group, "type": TEXT, "content": content, "receipt": receipt,
    });
    person.post("/im/message/group/send", body).await
}

async fn pull(person: &Person, min_id: i64) -> Vec<Value> {
    let rows = person.get(&format!("/im/message/group/pull?minId={min_id}&size=100")).await;
    rows.as_array().unwrap().clone()
}

async fn three_people_talk_in_a_group(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    crate::support::app::befriend(&alice, &carol).await;
    let mut bobs = bob.connect().await;
    let mut alices = alice.connect().await;

    let members = json!([bob.id, carol.id]);
    let group = alice.post("/im/group/create", json!({"name": "us", "memberUserIds": members})).await;
    let id = id_of(&group);
    assert_eq!((group["joinStatus"].as_i64(), group["ownerUserId"].as_i64()), (Some(0), Some(alice.id)));
    assert_eq!(bobs.next_of(GROUP_CREATE).await.payload["groupId"], id);

    // A message reaches the members and is what they pull.
    let sent = say(&alice, id, "hello", true).await;
    assert_eq!(sent["receiverUserIds"], json!([alice.id, bob.id, carol.id]));
    let push = bobs.next_of(TEXT).await;
    assert_eq!((push.conversation_type, id_of(&push.payload)), (2, id_of(&sent)));
    let rows = pull(&carol, 0).await;
    assert_eq!(rows.iter().map(|row| row["type"].as_i64().unwrap()).collect::<Vec<_>>(), [GROUP_CREATE, TEXT]);
    assert_eq!(rows[1]["receiverUserIds"], Value::Null);

    // The sender sees how many have read it.
    let read = format!("/im/message/group/read?groupId={id}&messageId={}", id_of(&sent));
    bob.put(&read).await;
    let receipt = alices.next_of(RECEIPT).await.payload;
    assert_eq!((receipt["readCount"].as_i64(), receipt["receiptStatus"].as_i64()), (Some(1), Some(1)));
    carol.put(&read).await;
    let receipt = alices.next_of(RECEIPT).await.payload;
    assert_eq!((receipt["readCount"].as_i64(), receipt["receiptStatus"].as_i64()), (Some(2), Some(2)));
    let readers =
        alice.get(&format!("/im/message/group/get-read-user-ids?groupId={id}&messageId={}", id_of(&sent))).await;
    assert_eq!(readers, json!([bob.id, carol.id]));
    let row = pull(&alice, id_of(&sent) - 1).await.remove(0);
    assert_eq!((row["readCount"].as_i64(), row["receiptStatus"].as_i64()), (Some(2), Some(2)));

    // Who is removed sees his removal and nothing after it, and comes back to what is new.
    let body = json!({"groupId": id, "memberUserIds": [bob.id]});
    data(alice.call("DELETE", "/im/group/kicking", Some(body.clone())).await);
    let kicked = bobs.next_of(GROUP_MEMBER_KICK).await.payload;
    let secret = say(&alice, id, "without bob", false).await;
    assert_eq!(bobs.drain().await, vec![]);
    assert_eq!(ids_of(&pull(&bob, id_of(&sent)).await), [id_of(&kicked)]);
    alice.post("/im/group/invite", body).await;
    let again = say(&alice, id, "bob is back", false).await;
    let rows = pull(&bob, id_of(&kicked)).await;
    assert_eq!(ids_of(&rows), [id_of(&secret) + 1, id_of(&again)]);
    let history = bob.get(&format!("/im/message/group/list?groupId={id}&limit=50")).await;
    let seen: Vec<i64> = history.as_array().unwrap().iter().map(id_of).collect();
    assert!(!seen.contains(&id_of(&secret)) && seen.contains(&id_of(&sent)), "{seen:?}");

    // A recall reaches everybody.
    alice.delete(&format!("/im/message/group/recall?id={}", id_of(&again))).await;
    let recall = bobs.next_of(RECALL).await.payload;
    assert_eq!(recall["content"], json!({"messageId": id_of(&again)}).to_string());

    // The group ends; it stays in the list, as left.
    alice.delete(&format!("/im/group/dissolve?id={id}")).await;
    let groups = bob.get("/im/group/list").await;
    assert_eq!((groups[0]["joinStatus"].as_i64(), groups[0]["status"].as_i64()), (Some(1), Some(1)));
}

async fn a_recall_of_a_pinned_message_makes_group_lists_old(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let group = alice.post("/im/group/create", json!({"name": "us", "memberUserIds": [bob.id]})).await;
    let sent = say(&alice, id_of(&group), "pinned", false).await;
    let pin = json!({"id": group["id"], "messageId": sent["id"]});
    data(alice.call("PUT", "/im/group/pin-message", Some(pin)).await);
    let known = bob.post("/im/sync", json!({})).await["groupList"].clone();
    assert_eq!(known["list"][0]["pinnedMessages"][0]["status"], 0);
    alice.delete(&format!("/im/message/group/recall?id={}", id_of(&sent))).await;
    let news = bob.post("/im/sync", json!({"groupListTime": known["time"]})).await;
    let pinned = &news["groupList"]["list"][0]["pinnedMessages"][0];
    assert_eq!((&pinned["status"], &pinned["content"]), (&json!(2), &json!("{}")), "{news}");
}
