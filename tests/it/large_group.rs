//! A group of 3,000 members (field test H1): one stored row, one frame that all sockets share, and no list of members
//! for every message. 300 members are online with two devices each; with `TEST_LONG=1` it is 1,000.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use serde_json::json;

use crate::support::app::{Person, Setup, Socket, TestApp, id_of};
use crate::support::chats::TEXT;
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{DirectWriter, group_draft, is_long};
use crate::support::friends::code_of;
use crate::support::stored::Tables;

on_every_database! {
    a_message_to_three_thousand_is_one_row_and_one_frame,
}

const MEMBERS: usize = 3_000;
const TOO_MANY: i64 = 1_040_500_005;

/// A group of all, in invitations as large as one call may be.
async fn group_of(owner: &Person, others: &[Person]) -> i64 {
    let group = owner.create_group(&[]).await;
    for invited in others.chunks(1_000) {
        let ids: Vec<i64> = invited.iter().map(|person| person.id).collect();
        owner.post("/im/group/invite", json!({"groupId": group, "memberUserIds": ids})).await;
    }
    group
}

async fn connect_all(people: &[Person]) -> Vec<Socket> {
    let devices = people.iter().flat_map(|person| [person, person]);
    stream::iter(devices).map(|person| person.connect()).buffer_unordered(16).collect().await
}

async fn a_message_to_three_thousand_is_one_row_and_one_frame(backend: Backend) {
    let mut setup = Setup::default();
    setup.config.group.max_member = MEMBERS;
    let app = TestApp::start_with(backend, setup).await;
    let alice = app.user("alice").await;
    let others = app.crowd_of_friends(&alice, MEMBERS).await;
    let group = group_of(&alice, &others[1..]).await;
    let body = json!({"groupId": group, "memberUserIds": [others[0].id]});
    assert_eq!(code_of(&alice.call("POST", "/im/group/invite", Some(body)).await), TOO_MANY);
    let online = if is_long() { 1_000 } else { 300 };
    let mut sockets = connect_all(&others[1..=online]).await;
    let mut stranger = others[0].connect().await;

    let rows_before = Tables::open(&app.database.url).await.group_message_ids().await.len();
    let sent = alice.say(group, "hello, all of you").await;
    assert_eq!(sent["receiverUserIds"].as_array().unwrap().len(), MEMBERS);
    let rows = Tables::open(&app.database.url).await.group_message_ids().await;
    assert_eq!((rows.len(), rows.last()), (rows_before + 1, Some(&id_of(&sent))));
    for socket in &mut sockets {
        let push = socket.next().await;
        assert_eq!(
            (push.content_type, &push.payload["id"], &push.payload["receiverUserIds"]),
            (TEXT, &sent["id"], &json!(null))
        );
    }
    assert_eq!(stranger.drain().await, vec![]);
    assert_eq!(others[MEMBERS - 1].pull_page(0, 10).await.last().unwrap()["id"], sent["id"]);
    check_the_second_send(&app, alice.id, group).await;
}

/// What the first send read of the members is not read again, and each send hands over one frame.
async fn check_the_second_send(app: &TestApp, sender: i64, group: i64) {
    let mut writer = DirectWriter::connect(&app.database.url).await;
    let first = writer.send_group(group_draft(sender, group, "one")).await;
    let second = writer.send_group(group_draft(sender, group, "two")).await;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(first[0].receivers.len(), MEMBERS);
    assert!(Arc::ptr_eq(&first[0].receivers, &second[0].receivers), "the list was read again");
}
