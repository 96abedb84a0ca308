//! Recalling group messages (`contract/02` G6; `design.md` section 10).

use serde_json::json;

use crate::support::app::{ManualClock, Push, Setup, TestApp, data, id_of, ids_of};
use crate::support::background::codes_of;
use crate::support::chats::{GROUP_CREATE, RECALL};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{code_of, only_push};
use crate::support::second_connection::SecondConnection;

on_every_database! {
    a_recall_is_a_row_for_the_whole_group,
    whoever_may_not_recall_is_told_why_in_order,
    my_own_message_can_be_recalled_for_five_minutes_and_by_managers_for_ever,
    concurrent_recalls_of_one_message_are_one_recall,
    a_pin_shows_a_recalled_message_without_its_content,
}

const NOT_FOUND: i64 = 1_040_300_000;
const DENIED: i64 = 1_040_300_002;
const ALREADY: i64 = 1_040_300_003;
const TOO_LATE: i64 = 1_040_300_007;
const NO_MEMBER: i64 = 1_040_500_001;

async fn a_recall_is_a_row_for_the_whole_group(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    alice.kick(group, &carol).await;
    let sent = bob.say(group, "oh no").await;
    alice.invite(group, &carol).await;
    let (mut first, mut second, mut third) = (alice.connect().await, bob.connect().await, carol.connect().await);
    let row = data(bob.try_recall(id_of(&sent)).await);
    assert!(id_of(&row) > id_of(&sent) && row["sendTime"].as_i64() >= sent["sendTime"].as_i64(), "{row}");
    let content = json!({"messageId": sent["id"]}).to_string();
    let mut expected = json!({"id": row["id"], "clientMessageId": row["clientMessageId"], "senderId": bob.id,
        "groupId": group, "type": RECALL, "content": content, "status": 0, "sendTime": row["sendTime"],
        "atUserIds": null, "receiverUserIds": null, "receiptStatus": 0, "readCount": null});
    assert_eq!(row, expected);
    // Carol does not know the original, and ignores it.
    for person in [&alice, &bob, &carol] {
        assert_eq!(person.pull_page(id_of(&row) - 1, 10).await, std::slice::from_ref(&expected));
    }
    expected["readCount"] = json!(0);
    let push = only_push([&mut first, &mut second, &mut third]).await;
    assert_eq!(push, Push { conversation_type: 2, content_type: RECALL, payload: expected });
    let mut table = SecondConnection::open(&app.database.url).await;
    let kept = format!("id = {} AND status = 2 AND content LIKE '%oh no%'", id_of(&sent));
    assert_eq!(table.count("im_group_message", &kept).await, 1);
}

async fn whoever_may_not_recall_is_told_why_in_order(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let stranger = app.user("mallory").await;
    let sent = id_of(&bob.say(group, "hello").await);
    assert_eq!(code_of(&alice.try_recall(sent + 1_000).await), NOT_FOUND);
    assert_eq!(code_of(&stranger.try_recall(sent).await), NOT_FOUND);
    assert_eq!(code_of(&carol.try_recall(sent).await), DENIED);
    // Events are nobody's to take back.
    let created = &alice.pull_groups(100).await[0];
    assert_eq!(created["type"], GROUP_CREATE);
    assert_eq!(code_of(&alice.try_recall(id_of(created)).await), DENIED);
    data(bob.try_recall(sent).await);
    assert_eq!(code_of(&carol.try_recall(sent).await), DENIED);
    assert_eq!(code_of(&bob.try_recall(sent).await), ALREADY);
    let recall = id_of(&alice.pull_page(sent, 1).await[0]);
    assert_eq!(code_of(&bob.try_recall(recall).await), DENIED);
    let last = id_of(&bob.say(group, "bye").await);
    bob.quit(group).await;
    assert_eq!(code_of(&bob.try_recall(last).await), NO_MEMBER);
    // Neither does a refused call leave anything behind.
    assert_eq!(ids_of(&alice.pull_groups(100).await).last(), Some(&(last + 1)));
}

async fn my_own_message_can_be_recalled_for_five_minutes_and_by_managers_for_ever(backend: Backend) {
    let clock = ManualClock::at(1_800_000_000_000);
    let app = TestApp::start_with(backend, Setup { clock: Some(clock.clock()), ..Setup::default() }).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    alice.make_admin(group, &carol).await;
    let of_alice = [id_of(&alice.say(group, "one").await), id_of(&alice.say(group, "two").await)];
    let of_bob = [id_of(&bob.say(group, "three").await), id_of(&bob.say(group, "four").await)];
    clock.jump(5 * 60_000);
    data(bob.try_recall(of_bob[0]).await);
    clock.jump(1);
    assert_eq!(code_of(&bob.try_recall(of_bob[1]).await), TOO_LATE);
    // The owner has no more time than others for what is the owner's own.
    assert_eq!(code_of(&alice.try_recall(of_alice[0]).await), TOO_LATE);
    clock.jump(20 * 60_000);
    data(alice.try_recall(of_bob[1]).await);
    // An admin takes back what the owner wrote.
    let row = data(carol.try_recall(of_alice[1]).await);
    assert_eq!(row["senderId"], carol.id);
}

async fn concurrent_recalls_of_one_message_are_one_recall(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let sent = id_of(&bob.say(group, "oh no").await);
    let path = format!("/im/message/group/recall?id={sent}");
    let people = [&alice, &bob, &alice, &bob, &alice];
    let start = async || people.iter().map(|person| person.start_call("DELETE", &path, None)).collect();
    let answers = app.in_one_batch(start).await;
    assert_eq!(codes_of(&answers), [0, ALREADY, ALREADY, ALREADY, ALREADY]);
    assert_eq!(bob.pull_page(sent, 100).await.len(), 1);
}

async fn a_pin_shows_a_recalled_message_without_its_content(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let sent = id_of(&bob.say(group, "remember this").await);
    alice.change("/im/group/pin-message", json!({"id": group, "messageId": sent})).await;
    data(bob.try_recall(sent).await);
    let pins = alice.get(&format!("/im/group/get?id={group}")).await["pinnedMessages"].clone();
    assert_eq!((&pins[0]["id"], &pins[0]["status"], &pins[0]["content"]), (&json!(sent), &json!(2), &json!("{}")));
}
