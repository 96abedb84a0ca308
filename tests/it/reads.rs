//! Read positions and receipts (field tests E1 to E6, `design.md` I6).

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use nudge::config::{Config, MessageConfig, WriterConfig};
use nudge::domain::content::{ContentType, content_hash, parse_content};
use nudge::domain::ids::{MessageId, UserId};
use nudge::service::Locks;
use nudge::service::conversation_reads::{Conversation, ReadReport};
use nudge::service::private_messages::PrivateDraft;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::app::{Person, Setup, TestApp, befriend, id_of, random_id, text_message};
use crate::support::barrier::told;
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::code_of;
use crate::support::tables::{number, open};

on_every_database! {
    sending_from_one_device_raises_unread_on_no_other,
    unread_depends_on_ones_own_position_and_audience_only,
    a_position_above_the_newest_visible_message_is_clamped,
    where_nothing_is_visible_nothing_is_written,
    reading_on_one_device_clears_the_others,
    concurrent_reports_end_at_the_maximum_and_never_fall,
    receipts_are_computed_from_positions,
    a_receipt_may_be_declined,
    without_the_feature_there_are_no_receipts,
    only_a_position_that_rises_is_told,
    reports_and_sends_of_one_batch_keep_their_order,
}

const READ: i64 = 2201;
const RECEIPT: i64 = 2200;

/// My positions, by peer, as a device that was away pulls them.
async fn positions(person: &Person) -> HashMap<i64, i64> {
    let rows = person.get("/im/conversation-read/pull?limit=200").await;
    let of_row = |row: &Value| (row["targetId"].as_i64().unwrap(), row["messageId"].as_i64().unwrap());
    rows.as_array().unwrap().iter().map(of_row).collect()
}

/// What a device shows as unread: user messages of others, not recalled, above my position (`contract/02` 9.3).
async fn unread(person: &Person) -> usize {
    let positions = positions(person).await;
    let counts = |row: &&Value| {
        let sender = row["senderId"].as_i64().unwrap();
        let is_user_message = (101..=125).contains(&row["type"].as_i64().unwrap());
        let position = positions.get(&sender).copied().unwrap_or(0);
        sender != person.id && is_user_message && row["status"] == 0 && id_of(row) > position
    };
    person.pull_all(100).await.iter().filter(counts).count()
}

async fn report(reader: &Person, peer: &Person, message: i64) {
    let path = format!("/im/message/private/read?receiverId={}&messageId={message}", peer.id);
    assert_eq!(reader.put(&path).await, true);
}

/// How far `reader` has read what `asker` sent (P5).
async fn position_of(asker: &Person, reader: &Person) -> Option<i64> {
    asker.get(&format!("/im/message/private/max-read-message-id?peerId={}", reader.id)).await.as_i64()
}

async fn receipt_status(person: &Person, message: &Value) -> i64 {
    let rows = person.pull_from(id_of(message) - 1, 1).await;
    assert_eq!(rows[0]["id"], message["id"]);
    rows[0]["receiptStatus"].as_i64().unwrap()
}

async fn sending_from_one_device_raises_unread_on_no_other(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    bob.send(&alice, "one").await;
    assert_eq!((unread(&alice).await, unread(&bob).await), (1, 0));
    let mut other_device = alice.connect().await;
    let sent = alice.send(&bob, "two").await;
    // The other device hears of it as of a message of its own, and of nothing else.
    let pushes = told(&app, &alice, &mut other_device).await;
    assert_eq!(pushes.len(), 1);
    assert_eq!((&pushes[0].payload, &pushes[0].payload["senderId"]), (&sent, &json!(alice.id)));
    assert_eq!((unread(&alice).await, unread(&bob).await), (1, 1));
    assert_eq!(positions(&alice).await, HashMap::new(), "sending reads nothing");
}

/// Random sends, recalls and reports of three friends, against a model of one set of unread ids a person.
async fn unread_depends_on_ones_own_position_and_audience_only(backend: Backend) {
    let seed: u64 = rand::rng().random();
    let mut random = StdRng::seed_from_u64(seed);
    let app = TestApp::start(backend).await;
    let people = [app.user("alice").await, app.user("bob").await, app.user("carol").await];
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        befriend(&people[a], &people[b]).await;
    }
    // (sender, receiver, id) of messages that the receiver has not read and the sender has not recalled.
    let mut unread_messages: Vec<(usize, usize, i64)> = Vec::new();
    let mut sent: Vec<(usize, usize, i64)> = Vec::new();
    for step in 0..60 {
        let sender = random.random_range(0..3);
        let receiver = (sender + random.random_range(1..3)) % 3;
        match random.random_range(0..10) {
            0..6 => {
                let id = id_of(&people[sender].send(&people[receiver], "x").await);
                sent.push((sender, receiver, id));
                unread_messages.push((sender, receiver, id));
            }
            6 if !sent.is_empty() => {
                let (sender, _, id) = sent.swap_remove(random.random_range(0..sent.len()));
                people[sender].delete(&format!("/im/message/private/recall?id={id}")).await;
                unread_messages.retain(|message| message.2 != id);
            }
            _ => {
                let newest = sent.iter().map(|message| message.2).max().unwrap_or(0);
                let position = random.random_range(-5..=newest + 5);
                report(&people[receiver], &people[sender], position).await;
                unread_messages.retain(|(s, r, id)| (*s, *r) != (sender, receiver) || *id > position);
            }
        }
        for (index, person) in people.iter().enumerate() {
            let expected = unread_messages.iter().filter(|(_, receiver, _)| *receiver == index).count();
            assert_eq!(unread(person).await, expected, "person {index} after step {step}, seed {seed}");
        }
    }
}

async fn a_position_above_the_newest_visible_message_is_clamped(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    let first = id_of(&bob.send(&alice, "one").await);
    let elsewhere = id_of(&carol.send(&alice, "another conversation").await);
    report(&alice, &bob, elsewhere).await;
    assert_eq!(position_of(&bob, &alice).await, Some(first));
    for beyond in [first + 1_000_000, 9_007_199_254_740_991, i64::MAX] {
        report(&alice, &bob, beyond).await;
        assert_eq!(position_of(&bob, &alice).await, Some(first));
    }
    // So what comes later is unread.
    let second = id_of(&bob.send(&alice, "two").await);
    assert!(second > first);
    assert_eq!(position_of(&bob, &alice).await, Some(first));
    // My own messages belong to the conversation, and can be its newest.
    let own = id_of(&alice.send(&bob, "three").await);
    report(&alice, &bob, i64::MAX).await;
    assert_eq!(position_of(&bob, &alice).await, Some(own));
}

async fn where_nothing_is_visible_nothing_is_written(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("stranger").await;
    let message = id_of(&alice.send(&bob, "for bob only").await);
    let people = [&alice, &bob, &stranger];
    let mut sockets = [alice.connect().await, bob.connect().await, stranger.connect().await];
    for (reader, peer) in [(&stranger, &alice), (&stranger, &bob), (&stranger, &stranger), (&bob, &stranger)] {
        report(reader, peer, message).await;
        report(reader, peer, i64::MAX).await;
    }
    let nobody = "/im/message/private/read?receiverId=9007199254740991&messageId=1";
    assert_eq!(code_of(&stranger, "PUT", nobody).await, 0);
    for nothing in [0, -1, i64::MIN] {
        report(&bob, &alice, nothing).await;
    }
    let rows = "SELECT COUNT(*) AS number FROM im_conversation_read";
    assert_eq!(number(&mut open(&app.database.url).await, rows).await, 0);
    for (person, socket) in people.into_iter().zip(&mut sockets) {
        assert_eq!(told(&app, person, socket).await, vec![]);
    }
    assert_eq!(position_of(&alice, &bob).await, None);
}

async fn reading_on_one_device_clears_the_others(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let newest = id_of(&bob.send(&alice, "one").await);
    let mut online = [alice.connect().await, alice.connect().await];
    let mut bobs = bob.connect().await;
    assert_eq!(unread(&alice).await, 1);
    report(&alice, &bob, newest).await;
    for socket in &mut online {
        let push = socket.next().await;
        assert_eq!((push.conversation_type, push.content_type), (1, READ));
        let expected = json!({
            "id": newest, "readId": newest, "senderId": alice.id, "receiverId": bob.id, "groupId": null, "channelId": null
        });
        assert_eq!(push.payload, expected);
    }
    let push = bobs.next().await;
    assert_eq!((push.conversation_type, push.content_type), (1, RECEIPT));
    let expected = json!({
        "id": newest, "senderId": alice.id, "receiverId": bob.id, "groupId": null, "readCount": null, "receiptStatus": null
    });
    assert_eq!(push.payload, expected);
    // A device that was away finds the same by its pull.
    assert_eq!(positions(&alice).await, HashMap::from([(bob.id, newest)]));
    assert_eq!(unread(&alice).await, 0);
}

async fn concurrent_reports_end_at_the_maximum_and_never_fall(backend: Backend) {
    // Small batches, so that not all reports are merged before they are written.
    let writer = WriterConfig { max_batch: 3, ..WriterConfig::default() };
    let config = Config { writer, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut ids = Vec::new();
    for number in 0..64 {
        ids.push(id_of(&bob.send(&alice, &number.to_string()).await));
    }
    let maximum = *ids.iter().max().unwrap();
    ids.shuffle(&mut rand::rng());
    let mut socket = alice.connect().await;
    let is_done = Cell::new(false);
    let reports = async {
        join_all(ids.iter().map(|id| report(&alice, &bob, *id))).await;
        is_done.set(true);
    };
    let watch = async {
        let mut seen = Vec::new();
        while !is_done.get() {
            seen.push(position_of(&bob, &alice).await.unwrap_or(0));
        }
        seen
    };
    let ((), seen) = tokio::join!(reports, watch);
    assert!(seen.is_sorted(), "a position fell: {seen:?}, order of reports: {ids:?}");
    assert_eq!(position_of(&bob, &alice).await, Some(maximum), "order of reports: {ids:?}");
    let pushes = told(&app, &alice, &mut socket).await;
    let told: Vec<i64> = pushes.iter().map(|push| push.payload["readId"].as_i64().unwrap()).collect();
    assert!(told.is_sorted_by(|a, b| a < b) && told.last() == Some(&maximum), "{told:?}");
}

async fn receipts_are_computed_from_positions(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (one, two) = (alice.send(&bob, "one").await, alice.send(&bob, "two").await);
    assert_eq!((&one["receiptStatus"], receipt_status(&alice, &one).await), (&json!(1), 1));
    report(&bob, &alice, id_of(&one)).await;
    for person in [&alice, &bob] {
        assert_eq!((receipt_status(person, &one).await, receipt_status(person, &two).await), (2, 1));
    }
    let history = alice.get(&format!("/im/message/private/list?receiverId={}&limit=2", bob.id)).await;
    assert_eq!((&history[0]["receiptStatus"], &history[1]["receiptStatus"]), (&json!(1), &json!(2)));
    // My own reading completes nothing, and what is asked for later starts anew.
    report(&alice, &bob, id_of(&two)).await;
    assert_eq!(receipt_status(&alice, &two).await, 1);
    report(&bob, &alice, id_of(&two)).await;
    assert_eq!(receipt_status(&alice, &two).await, 2);
    let three = alice.send(&bob, "three").await;
    assert_eq!(receipt_status(&alice, &three).await, 1);
    // A row that the server made asks for none.
    assert_eq!(alice.pull_all(100).await[0]["receiptStatus"], 0);
}

async fn a_receipt_may_be_declined(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    for (wish, expected) in [(json!(false), 0), (json!(true), 1), (Value::Null, 1)] {
        let mut body = text_message(bob.id, &random_id(), "x");
        body["receipt"] = wish.clone();
        let sent = alice.post("/im/message/private/send", body).await;
        assert_eq!(sent["receiptStatus"], expected, "{wish}");
        report(&bob, &alice, id_of(&sent)).await;
        assert_eq!(receipt_status(&alice, &sent).await, expected * 2, "{wish}");
    }
}

async fn without_the_feature_there_are_no_receipts(backend: Backend) {
    let message = MessageConfig { private_read_enabled: false, ..MessageConfig::default() };
    let config = Config { message, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, ..Setup::default() }).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut body = text_message(bob.id, &random_id(), "x");
    body["receipt"] = json!(true);
    let sent = alice.post("/im/message/private/send", body).await;
    assert_eq!(sent["receiptStatus"], 0);
    let read = format!("/im/message/private/read?receiverId={}&messageId={}", alice.id, id_of(&sent));
    assert_eq!(code_of(&bob, "PUT", &read).await, 1_040_300_010);
    let asked = format!("/im/message/private/max-read-message-id?peerId={}", bob.id);
    assert_eq!(code_of(&alice, "GET", &asked).await, 1_040_300_010);
    assert_eq!(positions(&bob).await, HashMap::new());
}

async fn only_a_position_that_rises_is_told(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (one, two) = (id_of(&bob.send(&alice, "one").await), id_of(&bob.send(&alice, "two").await));
    let (mut alices, mut bobs) = (alice.connect().await, bob.connect().await);
    report(&alice, &bob, two).await;
    assert_eq!((alices.next().await.content_type, bobs.next().await.content_type), (READ, RECEIPT));
    for again in [two, one, two + 100, 0] {
        report(&alice, &bob, again).await;
    }
    assert_eq!(told(&app, &alice, &mut alices).await, vec![]);
    assert_eq!(told(&app, &bob, &mut bobs).await, vec![]);
    assert_eq!(position_of(&bob, &alice).await, Some(two));
}

/// A text as the HTTP layer hands it to the writer.
fn draft(sender: &Person, receiver: &Person) -> PrivateDraft {
    let content = parse_content(ContentType::Text, r#"{"content":"x"}"#).unwrap();
    let number = ContentType::Text.number();
    PrivateDraft {
        sender: UserId(sender.id),
        receiver: UserId(receiver.id),
        client_message_id: random_id(),
        content_type: number,
        content_hash: content_hash(receiver.id, number, &content),
        content,
        receipt: None,
    }
}

/// "Everything" reported between two sends means the first of them, whoever else is in the batch.
async fn reports_and_sends_of_one_batch_keep_their_order(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let before = id_of(bob.pull_all(100).await.last().unwrap());
    let mut socket = alice.connect().await;
    let writer = &app.server.state().writer;
    // Holds the writer until everything waits, so that all of it is one batch.
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let hold = writer.run(None, "test.hold", Locks::NONE, async move |_| {
        held.notified().await;
        Ok(())
    });
    let all_of_it = |reader: &Person, peer: &Person| {
        writer.report_read(ReadReport {
            reader: UserId(reader.id),
            conversation: Conversation::With(UserId(peer.id)),
            message: MessageId(i64::MAX),
        })
    };
    let batches = "SELECT MAX(value) AS number FROM im_sequence WHERE name LIKE 'writer:%'";
    let batches_before = number(&mut open(&app.database.url).await, batches).await;
    let opening = async {
        while writer.waiting() < 7 {
            tokio::task::yield_now().await;
        }
        gate.notify_one();
    };
    // `join!` begins them in this order, and each is submitted when it begins.
    let (_, early, one, alices, two, bobs, three, ()) = tokio::join!(
        hold,
        all_of_it(&bob, &alice),
        writer.send_private(draft(&bob, &alice)),
        all_of_it(&alice, &bob),
        writer.send_private(draft(&bob, &alice)),
        all_of_it(&bob, &alice),
        writer.send_private(draft(&bob, &alice)),
        opening,
    );
    for report in [early, alices, bobs] {
        report.unwrap();
    }
    let ids: Vec<i64> = [one, two, three].into_iter().map(|sent| sent.unwrap().id.0).collect();
    let batches_after = number(&mut open(&app.database.url).await, batches).await;
    assert!(batches_after - batches_before <= 2, "one that holds the writer, at most, and the one under test");
    assert!(before < ids[0] && ids.is_sorted_by(|a, b| a < b), "{before} {ids:?}");
    assert_eq!(position_of(&bob, &alice).await, Some(ids[0]), "{ids:?}");
    assert_eq!(position_of(&alice, &bob).await, Some(ids[1]), "the later of his two reports: {ids:?}");
    let pushes = told(&app, &alice, &mut socket).await;
    let read = pushes.iter().filter(|push| push.content_type == READ);
    let told: Vec<i64> = read.map(|push| id_of(&push.payload)).collect();
    assert_eq!(told, [ids[0]]);
}
