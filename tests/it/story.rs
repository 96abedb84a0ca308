//! The main story: two people chat from several devices, one goes away and comes back, and every device is complete.

use serde_json::json;

use crate::support::app::{TestApp, befriend, id_of, ids_of};
use crate::support::databases::{Backend, on_every_database};

on_every_database! {
    two_people_chat_on_several_devices,
}

const TEXT: i64 = 101;
const FRIEND_ADD: i64 = 1204;
const RECALL: i64 = 2101;
const RECEIPT: i64 = 2200;
const READ: i64 = 2201;

async fn two_people_chat_on_several_devices(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let mut phone = alice.connect().await;
    let mut laptop = alice.connect().await;
    let mut bobs = bob.connect().await;
    befriend(&alice, &bob).await;
    for socket in [&mut phone, &mut laptop, &mut bobs] {
        assert_eq!(socket.next_of(FRIEND_ADD).await.payload["senderId"], alice.id);
    }

    // A message reaches every device of both, the sending one too, and is what a pull shows.
    let sent = bob.send(&alice, "hello").await;
    for socket in [&mut phone, &mut laptop, &mut bobs] {
        let push = socket.next_of(TEXT).await;
        assert_eq!((push.conversation_type, &push.payload), (1, &sent));
    }
    let pulled = alice.pull_all(100).await;
    assert_eq!(pulled.last().unwrap(), &sent);

    // One device goes away, misses five, comes back and pulls exactly these.
    let cursor = id_of(&sent);
    laptop.close().await;
    let mut missed = Vec::new();
    for number in 0..5 {
        missed.push(bob.send(&alice, &format!("number {number}")).await);
    }
    let mut laptop = alice.try_connect("&resume=0").await.unwrap();
    assert_eq!(alice.pull_from(cursor, 100).await, missed);
    assert_eq!(laptop.drain().await, vec![]);
    let pushed = phone.drain().await.into_iter().map(|push| push.payload).collect::<Vec<_>>();
    assert_eq!(ids_of(&pushed), ids_of(&missed));
    bobs.drain().await;

    // Reading on one device clears the other, and the sender sees the receipt.
    let newest = id_of(missed.last().unwrap());
    alice.read(&bob, newest).await;
    for socket in [&mut phone, &mut laptop] {
        let push = socket.next_of(READ).await;
        assert_eq!(
            (push.payload["readId"].as_i64(), push.payload["receiverId"].as_i64()),
            (Some(newest), Some(bob.id))
        );
    }
    let receipt = bobs.next_of(RECEIPT).await.payload;
    assert_eq!((receipt["id"].as_i64(), receipt["senderId"].as_i64()), (Some(newest), Some(alice.id)));
    assert_eq!(bob.get(&format!("/im/message/private/max-read-message-id?peerId={}", alice.id)).await, newest);
    let rows = bob.pull_from(cursor, 100).await;
    assert!(rows.iter().all(|row| row["receiptStatus"] == 2), "{rows:?}");

    // A recall reaches everybody, and the text is gone from pulls and history.
    let recall = bob.delete(&format!("/im/message/private/recall?id={newest}")).await;
    for socket in [&mut phone, &mut laptop, &mut bobs] {
        let push = socket.next_of(RECALL).await;
        assert_eq!(push.payload, recall);
        assert_eq!(push.payload["content"], json!({"messageId": newest}).to_string());
    }
    let rows = alice.pull_from(newest - 1, 100).await;
    assert_eq!(
        (&rows[0]["status"], &rows[0]["content"], rows[1]["type"].as_i64()),
        (&json!(2), &json!("{}"), Some(RECALL))
    );
    let history = alice.get(&format!("/im/message/private/list?receiverId={}&limit=50", bob.id)).await;
    assert_eq!((id_of(&history[0]), history[0]["type"].as_i64()), (newest, Some(RECALL)));
}
