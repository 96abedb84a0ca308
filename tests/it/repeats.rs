//! A send that is repeated is one message (`design.md` I2; field tests B1 to B5).

use futures_util::future::join_all;
use nudge::client::{DeviceEvent, Push as ClientPush};
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Setup, TestApp, befriend, data, id_of, random_id, start_server, text_message};
use crate::support::background::answers;
use crate::support::databases::{Backend, on_every_database};
use crate::support::devices::device_of;
use crate::support::second_connection::SecondConnection;

on_every_database! {
    retries_of_a_send_that_hangs_are_one_message,
    identical_sends_in_one_instant_are_one_message,
    a_retry_after_a_restart_and_a_day_is_answered_with_the_stored_row,
    a_client_id_is_not_used_for_another_message,
    a_repeat_may_differ_where_clients_do,
    a_device_shows_a_message_once,
}

const CLIENT_ID_REUSED: i64 = 1_040_300_014;
const DAY_MS: i64 = 24 * 3_600_000;

async fn stored_under(app: &TestApp, client_message_id: &str) -> i64 {
    let mut tables = SecondConnection::open(&app.database.url).await;
    tables.count("im_private_message", &format!("client_message_id = '{client_message_id}'")).await
}

async fn retries_of_a_send_that_hangs_are_one_message(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut socket = bob.connect().await;
    let mut other = SecondConnection::open(&app.database.url).await;
    other.hold_counter("private").await;

    let client_id = random_id();
    let first = alice.start_send(&bob, &client_id, "hello");
    app.commands_waiting(1).await;
    // The client's patience ends.
    first.abort();
    let retries = (0..5).map(|_| alice.start_send(&bob, &client_id, "hello")).collect();
    app.commands_waiting(6).await;
    other.release().await;

    let rows: Vec<Value> = answers(retries).await.into_iter().map(data).collect();
    assert!(rows.iter().all(|row| *row == rows[0]), "{rows:?}");
    assert_eq!(stored_under(&app, &client_id).await, 1);
    assert_eq!(socket.stored_rows(&alice, &bob).await, vec![rows[0].clone()]);
}

async fn identical_sends_in_one_instant_are_one_message(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut socket = bob.connect().await;
    let mut sent = Vec::new();
    for _ in 0..20 {
        let client_id = random_id();
        let (one, other) =
            tokio::join!(alice.send_as(&bob, &client_id, "hello"), alice.send_as(&bob, &client_id, "hello"));
        let (one, other) = (data(one), data(other));
        assert_eq!(one, other);
        assert_eq!(stored_under(&app, &client_id).await, 1);
        sent.push(one);
    }
    assert_eq!(socket.stored_rows(&alice, &bob).await, sent);
}

/// Two servers write to one database; SQLite does not allow that.
async fn identical_sends_to_two_servers_are_one_message(backend: Backend) {
    let app = TestApp::start(backend).await;
    let second = start_server(&app.database.url, Setup::default()).await;
    let second_base = format!("http://{}", second.address());
    let (alice, bob) = app.friends("alice", "bob").await;
    let (alice2, bob2) = (alice.on(&second_base), bob.on(&second_base));
    let mut sockets = [bob.connect().await, bob2.connect().await];
    let mut sent = Vec::new();
    for _ in 0..20 {
        let client_id = random_id();
        let calls = [alice.send_as(&bob, &client_id, "hello"), alice2.send_as(&bob, &client_id, "hello")];
        let rows: Vec<Value> = join_all(calls).await.into_iter().map(data).collect();
        assert_eq!(rows[0], rows[1]);
        assert_eq!(stored_under(&app, &client_id).await, 1);
        sent.push(rows[0].clone());
    }
    // Each server pushes what it stored, so both together push each row once.
    let mut pushed = sockets[0].stored_rows(&alice, &bob).await;
    pushed.extend(sockets[1].stored_rows(&alice2, &bob2).await);
    pushed.sort_by_key(id_of);
    assert_eq!(pushed, sent);
}

mod two_servers {
    use super::Backend;

    #[actix_web::test]
    async fn postgres() {
        super::identical_sends_to_two_servers_are_one_message(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::identical_sends_to_two_servers_are_one_message(Backend::Mysql).await;
    }
}

async fn a_retry_after_a_restart_and_a_day_is_answered_with_the_stored_row(backend: Backend) {
    let clock = ManualClock::at(1_790_000_000_000);
    let setup = || Setup { clock: Some(clock.clock()), ..Setup::default() };
    let app = TestApp::start_with(backend, setup()).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let sent = data(alice.send_as(&bob, "retried", "hello").await);

    let TestApp { server, database, .. } = app;
    server.stop().await;
    clock.jump(DAY_MS);
    let server = start_server(&database.url, setup()).await;
    let base = format!("http://{}", server.address());
    let alice = alice.on(&base).sign_in_again().await;
    assert_eq!(data(alice.send_as(&bob, "retried", "hello").await), sent);

    let rows = alice.pull_all(100).await;
    assert_eq!(rows.iter().filter(|row| row["clientMessageId"] == "retried").count(), 1);
    // The day has passed for what is new.
    assert_eq!(data(alice.send_as(&bob, "new", "hello").await)["sendTime"], 1_790_000_000_000 + DAY_MS);
}

async fn a_client_id_is_not_used_for_another_message(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    let mut sockets = [bob.connect().await, carol.connect().await];
    let first = text_message(bob.id, "one-id", "hello");
    let sent = |mut body: Value, key: &str, value: Value| {
        body[key] = value;
        alice.call("POST", "/im/message/private/send", Some(body))
    };
    data(alice.call("POST", "/im/message/private/send", Some(first.clone())).await);

    let image = json!({"url": "http://localhost/a.png", "width": 1, "height": 1}).to_string();
    let mut other_type = first.clone();
    other_type["content"] = json!(image);
    for answer in [
        sent(first.clone(), "content", json!(json!({"content": "hello!"}).to_string())).await,
        sent(first.clone(), "receiverId", json!(carol.id)).await,
        sent(other_type, "type", json!(102)).await,
    ] {
        assert_eq!((&answer["code"], &answer["data"]), (&json!(CLIENT_ID_REUSED), &Value::Null), "{answer}");
    }
    // Somebody else's ids are his own.
    data(carol.send_as(&alice, "one-id", "hello").await);

    let mut tables = SecondConnection::open(&app.database.url).await;
    let condition = format!("sender_id = {} AND client_message_id = 'one-id'", alice.id);
    assert_eq!(tables.count("im_private_message", &condition).await, 1);
    let pushed = sockets[0].stored_rows(&alice, &bob).await;
    assert_eq!(pushed.len(), 1, "{pushed:?}");
    assert_eq!(sockets[1].stored_rows(&alice, &carol).await.len(), 1);
}

async fn a_repeat_may_differ_where_clients_do(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let quoted = alice.send(&bob, "the original").await;
    let send = async |content: Value, receipt: Value| {
        let body = json!({"clientMessageId": "quoting", "receiverId": bob.id, "type": 101,
                          "content": content.to_string(), "receipt": receipt});
        data(alice.call("POST", "/im/message/private/send", Some(body)).await)
    };
    let stored = send(json!({"content": "yes", "quote": {"messageId": id_of(&quoted)}}), Value::Null).await;

    // Web clients repeat with the quote as the server completed it, and in any order of keys and spacing.
    let completed: Value = serde_json::from_str(stored["content"].as_str().unwrap()).unwrap();
    assert_eq!(completed["quote"]["senderId"], alice.id);
    assert_eq!(send(completed, Value::Null).await, stored);
    let reduced = json!({"quote": {"messageId": id_of(&quoted), "content": "something else"}, "content": "yes"});
    assert_eq!(send(reduced, json!(false)).await, stored);
    assert_eq!(stored_under(&app, "quoting").await, 1);
}

async fn a_device_shows_a_message_once(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let device = device_of(&bob, &app.base);
    let mut connection = device.connect();
    connection.next_matching(|event| matches!(event, DeviceEvent::Synced).then_some(())).await.unwrap();

    let sent = data(alice.send_as(&bob, "once", "hello").await);
    let push = connection.next_matching(|event| match event {
        DeviceEvent::Push { push: push @ ClientPush::PrivateMessage(_), is_new, .. } => Some((push, is_new)),
        _ => None,
    });
    let (push, is_new) = push.await.unwrap();
    assert!(is_new);
    // By pull, by the same push again, by the repeat of its sender and by one more pull.
    device.sync().await.unwrap();
    assert!(!device.with_store(|store| store.merge_push(&push)));
    assert_eq!(data(alice.send_as(&bob, "once", "hello").await), sent);
    assert!(device.sync().await.unwrap().is_empty());

    let shown = device.with_store(|store| {
        assert_eq!(store.duplicates(), 0);
        store.private_messages().filter(|row| row.client_message_id.as_deref() == Some("once")).count()
    });
    assert_eq!((shown, stored_under(&app, "once").await), (1, 1));
}
