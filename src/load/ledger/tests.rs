//! Each column goes up for a history that was doctored for it, and for no other.

use super::*;
use crate::domain::ids::MessageId;

const ALICE: UserId = UserId(1);
const BOB: UserId = UserId(2);
const EVE: UserId = UserId(3);
const GROUP: GroupId = GroupId(9);
const RUN: u64 = 0xabc;

fn ledger() -> Ledger {
    Ledger::new(RUN, HashMap::from([(GROUP, HashSet::from([ALICE, BOB]))]))
}

/// Alice sends to Bob; the row as it was stored.
fn send(ledger: &Ledger, id: i64) -> Row {
    let (number, client_message_id) = ledger.begin(ALICE, Target::User(BOB), Instant::now());
    ledger.acknowledge(number, id);
    ledger.private_row(&PrivateMessage {
        id: MessageId(id),
        client_message_id: Some(client_message_id),
        sender_id: ALICE,
        receiver_id: BOB,
        r#type: 101,
        content: String::new(),
        status: 0,
        receipt_status: 0,
        send_time: 0,
    })
}

/// What Bob's device did, and the ledger after it.
fn conclude(ledger: &Ledger, record: StreamRecord) -> Columns {
    let verdict = record.conclude(ledger.expected().private(BOB));
    let mut columns = Columns::default();
    ledger.add_verdict(&mut columns, "device 1", &verdict);
    ledger.complete(columns)
}

fn push(ledger: &Ledger, record: &mut StreamRecord, row: &Row) {
    if let Some(fault) = record.push(row.id, row.number.is_some()) {
        ledger.note_fault(fault, "device 1", row.id);
    }
    ledger.see(BOB, row);
}

fn pull(ledger: &Ledger, record: &mut StreamRecord, rows: &[Row]) {
    for row in rows {
        if let Some(fault) = record.pull(row.id, row.number.is_some()) {
            ledger.note_fault(fault, "device 1", row.id);
        }
        ledger.see(BOB, row);
    }
}

/// A ledger with messages 1 to 5, and a device that has just connected.
fn five() -> (Ledger, StreamRecord, Vec<Row>) {
    let ledger = ledger();
    let rows = (1..=5).map(|id| send(&ledger, id)).collect();
    let mut record = StreamRecord::default();
    record.start_socket();
    (ledger, record, rows)
}

#[test]
fn a_good_history_is_clean() {
    let (ledger, mut record, rows) = five();
    for row in &rows {
        push(&ledger, &mut record, row);
    }
    pull(&ledger, &mut record, &rows);
    let columns = conclude(&ledger, record);
    assert_eq!(columns, Columns { expected: 5, ..Columns::default() });
    assert!(columns.is_clean());
    assert!(ledger.examples().is_empty());
}

#[test]
fn an_acknowledged_message_that_is_not_in_the_tables_is_lost() {
    let (ledger, mut record, rows) = five();
    // Even where it was pushed before it went.
    push(&ledger, &mut record, &rows[1]);
    pull(&ledger, &mut record, &[rows[0], rows[2], rows[3]]);
    let columns = conclude(&ledger, record);
    assert_eq!(columns, Columns { lost: 2, healed: 3, expected: 5, ..Columns::default() });
    assert!(!columns.is_clean());
    assert_eq!(ledger.examples().len(), 2);
}

#[test]
fn an_id_that_comes_twice_is_duplicated() {
    let (ledger, mut record, rows) = five();
    for index in [0, 1, 2, 2, 3, 1, 4] {
        push(&ledger, &mut record, &rows[index]);
    }
    pull(&ledger, &mut record, &rows);
    pull(&ledger, &mut record, &rows[3..4]);
    let columns = conclude(&ledger, record);
    assert_eq!(columns, Columns { duplicated: 3, expected: 5, ..Columns::default() });
}

#[test]
fn a_second_socket_may_bring_what_the_first_one_brought() {
    let (ledger, mut record, rows) = five();
    for _ in 0..2 {
        for row in &rows {
            push(&ledger, &mut record, row);
        }
        record.start_socket();
    }
    pull(&ledger, &mut record, &rows);
    assert!(conclude(&ledger, record).is_clean());
}

#[test]
fn two_ids_for_one_client_id_are_a_duplicate() {
    let (ledger, mut record, rows) = five();
    let twin = Row { id: 6, ..rows[0] };
    pull(&ledger, &mut record, &rows);
    pull(&ledger, &mut record, &[twin]);
    assert_eq!(conclude(&ledger, record).duplicated, 1);

    let ledger = super::tests::ledger();
    let (number, _) = ledger.begin(ALICE, Target::User(BOB), Instant::now());
    ledger.acknowledge(number, 1);
    ledger.acknowledge(number, 2);
    assert_eq!(ledger.complete(Columns::default()).duplicated, 1);
}

#[test]
fn falling_ids_on_a_socket_are_out_of_order() {
    let (ledger, mut record, rows) = five();
    for index in [0, 2, 1, 3, 4] {
        push(&ledger, &mut record, &rows[index]);
    }
    pull(&ledger, &mut record, &rows);
    let columns = conclude(&ledger, record);
    assert_eq!(columns, Columns { out_of_order: 1, expected: 5, ..Columns::default() });
}

#[test]
fn a_hole_on_a_socket_is_out_of_order() {
    let (ledger, mut record, rows) = five();
    for index in [0, 1, 3] {
        push(&ledger, &mut record, &rows[index]);
    }
    pull(&ledger, &mut record, &rows);
    let columns = conclude(&ledger, record);
    assert_eq!(columns, Columns { out_of_order: 1, healed: 2, expected: 5, ..Columns::default() });
}

#[test]
fn a_hole_between_two_sockets_is_healed_by_the_pull() {
    let (ledger, mut record, rows) = five();
    push(&ledger, &mut record, &rows[0]);
    record.start_socket();
    push(&ledger, &mut record, &rows[3]);
    push(&ledger, &mut record, &rows[4]);
    pull(&ledger, &mut record, &rows);
    let columns = conclude(&ledger, record);
    assert_eq!(columns, Columns { healed: 2, expected: 5, ..Columns::default() });
    assert!(columns.is_clean());
}

#[test]
fn what_reaches_a_stranger_is_wrongly_delivered() {
    let ledger = ledger();
    let row = send(&ledger, 1);
    ledger.see(ALICE, &row);
    ledger.see(BOB, &row);
    ledger.see(EVE, &row);
    let (number, _) = ledger.begin(ALICE, Target::Group(GROUP), Instant::now());
    let row = Row { id: 1, sender: ALICE, target: Target::Group(GROUP), number: Some(number) };
    ledger.see(BOB, &row);
    ledger.see(EVE, &row);
    assert_eq!(ledger.complete(Columns::default()).wrongly_delivered, 2);
}

#[test]
fn a_row_with_another_receiver_is_wrongly_delivered() {
    let ledger = ledger();
    let row = send(&ledger, 1);
    ledger.see(EVE, &Row { target: Target::User(EVE), ..row });
    assert_eq!(ledger.complete(Columns::default()).wrongly_delivered, 1);
}

#[test]
fn a_refused_message_that_is_seen_is_wrongly_delivered() {
    let ledger = ledger();
    let (number, _) = ledger.begin(ALICE, Target::User(BOB), Instant::now());
    ledger.refuse(number);
    ledger.see(BOB, &Row { id: 7, sender: ALICE, target: Target::User(BOB), number: Some(number) });
    assert_eq!(ledger.complete(Columns::default()).wrongly_delivered, 1);
}

#[test]
fn a_push_that_is_in_no_table_came_before_its_commit() {
    let (ledger, mut record, rows) = five();
    let (number, _) = ledger.begin(ALICE, Target::User(BOB), Instant::now());
    push(&ledger, &mut record, &Row { id: 6, number: Some(number), ..rows[0] });
    pull(&ledger, &mut record, &rows);
    ledger.note_early_push(6);
    let columns = conclude(&ledger, record);
    assert_eq!((columns.pushed_before_commit, columns.lost), (2, 0));
    // Its send has no answer, so nothing is proven.
    assert_eq!(columns.unresolved, 1);
    assert!(!columns.is_clean());
}

#[test]
fn rows_of_others_are_checked_for_order_only() {
    let ledger = ledger();
    let mut record = StreamRecord::default();
    record.start_socket();
    for id in [5, 7, 6] {
        push(&ledger, &mut record, &Row { id, sender: ALICE, target: Target::User(BOB), number: None });
    }
    let columns = conclude(&ledger, record);
    assert_eq!(columns, Columns { out_of_order: 1, ..Columns::default() });
}

#[test]
fn group_messages_are_expected_by_every_member() {
    let ledger = ledger();
    for id in [4, 2] {
        let (number, _) = ledger.begin(ALICE, Target::Group(GROUP), Instant::now());
        ledger.acknowledge(number, id);
    }
    assert_eq!(ledger.expected().group(&[GROUP]), [2, 4]);
    assert_eq!(ledger.expected().group(&[]), [0_i64; 0]);
}
