//! Changed profiles: who is told of another nickname or avatar (notification 1209).

use nudge::db::connect::{Role, Source};
use serde_json::{Value, json};

use crate::support::app::{TestApp, befriend, data, server_api};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{block, friend, nothing_came, notice, only_push, unfriend};

on_every_database! {
    a_changed_profile_is_told_to_mutual_friends_and_nobody_else,
    a_changed_profile_reaches_thousands_of_friends,
}

async fn a_changed_profile_is_told_to_mutual_friends_and_nobody_else(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let mut sockets = Vec::new();
    for name in ["a friend", "one who blocked", "one who is blocked", "one who left", "one who was left", "a stranger"]
    {
        let other = app.user(name).await;
        if name != "a stranger" {
            befriend(&alice, &other).await;
        }
        match name {
            "one who blocked" => block(&other, &alice).await,
            "one who is blocked" => block(&alice, &other).await,
            "one who left" => unfriend(&other, &alice).await,
            "one who was left" => unfriend(&alice, &other).await,
            _ => {}
        }
        sockets.push((other.connect().await, other));
    }
    let mut own = alice.connect().await;
    let told = notice(1209, json!({"operatorUserId": alice.id, "friendUserId": alice.id}));
    let update = async |body: Value| data(alice.call("PUT", "/system/user/profile/update", Some(body)).await);
    let upsert = async |nickname: &str, avatar: Option<&str>| {
        let user = json!({"externalId": alice.external_id, "nickname": nickname, "avatar": avatar});
        server_api(&app.http, &app.base, "/users", json!({"users": [user]})).await
    };
    // Each step with whether others see a difference.
    for step in 0..8 {
        let is_visible = match step {
            0 => (update(json!({"nickname": "Alicia"})).await, true).1,
            1 => (update(json!({"nickname": "Alicia"})).await, false).1,
            2 => (update(json!({"avatar": "/a.png", "nickname": "Alicia"})).await, true).1,
            3 => (update(json!({"email": "a@example.org", "sex": 2, "avatar": "/a.png"})).await, false).1,
            4 => (upsert("Alicia", None).await, false).1,
            5 => (upsert("Alicia", Some("/a.png")).await, false).1,
            6 => (upsert("Alice", None).await, true).1,
            _ => (upsert("Alice", Some("/b.png")).await, true).1,
        };
        for (index, (socket, _)) in sockets.iter_mut().enumerate() {
            let expected = if is_visible && index < 3 { vec![told.clone()] } else { vec![] };
            assert_eq!(socket.drain().await, expected, "step {step}, receiver {index}");
        }
    }
    nothing_came([&mut own]).await;
    let seen = friend(&sockets[0].1, &alice).await;
    assert_eq!((&seen["nickname"], &seen["avatar"]), (&json!("Alice"), &json!("/b.png")));
}

async fn a_changed_profile_reaches_thousands_of_friends(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    // Two full steps of friends with lower ids than Bob's.
    let rows: Vec<String> = (1..=2_000).map(|number| format!("({}, -{number}, 0, 1, 1)", alice.id)).collect();
    let insert = format!(
        "INSERT INTO im_friend (user_id, friend_user_id, status, create_time, update_time) VALUES {}",
        rows.join(",")
    );
    let source = Source::parse(&app.database.url.clone().into()).unwrap();
    source.connect(Role::Writer).await.unwrap().run_text(&insert).await.unwrap();
    let mut bobs = bob.connect().await;
    data(alice.call("PUT", "/system/user/profile/update", Some(json!({"nickname": "Alicia"}))).await);
    let told = json!({"operatorUserId": alice.id, "friendUserId": alice.id});
    assert_eq!(only_push([&mut bobs]).await, notice(1209, told));
    // Accounts that do not exist are shown as such.
    let list = alice.get("/im/friend/list").await;
    assert_eq!(list.as_array().unwrap().len(), 2_001);
    let gone = list.as_array().unwrap().iter().find(|row| row["friendUserId"] == -7).unwrap();
    assert_eq!(
        (&gone["nickname"], &gone["nicknamePinyin"], &gone["avatar"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
}
