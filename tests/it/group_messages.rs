//! Sending to groups: forms, checks in their order, repeats, quotes, typing (`contract/02` sections 2 and G1; `design.md`
//! I2, I7 and section 12).

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, data, id_of, ids_of, random_id, start_server};
use crate::support::chats::{RECALL, TEXT, group_text};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{check_forms, code_of, notice};
use crate::support::second_connection::SecondConnection;

on_every_database! {
    the_answer_names_the_receivers_and_pushes_and_pulls_do_not,
    checks_come_in_their_order,
    a_receipt_is_pending_only_where_it_is_asked_for_and_switched_on,
    a_repeat_is_answered_with_the_stored_row_whatever_has_happened_since,
    another_message_under_the_same_client_id_is_an_error,
    the_next_send_after_a_removal_a_mute_a_ban_and_the_end_is_refused,
    an_old_message_can_be_quoted_after_somebody_joined,
    a_quote_names_a_message_of_the_group_that_its_sender_sees,
    typing_reaches_the_other_members_once_a_second,
    calls_are_refused_without_a_token_and_when_malformed,
}

const REUSED: i64 = 1_040_300_014;
const INVALID_CONTENT: i64 = 1_040_300_013;
const INVALID_QUOTE: i64 = 1_040_300_008;
const NO_GROUP: i64 = 1_040_400_000;
const BANNED: i64 = 1_040_400_001;
const DISSOLVED: i64 = 1_040_400_002;
const NO_MEMBER: i64 = 1_040_500_001;
const GROUP_MUTED: i64 = 1_040_500_012;
const MEMBER_MUTED: i64 = 1_040_500_013;
const TYPING: i64 = 2301;

async fn set_banned(app: &TestApp, group: i64, banned: bool) {
    let mut table = SecondConnection::open(&app.database.url).await;
    let value = if banned { "TRUE" } else { "FALSE" };
    table.execute(&format!("UPDATE im_group SET banned = {value} WHERE id = {group}")).await;
}

async fn code_of_send(person: &Person, group: i64) -> i64 {
    code_of(&person.try_say(group_text(group, &random_id(), "hello")).await)
}

async fn the_answer_names_the_receivers_and_pushes_and_pulls_do_not(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let mut sockets = [alice.connect().await, bob.connect().await];
    let content = json!({"content": "@bob hello"}).to_string();
    let mut body = json!({"clientMessageId": "the-first", "groupId": group, "type": TEXT, "content": content});
    body["atUserIds"] = json!([bob.id, -1]);
    body["receiverUserIds"] = json!([bob.id]);
    let sent = data(alice.try_say(body).await);

    let (id, time) = (sent["id"].clone(), sent["sendTime"].clone());
    assert!(id.as_i64() > Some(0) && time.as_i64() > Some(0), "{sent}");
    let mut expected = json!({"id": id, "clientMessageId": "the-first", "senderId": alice.id, "groupId": group,
        "type": TEXT, "content": content, "status": 0, "sendTime": time, "atUserIds": [bob.id, -1],
        "receiverUserIds": [alice.id, bob.id, carol.id], "receiptStatus": 0, "readCount": null});
    assert_eq!(sent, expected);
    expected["receiverUserIds"] = Value::Null;
    for person in [&alice, &bob, &carol] {
        assert_eq!(person.pull_page(id_of(&sent) - 1, 10).await, std::slice::from_ref(&expected));
        assert_eq!(person.history(group, 10).await[0], expected);
    }
    expected["readCount"] = json!(0);
    for socket in &mut sockets {
        let push = socket.next().await;
        assert_eq!((push.conversation_type, push.content_type, push.payload), (2, TEXT, expected.clone()));
        assert_eq!(socket.drain().await, vec![]);
    }
}

async fn checks_come_in_their_order(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let stranger = app.user("mallory").await;
    let empty = json!({"content": " "}).to_string();
    let bad_content = |group| json!({"clientMessageId": "x", "groupId": group, "type": TEXT, "content": empty});
    let bad_quote = |group| {
        let content = json!({"content": "x", "quote": {"messageId": 1}}).to_string();
        json!({"clientMessageId": random_id(), "groupId": group, "type": TEXT, "content": content})
    };
    assert_eq!(code_of(&bob.try_say(bad_content(group + 1_000)).await), INVALID_CONTENT);
    assert_eq!(code_of(&bob.try_say(bad_quote(group + 1_000)).await), NO_GROUP);
    alice.mute(group, &bob).await;
    alice.mute_all(group, true).await;
    assert_eq!(code_of(&stranger.try_say(bad_quote(group)).await), NO_MEMBER);
    assert_eq!(code_of(&bob.try_say(bad_quote(group)).await), GROUP_MUTED);
    // The mute of the group spares the owner and admins, a personal one nobody.
    assert_eq!(code_of_send(&alice, group).await, 0);
    alice.make_admin(group, &bob).await;
    assert_eq!(code_of(&bob.try_say(bad_quote(group)).await), MEMBER_MUTED);
    alice.change("/im/group/cancel-mute-member", json!({"id": group, "userId": bob.id})).await;
    assert_eq!(code_of(&bob.try_say(bad_quote(group)).await), INVALID_QUOTE);
    assert_eq!(code_of_send(&bob, group).await, 0);
    alice.dissolve(group).await;
    assert_eq!(code_of(&stranger.try_say(bad_quote(group)).await), DISSOLVED);
    set_banned(&app, group, true).await;
    assert_eq!(code_of(&stranger.try_say(bad_quote(group)).await), BANNED);
}

async fn a_receipt_is_pending_only_where_it_is_asked_for_and_switched_on(backend: Backend) {
    for (is_on, receipt, status) in
        [(true, json!(true), 1), (true, json!(false), 0), (true, Value::Null, 0), (false, json!(true), 0)]
    {
        let mut setup = Setup::default();
        setup.config.message.group_read_enabled = is_on;
        let app = TestApp::start_with(backend, setup).await;
        let ([alice], group) = app.group(["alice"]).await;
        let mut body = group_text(group, "x", "hello");
        body["receipt"] = receipt;
        assert_eq!(data(alice.try_say(body.clone()).await)["receiptStatus"], status, "{body}");
    }
}

async fn a_repeat_is_answered_with_the_stored_row_whatever_has_happened_since(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let body = group_text(group, "again", "hello");
    let sent = data(bob.try_say(body.clone()).await);
    let mut socket = carol.connect().await;
    // Clients repeat neither the receipt flag nor the mentions.
    let mut other_flags = body.clone();
    other_flags["receipt"] = json!(true);
    other_flags["atUserIds"] = json!([carol.id]);
    assert_eq!(data(bob.try_say(other_flags).await), sent);

    alice.mute(group, &bob).await;
    alice.mute_all(group, true).await;
    assert_eq!(data(bob.try_say(body.clone()).await), sent);
    alice.kick(group, &bob).await;
    assert_eq!(data(bob.try_say(body.clone()).await), sent);
    alice.dissolve(group).await;
    set_banned(&app, group, true).await;
    assert_eq!(data(bob.try_say(body.clone()).await), sent);
    let pushed = socket.drain().await;
    assert!(pushed.iter().all(|push| push.payload["clientMessageId"] != "again"), "{pushed:?}");
    let rows = carol.pull_groups(100).await;
    assert_eq!(rows.iter().filter(|row| row["type"] == TEXT).count(), 1);

    set_banned(&app, group, false).await;
    let second = alice.create_group(&[&bob]).await;
    let body = group_text(second, "taken-back", "oh no");
    let sent = data(bob.try_say(body.clone()).await);
    data(bob.try_recall(id_of(&sent)).await);
    let repeat = data(bob.try_say(body).await);
    assert_eq!((&repeat["id"], &repeat["status"], &repeat["content"]), (&sent["id"], &json!(2), &json!("{}")));
}

async fn another_message_under_the_same_client_id_is_an_error(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let other = alice.create_group(&[&bob]).await;
    data(alice.try_say(group_text(group, "one", "hello")).await);
    assert_eq!(code_of(&alice.try_say(group_text(group, "one", "bye")).await), REUSED);
    assert_eq!(code_of(&alice.try_say(group_text(other, "one", "hello")).await), REUSED);
    // Also where the send would be refused, and for a group that does not exist.
    assert_eq!(code_of(&alice.try_say(group_text(other + 1_000, "one", "hello")).await), REUSED);
    // Others, and private messages, have keys of their own.
    data(bob.try_say(group_text(other, "one", "hi")).await);
    data(alice.send_as(&bob, "one", "hi").await);
    assert_eq!(alice.pull_groups(100).await.iter().filter(|row| row["type"] == TEXT).count(), 2);
}

/// SQLite has one server only.
async fn a_send_by_way_of_two_servers_is_stored_once(backend: Backend) {
    let app = TestApp::start(backend).await;
    let second = start_server(&app.database.url, Setup::default()).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let there = alice.on(&format!("http://{}", second.address()));
    for round in 0..10 {
        let body = group_text(group, &format!("round {round}").replace(' ', "-"), "hello");
        let answers = join_all([&alice, &there, &alice, &there].map(|alice| alice.try_say(body.clone()))).await;
        let first = data(answers[0].clone());
        assert!(answers.into_iter().all(|answer| data(answer) == first));
    }
    let rows = bob.pull_groups(100).await;
    assert_eq!(rows.iter().filter(|row| row["type"] == TEXT).count(), 10);
    // A removal by way of one server holds on the other at once.
    alice.kick(group, &bob).await;
    assert_eq!(code_of_send(&bob.on(&format!("http://{}", second.address())), group).await, NO_MEMBER);
    assert_eq!(there.say(group, "alone").await["receiverUserIds"], json!([alice.id]));
    there.invite(group, &bob).await;
    assert_eq!(alice.say(group, "together").await["receiverUserIds"], json!([alice.id, bob.id]));
}

mod two_servers {
    use super::Backend;

    #[actix_web::test]
    async fn postgres() {
        super::a_send_by_way_of_two_servers_is_stored_once(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::a_send_by_way_of_two_servers_is_stored_once(Backend::Mysql).await;
    }
}

async fn the_next_send_after_a_removal_a_mute_a_ban_and_the_end_is_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    assert_eq!(code_of_send(&bob, group).await, 0);
    alice.kick(group, &bob).await;
    assert_eq!(code_of_send(&bob, group).await, NO_MEMBER);
    alice.invite(group, &bob).await;
    assert_eq!(code_of_send(&bob, group).await, 0);
    alice.mute(group, &bob).await;
    assert_eq!(code_of_send(&bob, group).await, MEMBER_MUTED);
    alice.change("/im/group/cancel-mute-member", json!({"id": group, "userId": bob.id})).await;
    assert_eq!(code_of_send(&bob, group).await, 0);
    alice.mute_all(group, true).await;
    assert_eq!(code_of_send(&bob, group).await, GROUP_MUTED);
    alice.mute_all(group, false).await;
    set_banned(&app, group, true).await;
    assert_eq!(code_of_send(&bob, group).await, BANNED);
    set_banned(&app, group, false).await;
    bob.quit(group).await;
    assert_eq!(code_of_send(&bob, group).await, NO_MEMBER);
    alice.invite(group, &bob).await;
    alice.dissolve(group).await;
    assert_eq!(code_of_send(&bob, group).await, DISSOLVED);
}

fn quoting(group: i64, quoted: i64) -> Value {
    let content = json!({"content": "see above", "quote": {"messageId": quoted, "content": "a lie"}}).to_string();
    json!({"clientMessageId": random_id(), "groupId": group, "type": TEXT, "content": content})
}

async fn an_old_message_can_be_quoted_after_somebody_joined(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    alice.kick(group, &carol).await;
    let original = alice.say(group, "before carol").await;
    alice.invite(group, &carol).await;
    let first = data(bob.try_say(quoting(group, id_of(&original))).await);
    let content: Value = serde_json::from_str(first["content"].as_str().unwrap()).unwrap();
    let quote =
        json!({"messageId": original["id"], "senderId": alice.id, "type": TEXT, "content": original["content"]});
    assert_eq!(content, json!({"content": "see above", "quote": quote}));
    assert_eq!(carol.pull_page(id_of(&first) - 1, 10).await[0]["content"], first["content"]);
    // A quote of a quote holds one level only.
    let second = data(bob.try_say(quoting(group, id_of(&first))).await);
    let content: Value = serde_json::from_str(second["content"].as_str().unwrap()).unwrap();
    assert_eq!(content["quote"]["content"], json!({"content": "see above"}).to_string());
    // A later recall leaves the copy.
    data(alice.try_recall(id_of(&original)).await);
    assert_eq!(carol.pull_page(id_of(&first) - 1, 1).await[0]["content"], first["content"]);
}

async fn a_quote_names_a_message_of_the_group_that_its_sender_sees(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let other = alice.create_group(&[&bob]).await;
    let elsewhere = id_of(&alice.say(other, "in another group").await);
    let recalled = id_of(&alice.say(group, "recalled").await);
    data(alice.try_recall(recalled).await);
    alice.kick(group, &carol).await;
    let unseen = id_of(&alice.say(group, "while carol was away").await);
    alice.invite(group, &carol).await;
    let directed = id_of(&alice.say(group, "to alice and bob").await);
    let mut table = SecondConnection::open(&app.database.url).await;
    let receivers = format!("{},{}", alice.id, bob.id);
    table
        .execute(&format!("UPDATE im_group_message SET receiver_user_ids = '{receivers}' WHERE id = {directed}"))
        .await;
    for (person, quoted) in
        [(&bob, elsewhere), (&bob, recalled), (&bob, directed), (&bob, directed + 1), (&carol, unseen)]
    {
        assert_eq!(code_of(&person.try_say(quoting(group, quoted)).await), INVALID_QUOTE, "{quoted}");
    }
    data(bob.try_say(quoting(group, unseen)).await);
    // Private messages are another table.
    let private = id_of(&alice.send(&bob, "private").await);
    let ids = ids_of(&bob.pull_groups(100).await);
    if !ids.contains(&private) {
        assert_eq!(code_of(&bob.try_say(quoting(group, private)).await), INVALID_QUOTE);
    }
}

async fn typing_reaches_the_other_members_once_a_second(backend: Backend) {
    let clock = ManualClock::at(1_800_000_000_000);
    let app = TestApp::start_with(backend, Setup { clock: Some(clock.clock()), ..Setup::default() }).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    alice.kick(group, &carol).await;
    let mut sockets = [bob.connect().await, alice.connect().await, carol.connect().await];
    let path = format!("/im/message/group/typing?groupId={group}");
    for _ in 0..3 {
        assert_eq!(alice.put(&path).await, true);
    }
    let pushed = vec![notice(TYPING, json!({"senderId": alice.id, "groupId": group}))];
    assert_eq!(sockets[0].drain().await, pushed);
    assert_eq!(sockets[1].drain().await, vec![]);
    assert_eq!(sockets[2].drain().await, vec![]);
    clock.jump(1_001);
    alice.put(&path).await;
    assert_eq!(sockets[0].drain().await, pushed);
    assert_eq!(code_of(&carol.call("PUT", &path, None).await), NO_MEMBER);
    assert_eq!(sockets[0].drain().await, vec![]);
}

async fn calls_are_refused_without_a_token_and_when_malformed(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice], group) = app.group(["alice"]).await;
    let body = group_text(group, "x", "hello");
    let without = |key: &str| {
        let mut body = body.clone();
        body[key] = Value::Null;
        body
    };
    let with = |key: &str, value: Value| {
        let mut body = body.clone();
        body[key] = value;
        body
    };
    let send = "/im/message/group/send";
    let pull = "/im/message/group/pull";
    let list = "/im/message/group/list";
    let calls = [
        ("POST", send, body.clone()),
        ("GET", "/im/message/group/pull?minId=0&size=1", Value::Null),
        ("GET", "/im/message/group/list?groupId=1&limit=1", Value::Null),
        ("PUT", "/im/message/group/read?groupId=1&messageId=1", Value::Null),
        ("GET", "/im/message/group/get-read-user-ids?groupId=1&messageId=1", Value::Null),
        ("DELETE", "/im/message/group/recall?id=1", Value::Null),
        ("PUT", "/im/message/group/typing?groupId=1", Value::Null),
        ("POST", "/im/sync", json!({})),
        ("POST", "/im/unread", json!({})),
    ];
    let mut malformed: Vec<(&str, &str, Value)> = ["clientMessageId", "groupId", "type", "content"]
        .iter()
        .map(|key| ("POST", send, without(key)))
        .chain([
            ("POST", send, with("type", json!(RECALL))),
            ("POST", send, with("type", json!(1))),
            ("POST", send, with("content", json!(""))),
            ("POST", send, with("clientMessageId", json!("a b"))),
            ("POST", send, with("atUserIds", json!("all"))),
            ("POST", send, with("atUserIds", json!(vec![1; 1_001]))),
            ("PUT", "/im/message/group/read?groupId=1", Value::Null),
            ("DELETE", "/im/message/group/recall?id=x", Value::Null),
        ])
        .collect();
    let paths = [
        format!("{pull}?size=1"),
        format!("{pull}?minId=0"),
        format!("{pull}?minId=0&size=0"),
        format!("{list}?groupId={group}&limit=0"),
        format!("{list}?groupId={group}&limit=201"),
        format!("{list}?limit=1"),
    ];
    malformed.extend(paths.iter().map(|path| ("GET", path.as_str(), Value::Null)));
    check_forms(&alice, &calls, &malformed).await;
    let too_large = alice.call("GET", &format!("{pull}?minId=0&size=1001"), None).await;
    assert_eq!(code_of(&too_large), 1_040_300_005);
}
