//! The pull of read positions (`contract/02` R1).

use serde_json::json;

use crate::support::app::{TestApp, befriend, id_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::{code_of, redacted};

on_every_database! {
    positions_are_pulled_by_time_and_id,
}

async fn positions_are_pulled_by_time_and_id(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let mut read = Vec::new();
    for number in 0..5 {
        let friend = app.user(&format!("friend{number}")).await;
        befriend(&alice, &friend).await;
        let message = id_of(&friend.send(&alice, "x").await);
        alice.read(&friend, message).await;
        read.push((friend.id, message));
    }
    // Exactly once, whatever the page.
    for limit in [1, 2, 4, 5, 200] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = alice.get(&format!("/im/conversation-read/pull?limit={limit}{cursor}")).await;
            let page = page.as_array().unwrap();
            found
                .extend(page.iter().map(|row| (row["targetId"].as_i64().unwrap(), row["messageId"].as_i64().unwrap())));
            let Some(last) = page.last() else { break };
            cursor = format!("&lastUpdateTime={}&lastId={}", last["updateTime"], last["id"]);
        }
        assert_eq!(found, read, "limit {limit}");
    }
    let first = alice.get("/im/conversation-read/pull?limit=1").await;
    insta::allow_duplicates! {
        insta::assert_snapshot!(redacted(&first, &["id", "messageId", "targetId", "updateTime"]), @r#"
    [
      {
        "conversationType": 1,
        "id": "[id]",
        "messageId": "[messageId]",
        "targetId": "[targetId]",
        "updateTime": "[updateTime]"
      }
    ]
    "#);
    }
    // Half a cursor is none.
    for half in ["&lastUpdateTime=9007199254740991", "&lastId=9007199254740991", "&lastUpdateTime=&lastId="] {
        let rows = alice.get(&format!("/im/conversation-read/pull?limit=200{half}")).await;
        assert_eq!(rows.as_array().unwrap().len(), 5, "{half}");
    }
    for limit in ["0", "-1", "201", ""] {
        assert_eq!(code_of(&alice, "GET", &format!("/im/conversation-read/pull?limit={limit}")).await, 400, "{limit}");
    }
    let beyond = alice.get("/im/conversation-read/pull?limit=200&lastUpdateTime=9007199254740991&lastId=1").await;
    assert_eq!(beyond, json!([]));
}
