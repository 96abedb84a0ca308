//! What a device has confirmed: what counts, where it is kept, and when it goes.

use nudge::db::connect::Role;
use nudge::db::tokens;

use crate::support::app::{Person, Setup, TestApp, eventually, id_of};
use crate::support::bare::{BareSocket, stored_ids};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct;
use crate::support::tables::{lines, number, open};

on_every_database! {
    what_a_pong_has_confirmed_is_not_replayed,
    what_was_written_after_a_ping_is_not_confirmed_by_its_pong,
    devices_that_are_new_start_now,
    each_device_of_a_login_has_a_position_of_its_own,
    of_two_sockets_of_one_device_the_lower_counts,
    clients_without_replay_are_not_tracked,
    positions_end_with_their_login,
    a_login_has_so_many_devices_and_no_more,
    a_stop_writes_what_was_confirmed,
    an_old_position_only_replays_more,
}

/// Protocol pings come often.
fn often() -> Setup {
    let mut setup = Setup::default();
    setup.config.websocket.ping_interval_ms = 2_000;
    setup
}

/// The device, private and group position of every row, in order of the devices.
async fn stored_positions(app: &TestApp) -> Vec<String> {
    let text = match app.database.backend {
        Backend::Mysql => "CONCAT(CAST(device AS CHAR), ' ', private_id, ' ', group_id, ' ', channel_id)",
        _ => "device || ' ' || private_id || ' ' || group_id || ' ' || channel_id",
    };
    lines(&mut open(&app.database.url).await, &format!("SELECT {text} AS line FROM im_device_position ORDER BY device"))
        .await
}

/// Takes everything up to the next ping and answers it; what came before it.
async fn confirm(socket: &mut BareSocket) -> Vec<i64> {
    let (pushes, ping) = socket.until_ping().await;
    socket.pong(&ping).await;
    // The pong is handled before what comes after it is answered.
    let mut ids = stored_ids(&pushes);
    ids.extend(stored_ids(&socket.drain().await));
    ids
}

/// What a new socket of the device gets.
async fn replayed(app: &TestApp, person: &Person, parameters: &str) -> Vec<i64> {
    stored_ids(&BareSocket::open(person, &app.base, parameters).await.drain().await)
}

async fn what_a_pong_has_confirmed_is_not_replayed(backend: Backend) {
    let app = TestApp::start_with(backend, often()).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let first = id_of(&alice.send(&bob, "one").await);
    let in_group = id_of(&alice.say(group, "one").await);
    assert_eq!(stored_ids(&socket.drain().await), [first, in_group]);
    confirm(&mut socket).await;
    let second = id_of(&alice.send(&bob, "two").await);
    let third = id_of(&alice.say(group, "two").await);
    assert_eq!(stored_ids(&socket.drain().await), [second, third], "written, read, but before no ping");
    drop(socket);
    assert_eq!(replayed(&app, &bob, "").await, [second, third]);
}

async fn what_was_written_after_a_ping_is_not_confirmed_by_its_pong(backend: Backend) {
    let app = TestApp::start_with(backend, often()).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let (_, ping) = socket.until_ping().await;
    let message = id_of(&alice.send(&bob, "hello").await);
    assert_eq!(stored_ids(&socket.drain().await), [message]);
    socket.pong(&ping).await;
    assert_eq!(socket.drain().await, vec![]);
    drop(socket);
    assert_eq!(replayed(&app, &bob, "").await, [message]);
}

async fn devices_that_are_new_start_now(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    BareSocket::open(&bob, &app.base, "&device=old").await;
    let message = id_of(&alice.send(&bob, "hello").await);
    assert_eq!(replayed(&app, &bob, "&device=new").await, Vec::<i64>::new());
    assert_eq!(replayed(&app, &bob.sign_in_again().await, "&device=old").await, Vec::<i64>::new(), "another login");
    assert_eq!(replayed(&app, &bob, "&device=old").await, [message]);
    // From then on it is known, although it has confirmed nothing.
    let next = id_of(&alice.send(&bob, "hello").await);
    assert_eq!(replayed(&app, &bob, "&device=new").await, [next]);
}

async fn each_device_of_a_login_has_a_position_of_its_own(backend: Backend) {
    let app = TestApp::start_with(backend, often()).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut phone = BareSocket::open(&bob, &app.base, "&device=phone").await;
    let laptop = BareSocket::open(&bob, &app.base, "&device=Phone").await;
    let message = id_of(&alice.send(&bob, "hello").await);
    assert_eq!(stored_ids(&phone.drain().await), [message]);
    confirm(&mut phone).await;
    drop((phone, laptop));
    assert_eq!(replayed(&app, &bob, "&device=phone").await, Vec::<i64>::new());
    assert_eq!(replayed(&app, &bob, "&device=Phone").await, [message]);
}

async fn of_two_sockets_of_one_device_the_lower_counts(backend: Backend) {
    let app = TestApp::start_with(backend, often()).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut quick = BareSocket::open(&bob, &app.base, "&device=one").await;
    let slow = BareSocket::open(&bob, &app.base, "&device=one").await;
    let message = id_of(&alice.send(&bob, "hello").await);
    assert_eq!(stored_ids(&quick.drain().await), [message]);
    confirm(&mut quick).await;
    // Whoever comes may be either of the two.
    assert_eq!(replayed(&app, &bob, "&device=one").await, [message]);
    drop(slow);
    drop(quick);
    eventually("the sockets are gone", async || app.server.state().registry.counts().await.sessions == 0).await;
    assert_eq!(replayed(&app, &bob, "&device=one").await, [message]);
}

async fn clients_without_replay_are_not_tracked(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    BareSocket::open(&bob, &app.base, "&resume=0").await;
    alice.send(&bob, "hello").await;
    assert_eq!(replayed(&app, &bob, "&resume=0").await, Vec::<i64>::new());
    assert_eq!(stored_positions(&app).await, Vec::<String>::new());
    BareSocket::open(&bob, &app.base, "&resume=1").await;
    assert_eq!(stored_positions(&app).await.len(), 1);
}

async fn positions_end_with_their_login(backend: Backend) {
    let app = TestApp::start(backend).await;
    let alice = app.user("alice").await;
    let mut logins = vec![alice.clone()];
    for _ in 0..3 {
        logins.push(alice.sign_in_again().await);
    }
    for login in &logins {
        BareSocket::open(login, &app.base, "&device=a").await;
        BareSocket::open(login, &app.base, "").await;
    }
    let count =
        async || number(&mut open(&app.database.url).await, "SELECT COUNT(*) AS number FROM im_device_position").await;
    assert_eq!(count().await, 8);
    logins[0].post("/system/auth/logout", serde_json::json!({})).await;
    assert_eq!(count().await, 6);
    let mut db = direct::connect(&app.database.url, Role::Writer).await;
    let expires = number(&mut db, "SELECT MIN(expires_time) AS number FROM system_oauth2_refresh_token").await;
    tokens::delete_expired(&mut db, expires + 1, 500).await.unwrap();
    assert_eq!(count().await, 4);
    tokens::delete_logins_of_user(&mut db, nudge::domain::ids::UserId(alice.id)).await.unwrap();
    assert_eq!(count().await, 0);
}

async fn a_login_has_so_many_devices_and_no_more(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    for number in 0..60 {
        BareSocket::open(&bob, &app.base, &format!("&device={number}")).await;
        alice.send(&bob, "they come further and further").await;
    }
    let devices = stored_positions(&app).await;
    assert_eq!(devices.len(), 50);
    assert!(devices.iter().all(|line| line.split(' ').next().unwrap().parse::<usize>().unwrap() >= 10), "{devices:?}");
}

async fn a_stop_writes_what_was_confirmed(backend: Backend) {
    let app = TestApp::start_with(backend, often()).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut socket = BareSocket::open(&bob, &app.base, "&device=x").await;
    let first = id_of(&alice.send(&bob, "hello").await);
    assert_eq!(stored_ids(&socket.drain().await), [first]);
    confirm(&mut socket).await;
    let position =
        async |url: &str| number(&mut open(url).await, "SELECT private_id AS number FROM im_device_position").await;
    eventually("the first confirmation is written", async || position(&app.database.url).await == first).await;
    // The second comes within the time in which nothing more is written.
    let second = id_of(&alice.send(&bob, "hello").await);
    assert_eq!(stored_ids(&socket.drain().await), [second]);
    confirm(&mut socket).await;
    drop(socket);
    let TestApp { server, database, .. } = app;
    server.stop().await;
    assert_eq!(position(&database.url).await, second);
}

async fn an_old_position_only_replays_more(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let first = id_of(&alice.send(&bob, "one").await);
    let second = id_of(&alice.send(&bob, "two").await);
    BareSocket::open(&bob, &app.base, "").await;
    eventually("the socket is gone", async || app.server.state().registry.counts().await.sessions == 0).await;
    open(&app.database.url).await.run_text("UPDATE im_device_position SET private_id = 0").await.unwrap();
    let all: Vec<i64> = bob.pull_all(100).await.iter().map(id_of).collect();
    assert!(all.ends_with(&[first, second]));
    assert_eq!(replayed(&app, &bob, "").await, all);
    // One above every id, as after the return of an old database, hides nothing that comes.
    open(&app.database.url).await.run_text("UPDATE im_device_position SET private_id = 9000000000").await.unwrap();
    let mut socket = BareSocket::open(&bob, &app.base, "").await;
    let third = id_of(&alice.send(&bob, "three").await);
    assert_eq!(stored_ids(&socket.drain().await), [third]);
    drop(socket);
    assert_eq!(replayed(&app, &bob, "").await, [third]);
}
