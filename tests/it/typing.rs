//! Typing: a signal to a friend's open sockets, kept nowhere (`design.md` section 12).

use serde_json::json;

use crate::support::app::{ManualClock, Person, Push, Setup, Socket, TestApp, befriend};
use crate::support::barrier::told;
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::code_of;
use crate::support::tables::{fingerprint, open};

on_every_database! {
    a_friend_sees_typing_on_every_device,
    typing_is_told_once_a_second_for_each_pair,
    only_friends_are_told,
    typing_is_not_stored,
}

const TYPING: i64 = 2301;

async fn app_at(clock: &ManualClock, backend: Backend) -> TestApp {
    TestApp::start_with(backend, Setup { clock: Some(clock.clock()), ..Setup::default() }).await
}

fn clock() -> ManualClock {
    ManualClock::at(1_800_000_000_000)
}

async fn type_to(sender: &Person, receiver: &Person) -> i64 {
    code_of(sender, "PUT", &format!("/im/message/private/typing?receiverId={}", receiver.id)).await
}

/// How often a socket was told of typing before now.
async fn count_told(app: &TestApp, person: &Person, socket: &mut Socket) -> usize {
    told(app, person, socket).await.iter().filter(|push| push.content_type == TYPING).count()
}

async fn a_friend_sees_typing_on_every_device(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (mut phone, mut laptop) = (bob.connect().await, bob.connect().await);
    let mut own = alice.connect().await;
    assert_eq!(type_to(&alice, &bob).await, 0);
    let payload = json!({"senderId": alice.id, "receiverId": bob.id});
    for socket in [&mut phone, &mut laptop] {
        // Conversation type 0: the web client would show any unknown type of a conversation as a bubble.
        let expected = Push { conversation_type: 0, content_type: TYPING, payload: payload.clone() };
        assert_eq!(socket.next().await, expected);
    }
    assert_eq!(count_told(&app, &alice, &mut own).await, 0, "the typist's own devices are not told");
}

async fn typing_is_told_once_a_second_for_each_pair(backend: Backend) {
    let clock = clock();
    let app = app_at(&clock, backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    let (mut alices, mut bobs, mut carols) = (alice.connect().await, bob.connect().await, carol.connect().await);
    for _ in 0..5 {
        assert_eq!(type_to(&alice, &bob).await, 0, "a throttled call answers as any other");
    }
    assert_eq!(count_told(&app, &bob, &mut bobs).await, 1);
    // Other pairs are not affected, nor is the other direction.
    assert_eq!((type_to(&alice, &carol).await, type_to(&bob, &alice).await), (0, 0));
    assert_eq!(count_told(&app, &carol, &mut carols).await, 1);
    assert_eq!(count_told(&app, &alice, &mut alices).await, 1);

    clock.jump(999);
    type_to(&alice, &bob).await;
    assert_eq!(count_told(&app, &bob, &mut bobs).await, 0);
    clock.jump(1);
    type_to(&alice, &bob).await;
    assert_eq!(count_told(&app, &bob, &mut bobs).await, 1);
}

async fn only_friends_are_told(backend: Backend) {
    let clock = clock();
    let app = app_at(&clock, backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("stranger").await;
    let mut bobs = bob.connect().await;
    assert_eq!(type_to(&stranger, &bob).await, 1_040_600_001);
    assert_eq!(type_to(&bob, &bob).await, 1_040_600_001, "nobody is his own friend");
    assert_eq!(code_of(&alice, "PUT", "/im/message/private/typing?receiverId=9007199254740991").await, 1_040_600_001);

    let block = format!("UPDATE im_friend SET blocked = TRUE WHERE user_id = {}", bob.id);
    open(&app.database.url).await.run_text(&block).await.unwrap();
    assert_eq!(type_to(&alice, &bob).await, 1_040_600_004);
    assert_eq!(type_to(&bob, &alice).await, 0, "one's own block does not limit oneself");
    let unblock = format!("UPDATE im_friend SET blocked = FALSE WHERE user_id = {}", bob.id);
    open(&app.database.url).await.run_text(&unblock).await.unwrap();
    // A refused call is not a told one: the next one within the second is.
    assert_eq!(type_to(&alice, &bob).await, 0);
    assert_eq!(count_told(&app, &bob, &mut bobs).await, 1);
}

async fn typing_is_not_stored(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let before = fingerprint(&app.database.url).await;
    let newest = bob.pull_all(100).await;
    let mut online = bob.connect().await;
    assert_eq!(type_to(&alice, &bob).await, 0);
    assert_eq!(online.next().await.content_type, TYPING);
    assert_eq!(bob.pull_all(100).await, newest);
    assert_eq!(fingerprint(&app.database.url).await, before);
    let sent = alice.send(&bob, "after").await;
    assert_eq!(online.next().await.payload, sent);
    let mut late = bob.connect().await;
    assert_eq!(told(&app, &bob, &mut late).await, vec![], "who comes later is not told");
}
