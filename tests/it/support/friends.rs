//! Friends and friend requests as a client handles them.

use serde_json::{Value, json};

use super::app::{Person, Push, Socket, data};

/// The table behind a state pull.
pub const FRIEND: &str = "/im/friend";
pub const REQUEST: &str = "/im/friend-request";

/// The code of an answer.
pub fn code_of(answer: &Value) -> i64 {
    answer["code"].as_i64().unwrap_or_else(|| panic!("no code in {answer}"))
}

/// Applies for friendship and says nothing else; the id of the request.
pub async fn apply(from: &Person, to: &Person) -> i64 {
    from.post("/im/friend-request/apply", json!({"toUserId": to.id})).await.as_i64().expect("no request was made")
}

/// What `owner` knows of `friend` (F3).
pub async fn friend(owner: &Person, friend: &Person) -> Value {
    owner.get(&format!("/im/friend/get?friendUserId={}", friend.id)).await
}

/// What `person` sees of a request (R6).
pub async fn request(person: &Person, id: i64) -> Value {
    person.get(&format!("/im/friend-request/get?id={id}")).await
}

/// Sets what `owner` may set of a friend (F5).
pub async fn set(owner: &Person, friend: &Person, mut change: Value) {
    change["friendUserId"] = json!(friend.id);
    data(owner.call("PUT", "/im/friend/update", Some(change)).await);
}

pub async fn unfriend(owner: &Person, friend: &Person) {
    owner.delete(&format!("/im/friend/delete?friendUserId={}&clear=true", friend.id)).await;
}

pub async fn block(owner: &Person, friend: &Person) {
    owner.put(&format!("/im/friend/block?friendUserId={}", friend.id)).await;
}

/// Everything that a table's pull gives after the cursor, page by page, as the client asks.
pub async fn pull_states(person: &Person, table: &str, cursor: Option<(i64, i64)>, limit: usize) -> Vec<Value> {
    let mut cursor = cursor;
    let mut rows: Vec<Value> = Vec::new();
    loop {
        let after = cursor.map_or(String::new(), |(time, id)| format!("&lastUpdateTime={time}&lastId={id}"));
        let page = person.get(&format!("{table}/pull?limit={limit}{after}")).await;
        let page = page.as_array().unwrap();
        rows.extend(page.iter().cloned());
        match page.last() {
            Some(last) if page.len() == limit => cursor = Some(position(last)),
            _ => return rows,
        }
        assert!(rows.len() < 1_000, "the pull does not end");
    }
}

/// Where a state row stands in its pull.
pub fn position(row: &Value) -> (i64, i64) {
    (row["updateTime"].as_i64().unwrap(), row["id"].as_i64().unwrap())
}

/// A notification that belongs to no conversation.
pub fn notice(content_type: i64, payload: Value) -> Push {
    Push { conversation_type: 0, content_type, payload }
}

/// Checks a line in a private chat, and gives its content.
pub fn chat_line(push: &Push, sender: &Person, receiver: &Person, content_type: i64) -> Value {
    assert_eq!((push.conversation_type, push.content_type), (1, content_type), "{push:?}");
    let mut payload = push.payload.clone();
    let client_id = payload["clientMessageId"].take();
    assert_eq!(client_id.as_str().map(str::len), Some(32), "{push:?}");
    assert!(payload["sendTime"].take().as_i64() > Some(0), "{push:?}");
    payload["id"].take();
    let content = payload["content"].take();
    let expected = json!({"id": null, "clientMessageId": null, "senderId": sender.id, "receiverId": receiver.id,
        "type": content_type, "content": null, "status": 0, "receiptStatus": 0, "sendTime": null});
    assert_eq!(payload, expected);
    serde_json::from_str(content.as_str().expect("content is text")).unwrap()
}

/// The one notification that has come to each of these sockets, which must be the same.
pub async fn only_push<const N: usize>(sockets: [&mut Socket; N]) -> Push {
    let mut pushes = Vec::new();
    for socket in sockets {
        let drained = socket.drain().await;
        assert_eq!(drained.len(), 1, "{drained:?}");
        pushes.extend(drained);
    }
    assert!(pushes.iter().all(|push| *push == pushes[0]), "{pushes:?}");
    pushes.swap_remove(0)
}

/// Nothing has come to any of these sockets.
pub async fn nothing_came<const N: usize>(sockets: [&mut Socket; N]) {
    for socket in sockets {
        assert_eq!(socket.drain().await, vec![]);
    }
}

/// Every call is refused without a valid token, and answered with code 400 where it is malformed.
pub async fn check_forms(person: &Person, calls: &[(&str, &str, Value)], malformed: &[(&str, &str, Value)]) {
    let mut stranger = person.clone();
    stranger.access_token = "no token of anybody".to_owned();
    let body = |value: &Value| Some(value.clone()).filter(|value| !value.is_null());
    for (method, path, value) in calls {
        assert_eq!(code_of(&stranger.call(method, path, body(value)).await), 401, "{method} {path}");
    }
    for (method, path, value) in malformed {
        assert_eq!(code_of(&person.call(method, path, body(value)).await), 400, "{method} {path} {value}");
    }
}
