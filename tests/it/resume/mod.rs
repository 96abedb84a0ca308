//! Resume replay (`design.md` section 7): a client whose pull cursor jumps with pushes and answers, as that of the web
//! client does, loses nothing when its socket dies with frames on their way.

mod pages;
mod positions;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use crate::support::app::{API_KEY, Person, SCHEMA, Setup, TestApp, befriend, http_client, id_of};
use crate::support::bare::{BareSocket, stored_ids, stored_rows};
use crate::support::databases::{Backend, TestDatabase, on_every_database};
use crate::support::direct::{is_long, seed};
use crate::support::jumping::JumpingClient;
use crate::support::line::BadLine;
use crate::support::process::ServerProcess;

on_every_database! {
    what_was_on_its_way_to_a_dying_socket_is_replayed,
    a_jumping_cursor_loses_nothing_whatever_breaks,
    a_jumping_cursor_loses_nothing_when_the_server_is_killed,
    a_replay_has_the_frames_of_live_pushes,
    recalled_messages_are_replayed_as_pulls_show_them,
    what_a_member_did_not_see_is_not_replayed,
}

async fn what_was_on_its_way_to_a_dying_socket_is_replayed(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let line = BadLine::start(&app.base).await;
    let mut client = JumpingClient::new(&bob, &line.base, "&device=web");
    client.connect().await;

    line.lose();
    let mut lost = (Vec::new(), Vec::new());
    for number in 0..3 {
        lost.0.push(id_of(&alice.send(&bob, &format!("lost {number}")).await));
        lost.1.push(id_of(&alice.say(group, &format!("lost {number}")).await));
    }
    client.send(&alice, "the answer moves the cursor").await;
    client.say(group, "here too").await;
    line.break_off();
    client.drop_socket();

    // The hole is real: no pull from these cursors ever shows what was lost.
    assert!(client.private.cursor > lost.0[2] && client.group.cursor > lost.1[2]);
    assert_eq!(bob.pull_from(client.private.cursor, 100).await, Vec::<serde_json::Value>::new());
    assert_eq!(bob.pull_page(client.group.cursor, 100).await, Vec::<serde_json::Value>::new());

    client.connect().await;
    client.wait_for(&lost.0, &lost.1).await.unwrap();
}

/// What everybody does in a random run, and every id that bob may see.
struct Run {
    random: StdRng,
    alice: Person,
    bob: Person,
    group: i64,
    private: Vec<i64>,
    seen_in_group: Vec<i64>,
}

impl Run {
    async fn start(random: StdRng, (alice, bob): (Person, Person)) -> Run {
        let group = alice.create_group(&[&bob]).await;
        let private = bob.pull_all(100).await.iter().map(id_of).collect();
        let seen_in_group = bob.pull_groups(100).await.iter().map(id_of).collect();
        Run { random, alice, bob, group, private, seen_in_group }
    }

    /// Somebody writes something, bob himself too.
    async fn write(&mut self, client: &mut JumpingClient) {
        match self.random.random_range(0..4) {
            0 | 1 => self.private.push(id_of(&self.alice.send(&self.bob, "hello").await)),
            2 => self.seen_in_group.push(id_of(&self.alice.say(self.group, "hello").await)),
            _ => {
                client.send(&self.alice, "mine").await;
                self.private.push(client.private.cursor);
                client.say(self.group, "mine").await;
                self.seen_in_group.push(client.group.cursor);
            }
        }
    }

    /// Alice writes, and then bob: his cursors are above what she wrote.
    async fn write_and_jump(&mut self, client: &mut JumpingClient) {
        for _ in 0..self.random.random_range(1..4) {
            self.private.push(id_of(&self.alice.send(&self.bob, "hello").await));
            self.seen_in_group.push(id_of(&self.alice.say(self.group, "hello").await));
        }
        client.send(&self.alice, "mine").await;
        self.private.push(client.private.cursor);
        client.say(self.group, "mine").await;
        self.seen_in_group.push(client.group.cursor);
    }

    async fn check(&mut self, client: &mut JumpingClient, seed: u64) {
        if let Err(what) = client.wait_for(&self.private, &self.seen_in_group).await {
            panic!("{what}, seed {seed}");
        }
        client.check_sockets(&self.private, &self.seen_in_group).unwrap_or_else(|what| panic!("{what}, seed {seed}"));
    }
}

async fn a_jumping_cursor_loses_nothing_whatever_breaks(backend: Backend) {
    let seed = seed();
    let mut setup = Setup::default();
    // So that some frames are confirmed and some not.
    setup.config.websocket.ping_interval_ms = 1_000;
    let app = TestApp::start_with(backend, setup).await;
    let people = app.friends("alice", "bob").await;
    let line = BadLine::start(&app.base).await;
    let mut client = JumpingClient::new(&people.1, &line.base, "");
    client.connect().await;
    let mut run = Run::start(StdRng::seed_from_u64(seed), people).await;
    for _ in 0..if is_long() { 2_000 } else { 150 } {
        match run.random.random_range(0..10) {
            0..6 => run.write(&mut client).await,
            6 | 7 => client.take_some(run.random.random_range(1..10)).await,
            8 => line.lose(),
            _ => {
                line.break_off();
                client.drop_socket();
                // Some messages find nobody.
                for _ in 0..run.random.random_range(0..4) {
                    run.write(&mut client).await;
                }
                client.connect().await;
            }
        }
    }
    line.break_off();
    client.drop_socket();
    run.check(&mut client, seed).await;
    assert!(client.pushed.len() > 3, "nothing broke, seed {seed}");
}

async fn a_jumping_cursor_loses_nothing_when_the_server_is_killed(backend: Backend) {
    let seed = seed();
    let database = TestDatabase::create(backend, SCHEMA).await;
    let folder = TempDir::new().unwrap();
    let environment = [
        ("DATABASE_URL", database.url.as_str()),
        ("NUDGE_API_KEY", API_KEY),
        ("NUDGE_WORKERS", "1"),
        ("NUDGE_WEBSOCKET__PING_INTERVAL_MS", "1000"),
    ];
    let mut server = ServerProcess::start(folder.path(), &environment).await.unwrap();
    let (http, base) = (http_client(), server.url());
    let alice = Person::create(&http, &base, "alice", "alice").await;
    let bob = Person::create(&http, &base, "bob", "bob").await;
    befriend(&alice, &bob).await;
    let line = BadLine::start(&base).await;
    let mut client = JumpingClient::new(&bob, &line.base, "&device=web");
    client.connect().await;
    let mut run = Run::start(StdRng::seed_from_u64(seed), (alice, bob)).await;
    for _ in 0..if is_long() { 20 } else { 3 } {
        for _ in 0..run.random.random_range(5..20) {
            run.write(&mut client).await;
            client.take_some(2).await;
        }
        line.lose();
        run.write_and_jump(&mut client).await;
        server.kill9();
        line.break_off();
        client.drop_socket();
        server.restart().await.unwrap();
        // The first thing that moves the cursor comes before the socket.
        run.write(&mut client).await;
        client.connect().await;
    }
    run.check(&mut client, seed).await;
    assert_eq!(server.panics(), Vec::<String>::new(), "seed {seed}");
}

async fn a_replay_has_the_frames_of_live_pushes(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let mut live = bob.connect().await;
    BareSocket::open(&bob, &app.base, "&device=web").await;
    alice.send(&bob, "to bob").await;
    bob.send(&alice, "of bob").await;
    alice.say(group, "to all").await;
    bob.ask_receipt(group, "of bob, with a receipt").await;
    let live = [live.next().await, live.next().await, live.next().await, live.next().await];
    let mut replayed = BareSocket::open(&bob, &app.base, "&device=web").await.drain().await;
    assert_eq!(stored_rows(&live).len(), 4);
    // Private messages come first; within a stream nothing moves.
    replayed.sort_by_key(|push| live.iter().position(|other| other == push));
    assert_eq!(replayed, live);
}

async fn recalled_messages_are_replayed_as_pulls_show_them(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    BareSocket::open(&bob, &app.base, "").await;
    let message = id_of(&alice.send(&bob, "a mistake").await);
    let group_message = id_of(&alice.say(group, "another").await);
    alice.delete(&format!("/im/message/private/recall?id={message}")).await;
    alice.try_recall(group_message).await;
    let replayed = stored_rows(&BareSocket::open(&bob, &app.base, "").await.drain().await);
    let about = |row: &serde_json::Value| (id_of(row), row["type"].as_i64().unwrap(), row["status"].as_i64().unwrap());
    let kinds: Vec<_> = replayed.iter().map(about).collect();
    assert_eq!((kinds[0], kinds[2]), ((message, 101, 2), (group_message, 101, 2)));
    assert_eq!((kinds[1].1, kinds[3].1), (2101, 2101));
    assert_eq!((&replayed[0]["content"], &replayed[2]["content"]), (&"{}".into(), &"{}".into()));
    let pulled = bob.pull_from(message - 1, 100).await;
    assert_eq!(&replayed[..2], pulled.as_slice());
}

async fn what_a_member_did_not_see_is_not_replayed(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    BareSocket::open(&bob, &app.base, "").await;
    let before = id_of(&alice.say(group, "before").await);
    alice.kick(group, &bob).await;
    carol.say(group, "between").await;
    alice.send(&carol, "nobody else's").await;
    alice.invite(group, &bob).await;
    let after = id_of(&alice.say(group, "after").await);
    let replayed = stored_ids(&BareSocket::open(&bob, &app.base, "").await.drain().await);
    let pulled: Vec<i64> = bob.pull_page(before - 1, 100).await.iter().map(id_of).collect();
    assert_eq!(replayed, pulled);
    assert!(replayed.contains(&before) && replayed.contains(&after));
}
