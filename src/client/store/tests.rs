//! The store by itself: what merges, what is forgotten, what only rises.

use proptest::prelude::*;

use super::*;
use crate::client::types::{ReadPayload, ReceiptPayload, STATUS_RECALLED};

fn message(id: i64) -> PrivateMessage {
    PrivateMessage {
        id: MessageId(id),
        client_message_id: Some(format!("c{id}")),
        sender_id: UserId(1),
        receiver_id: UserId(2),
        r#type: 101,
        content: r#"{"content":"x"}"#.to_owned(),
        status: 0,
        receipt_status: 1,
        send_time: id,
    }
}

fn recall_row(id: i64, recalled: i64) -> PrivateMessage {
    PrivateMessage { r#type: 2101, content: format!(r#"{{"messageId":{recalled}}}"#), ..message(id) }
}

fn page(ids: &[i64]) -> Vec<PrivateMessage> {
    ids.iter().copied().map(message).collect()
}

fn ids(store: &Store) -> Vec<i64> {
    store.private_messages().map(|message| message.id.0).collect()
}

#[test]
fn only_pulls_move_the_cursor() {
    let mut store = Store::new(100);
    assert!(store.merge_private(message(12)));
    assert!(store.merge_push(&Push::PrivateMessage(message(13))));
    assert_eq!(store.private_cursor(), 0);
    let (new, has_moved) = store.private.merge_page(page(&[11, 12]));
    assert_eq!((new.len(), has_moved, store.private_cursor()), (1, true, 12));
    assert_eq!(ids(&store), [11, 12, 13]);
}

#[test]
fn echo_and_answer_are_one_message() {
    let mut store = Store::new(100);
    assert!(store.merge_push(&Push::PrivateMessage(message(5))));
    assert!(!store.merge_private(message(5)));
    assert_eq!((ids(&store), store.duplicates()), (vec![5], 0));
    assert_eq!(store.find_by_client_id(UserId(1), "c5").unwrap().id, MessageId(5));
}

#[test]
fn one_client_id_under_two_ids_is_counted() {
    let mut store = Store::new(100);
    store.merge_private(message(5));
    store.merge_private(PrivateMessage { id: MessageId(6), ..message(5) });
    assert_eq!(store.duplicates(), 1);
}

#[test]
fn a_recall_stays_whatever_comes_later() {
    let mut store = Store::new(100);
    store.merge_private(message(5));
    store.merge_private(recall_row(7, 5));
    store.merge_private(recall_row(8, 6));
    store.merge_private(message(5));
    store.merge_private(message(6));
    for id in [5, 6] {
        let message = store.private_message(MessageId(id)).unwrap();
        assert_eq!((message.status, message.content.as_str()), (STATUS_RECALLED, "{}"));
    }
}

#[test]
fn old_pulled_messages_are_forgotten_and_stay_known() {
    let mut store = Store::new(2);
    store.private.merge_page(page(&[1, 2, 3, 4]));
    assert_eq!(ids(&store), [3, 4]);
    assert!(!store.merge_private(message(1)));
    assert_eq!(ids(&store), [3, 4]);
}

#[test]
fn messages_before_the_pull_are_not_forgotten() {
    let mut store = Store::new(2);
    for id in [7, 8, 9] {
        store.merge_private(message(id));
    }
    let (new, _) = store.private.merge_page(page(&[5, 6, 7]));
    assert_eq!(new.len(), 2);
    assert_eq!(ids(&store), [8, 9]);
}

#[test]
fn read_positions_only_rise() {
    let mut store = Store::new(2);
    let read = |id| Push::Read {
        conversation_type: 1,
        payload: ReadPayload { id: MessageId(id), receiver_id: Some(UserId(2)), group_id: None, channel_id: None },
    };
    assert!(store.merge_push(&read(5)));
    assert!(!store.merge_push(&read(4)));
    let row = |message, update_time| ConversationRead {
        id: 1,
        conversation_type: 1,
        target_id: 2,
        message_id: MessageId(message),
        update_time,
    };
    store.merge_read_page(&[row(3, 10_000)]);
    assert_eq!(store.read_position(ConversationType::Private, 2), Some(MessageId(5)));
    assert_eq!(store.read_cursor.scan_start(), Some((5_000, 0)));
}

#[test]
fn peers_positions_last_for_one_connection() {
    let mut store = Store::new(2);
    let receipt = Push::Receipt {
        conversation_type: 1,
        payload: ReceiptPayload {
            id: MessageId(5),
            sender_id: Some(UserId(2)),
            group_id: None,
            read_count: None,
            receipt_status: None,
        },
    };
    store.merge_push(&receipt);
    store.merge_peer_read(UserId(2), Some(MessageId(3)), store.connection());
    assert_eq!(store.peer_read(UserId(2)), Some(Some(MessageId(5))));
    let before = store.connection();
    store.start_connection();
    store.merge_peer_read(UserId(2), Some(MessageId(5)), before);
    assert_eq!(store.peer_read(UserId(2)), None);
    store.merge_peer_read(UserId(2), None, store.connection());
    assert_eq!(store.peer_read(UserId(2)), Some(None));
}

proptest! {
    /// Whatever was pushed meanwhile: after pulling to the end each message has been reported once.
    #[test]
    fn every_message_is_new_exactly_once(
        pushed in prop::collection::vec(1_i64..40, 0..80), size in 1_usize..10, capacity in 1_usize..50,
    ) {
        let mut store = Store::new(capacity);
        let mut reported = Vec::new();
        let mut pushes = pushed.into_iter();
        let all: Vec<i64> = (1..40).collect();
        loop {
            for id in pushes.by_ref().take(7) {
                if store.merge_private(message(id)) { reported.push(id); }
            }
            let cursor = store.private_cursor();
            let ids: Vec<i64> = all.iter().copied().filter(|id| *id > cursor).take(size).collect();
            let (new, _) = store.private.merge_page(page(&ids));
            reported.extend(new.iter().map(|message| message.id.0));
            if ids.is_empty() { break; }
        }
        reported.sort_unstable();
        prop_assert_eq!(reported, all);
    }
}
