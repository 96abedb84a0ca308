//! Our own client against the server: its devices catch up by `/im/sync`, in groups too, and know who is in them.

use nudge::client::{Connection, Device, DeviceEvent, GroupDraft, Push as ClientPush};
use nudge::domain::ids::{GroupId, MessageId, UserId};

use crate::support::app::{Person, TestApp, id_of, ids_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::devices::device_of;

on_every_database! {
    a_device_that_was_away_has_what_the_other_has,
    members_are_fetched_again_after_an_event,
}

async fn synced(connection: &mut Connection) {
    connection.next_matching(|event| matches!(event, DeviceEvent::Synced).then_some(())).await.unwrap();
}

fn known(device: &Device) -> (Vec<i64>, Vec<i64>) {
    device.with_store(|store| {
        assert_eq!(store.duplicates(), 0);
        let private = store.private_messages().map(|message| message.id.0).collect();
        (private, store.group_messages().map(|message| message.id.0).collect())
    })
}

async fn a_device_that_was_away_has_what_the_other_has(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let (here, away) = (device_of(&bob, &app.base), device_of(&bob.sign_in_again().await, &app.base));
    let (mut stays, mut lost) = (here.connect(), away.connect());
    synced(&mut stays).await;
    synced(&mut lost).await;
    // Cut without a goodbye.
    drop(lost);
    for number in 0..230 {
        alice.say(group, &format!("number {number}")).await;
    }
    let draft = GroupDraft::text(GroupId(group), "from the device that stays");
    let sent = here.send_group(&draft).await.unwrap();
    // As after a lost answer.
    assert_eq!(here.send_group(&draft).await.unwrap().id, sent.id);
    let last = id_of(&alice.send(&bob, "and this").await);
    let arrived = stays.next_matching(|event| match event {
        DeviceEvent::Push { push: ClientPush::PrivateMessage(row), .. } => (row.id == MessageId(last)).then_some(()),
        _ => None,
    });
    arrived.await.unwrap();

    let unread = away.unread().await.unwrap();
    let count = |target: i64| unread.conversations.iter().find(|row| row.target_id == target && row.count == 230);
    assert!(count(group).is_some() && unread.total == 231, "{unread:?}");
    let mut back = away.connect();
    synced(&mut back).await;
    assert_eq!(known(&away), known(&here));
    assert_eq!(known(&away), (ids_of(&bob.pull_all(1_000).await), ids_of(&bob.pull_groups(1_000).await)));
    here.read_group(GroupId(group), sent.id).await.unwrap();
    away.sync().await.unwrap();
    assert_eq!(away.unread().await.unwrap().total, 1);
    let groups = away.with_store(|store| (store.groups().len(), store.friends().count()));
    assert_eq!(groups, (1, 1));
}

async fn members_are_fetched_again_after_an_event(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let device = device_of(&bob, &app.base);
    let mut connection = device.connect();
    synced(&mut connection).await;
    let of = |people: &[&Person]| people.iter().map(|person| UserId(person.id)).collect::<Vec<_>>();
    assert_eq!(*device.members(GroupId(group)).await.unwrap(), of(&[&alice, &bob, &carol]));
    let fresh = |device: &Device| device.with_store(|store| store.members(GroupId(group)).is_some());
    assert!(fresh(&device));
    alice.kick(group, &carol).await;
    let event = connection.next_matching(|event| match event {
        DeviceEvent::Push { push: ClientPush::GroupMessage(row), .. } => Some(row.is_event()),
        _ => None,
    });
    assert!(event.await.unwrap());
    assert!(!fresh(&device));
    assert_eq!(*device.members(GroupId(group)).await.unwrap(), of(&[&alice, &bob]));
    // What was pulled counts as much as what was pushed.
    connection.close().await;
    alice.invite(group, &carol).await;
    device.sync().await.unwrap();
    assert_eq!(*device.members(GroupId(group)).await.unwrap(), of(&[&alice, &bob, &carol]));
}
