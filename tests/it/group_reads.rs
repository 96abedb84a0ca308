//! Reading in groups: positions, receipts computed from them, and who has read (`contract/02` G4, G5; `design.md`
//! sections 4, 7 and 12).

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::app::{Push, Setup, TestApp, data, id_of};
use crate::support::chats::{READ, RECEIPT, read_path};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::code_of;

on_every_database! {
    a_report_names_a_message_of_the_group_that_its_reader_sees,
    nothing_is_reported_where_the_feature_is_off,
    reading_tells_my_devices_and_the_senders_of_receipt_messages,
    a_position_that_does_not_rise_is_told_to_nobody,
    fifty_readers_together_are_told_once_for_each_message_and_run,
    sixty_four_reports_at_once_end_at_the_highest,
    a_receipt_is_complete_when_the_last_who_has_not_read_leaves,
    a_receipt_without_receivers_stays_pending,
    only_the_sender_learns_who_has_read,
}

const NOT_VISIBLE: i64 = 1_040_300_009;
const SWITCHED_OFF: i64 = 1_040_300_011;
const NO_MEMBER: i64 = 1_040_500_001;

async fn a_report_names_a_message_of_the_group_that_its_reader_sees(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let other = alice.create_group(&[&bob]).await;
    let elsewhere = id_of(&alice.say(other, "elsewhere").await);
    alice.kick(group, &carol).await;
    let unseen = id_of(&alice.say(group, "without carol").await);
    alice.invite(group, &carol).await;
    for (person, message) in [(&bob, elsewhere), (&bob, unseen + 1_000), (&carol, unseen), (&bob, 0)] {
        assert_eq!(code_of(&person.call("PUT", &read_path(group, message), None).await), NOT_VISIBLE, "{message}");
    }
    assert_eq!(code_of(&carol.call("PUT", &read_path(other, elsewhere), None).await), NOT_VISIBLE);
    assert_eq!(bob.get("/im/conversation-read/pull?limit=10").await, json!([]));
    // Present membership is not asked for.
    bob.quit(group).await;
    bob.read_group(group, unseen).await;
    let position = &bob.get("/im/conversation-read/pull?limit=10").await[0];
    let shown = (&position["conversationType"], &position["targetId"], &position["messageId"]);
    assert_eq!(shown, (&json!(2), &json!(group), &json!(unseen)));
}

async fn nothing_is_reported_where_the_feature_is_off(backend: Backend) {
    let mut setup = Setup::default();
    setup.config.message.group_read_enabled = false;
    let app = TestApp::start_with(backend, setup).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let sent = id_of(&alice.say(group, "hello").await);
    assert_eq!(code_of(&bob.call("PUT", &read_path(group, sent), None).await), SWITCHED_OFF);
    let path = format!("/im/message/group/get-read-user-ids?groupId={group}&messageId={sent}");
    assert_eq!(code_of(&alice.call("GET", &path, None).await), SWITCHED_OFF);
    assert_eq!(bob.get("/im/conversation-read/pull?limit=10").await, json!([]));
}

fn receipt(group: i64, message: i64, count: i64, status: i64) -> Push {
    let payload = json!({"id": message, "senderId": null, "receiverId": null, "groupId": group, "readCount": count,
        "receiptStatus": status});
    Push { conversation_type: 2, content_type: RECEIPT, payload }
}

async fn reading_tells_my_devices_and_the_senders_of_receipt_messages(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let of_alice = alice.ask_receipt(group, "one").await;
    let of_carol = carol.ask_receipt(group, "two").await;
    let last = id_of(&alice.say(group, "without a receipt").await);
    let mut sockets = [alice.connect().await, bob.connect().await, bob.connect().await, carol.connect().await];
    bob.read_group(group, last).await;
    let payload = json!({"id": last, "senderId": bob.id, "receiverId": null, "groupId": group, "channelId": null,
        "readId": last});
    let read = Push { conversation_type: 2, content_type: READ, payload };
    assert_eq!(sockets[1].drain().await, std::slice::from_ref(&read));
    assert_eq!(sockets[2].drain().await, [read]);
    assert_eq!(sockets[0].drain().await, [receipt(group, of_alice, 1, 1)]);
    assert_eq!(sockets[3].drain().await, [receipt(group, of_carol, 1, 1)]);
    carol.read_group(group, of_alice).await;
    assert_eq!(sockets[0].drain().await, [receipt(group, of_alice, 2, 2)]);
    // What the sender reads is not counted.
    alice.read_group(group, of_alice).await;
    let told = sockets[0].drain().await;
    assert!(
        told.iter().filter(|push| push.content_type == RECEIPT).all(|push| *push == receipt(group, of_alice, 2, 2))
    );
    let row = alice.pull_page(of_alice - 1, 1).await.remove(0);
    assert_eq!((&row["readCount"], &row["receiptStatus"]), (&json!(2), &json!(2)));
    // Others see whether all have read, and not how many.
    let row = bob.pull_page(of_alice - 1, 1).await.remove(0);
    assert_eq!((&row["readCount"], &row["receiptStatus"]), (&Value::Null, &json!(2)));
}

async fn a_position_that_does_not_rise_is_told_to_nobody(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let first = alice.ask_receipt(group, "one").await;
    let second = alice.ask_receipt(group, "two").await;
    bob.read_group(group, second).await;
    let position = bob.get("/im/conversation-read/pull?limit=10").await;
    let mut sockets = [alice.connect().await, bob.connect().await];
    bob.read_group(group, second).await;
    bob.read_group(group, first).await;
    assert_eq!(sockets[0].drain().await, vec![]);
    assert_eq!(sockets[1].drain().await, vec![]);
    assert_eq!(bob.get("/im/conversation-read/pull?limit=10").await, position);
}

async fn fifty_readers_together_are_told_once_for_each_message_and_run(backend: Backend) {
    const READERS: usize = 50;
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let crowd = app.crowd_of_friends(&alice, READERS).await;
    let group = alice.create_group(&crowd.iter().collect::<Vec<_>>()).await;
    let mut asked = Vec::new();
    for number in 0..10 {
        asked.push(alice.ask_receipt(group, &format!("number {number}")).await);
    }
    // The last of them has read some already.
    crowd[READERS - 1].read_group(group, asked[4]).await;
    let mut socket = alice.connect().await;
    let path = read_path(group, asked[9]);
    let start = async || crowd.iter().map(|reader| reader.start_call("PUT", &path, None)).collect();
    let answers = app.in_one_batch(start).await;
    assert!(answers.iter().all(|answer| answer["code"] == 0));
    let receipts: Vec<Push> = socket.drain().await.into_iter().filter(|push| push.content_type == RECEIPT).collect();
    // The first reports are a run of their own, all others are one more.
    assert!(receipts.len() <= 2 * asked.len(), "{receipts:?}");
    let last: Vec<Push> = asked.iter().map(|message| receipt(group, *message, 50, 2)).collect();
    assert_eq!(receipts[receipts.len() - last.len()..], last);
}

async fn sixty_four_reports_at_once_end_at_the_highest(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let mut sent = Vec::new();
    for number in 0..64 {
        sent.push(alice.ask_receipt(group, &format!("number {number}")).await);
    }
    let mut sockets = [alice.connect().await, bob.connect().await];
    // In an order that goes up and down.
    let reports = (0..64).map(|index| sent[index * 37 % 64]);
    let answers = join_all(reports.map(|message| {
        let bob = bob.clone();
        async move { bob.call("PUT", &read_path(group, message), None).await }
    }));
    for answer in answers.await {
        assert!([0, 429].contains(&code_of(&answer)), "{answer}");
    }
    bob.read_group(group, sent[63]).await;
    assert_eq!(bob.get("/im/conversation-read/pull?limit=10").await[0]["messageId"], sent[63]);
    let reads: Vec<i64> =
        sockets[1].drain().await.iter().map(|push| push.payload["readId"].as_i64().unwrap()).collect();
    assert!(reads.is_sorted_by(|a, b| a < b) && reads.last() == Some(&sent[63]), "{reads:?}");
    let mut told: Vec<i64> = sockets[0].drain().await.iter().map(|push| id_of(&push.payload)).collect();
    told.sort_unstable();
    assert_eq!(told, sent, "each message is passed once");
}

async fn a_receipt_is_complete_when_the_last_who_has_not_read_leaves(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let asked = alice.ask_receipt(group, "who reads?").await;
    bob.read_group(group, asked).await;
    let shown = async || {
        let row = alice.pull_page(asked - 1, 1).await.remove(0);
        assert_eq!(
            row["receiptStatus"],
            alice.history(group, 100).await.iter().find(|row| id_of(row) == asked).unwrap()["receiptStatus"]
        );
        (row["readCount"].as_i64().unwrap(), row["receiptStatus"].as_i64().unwrap())
    };
    assert_eq!(shown().await, (1, 1));
    carol.quit(group).await;
    assert_eq!(shown().await, (1, 2));
    // Whoever comes back is a receiver again, whoever is new is none.
    alice.invite(group, &carol).await;
    assert_eq!(shown().await, (1, 1));
    carol.read_group(group, asked).await;
    assert_eq!(shown().await, (2, 2));
    alice.kick(group, &bob).await;
    assert_eq!(shown().await, (1, 2));
    assert_eq!(alice.readers_of(group, asked).await, [carol.id]);
}

async fn a_receipt_without_receivers_stays_pending(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let asked = alice.ask_receipt(group, "anybody?").await;
    bob.read_group(group, asked).await;
    bob.quit(group).await;
    let alone = alice.ask_receipt(group, "nobody").await;
    for message in [asked, alone] {
        let row = alice.pull_page(message - 1, 1).await.remove(0);
        assert_eq!((&row["readCount"], &row["receiptStatus"]), (&json!(0), &json!(1)));
        assert_eq!(alice.readers_of(group, message).await, Vec::<i64>::new());
    }
}

async fn only_the_sender_learns_who_has_read(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let other = alice.create_group(&[&bob]).await;
    // No receipt need be asked for.
    let sent = id_of(&alice.say(group, "hello").await);
    bob.read_group(group, sent).await;
    alice.read_group(group, sent).await;
    assert_eq!(alice.readers_of(group, sent).await, [bob.id]);
    let later = id_of(&alice.say(group, "hello again").await);
    assert_eq!(alice.readers_of(group, later).await, Vec::<i64>::new());
    for (person, group, message) in [(&bob, group, sent), (&alice, other, sent), (&alice, group, sent + 1_000)] {
        assert_eq!(person.readers_of(group, message).await, Vec::<i64>::new());
    }
    carol.quit(group).await;
    let path = format!("/im/message/group/get-read-user-ids?groupId={group}&messageId={sent}");
    assert_eq!(code_of(&carol.call("GET", &path, None).await), NO_MEMBER);
    // A recalled message asks for no receipts any more.
    let asked = alice.ask_receipt(group, "oh no").await;
    data(alice.try_recall(asked).await);
    let mut socket = alice.connect().await;
    bob.read_group(group, asked).await;
    assert_eq!(socket.drain().await, vec![]);
}
