//! The window of a pull: the last thirty days, as an id that is computed by a binary search and kept for an hour
//! (`design.md` section 7). History has no window.

use nudge::config::{AuthConfig, Config};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use crate::support::app::{ManualClock, Person, Setup, TestApp, id_of, ids_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{DirectWriter, seed};

on_every_database! {
    messages_older_than_thirty_days_are_in_the_history_only,
    the_window_begins_at_the_right_row_wherever_it_begins,
    a_window_of_a_time_that_was_wrong_is_given_up,
}

const NOON: i64 = 1_800_000_000_000;
const HOUR: i64 = 3_600_000;
const WINDOW: i64 = 30 * 24 * HOUR;

async fn start(backend: Backend, clock: &ManualClock) -> TestApp {
    // Logins that outlive the window.
    let auth = AuthConfig { access_token_ttl_s: 400 * 86_400, ..AuthConfig::default() };
    let config = Config { auth, ..Config::default() };
    TestApp::start_with(backend, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await
}

async fn history(person: &Person, peer: &Person) -> Vec<Value> {
    let page = person.get(&format!("/im/message/private/list?receiverId={}&limit=200", peer.id)).await;
    page.as_array().unwrap().clone()
}

async fn messages_older_than_thirty_days_are_in_the_history_only(backend: Backend) {
    let clock = ManualClock::at(NOON);
    let app = start(backend, &clock).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut sent = Vec::new();
    for number in 0..3 {
        sent.push(alice.send(&bob, &format!("sent {number} ms after noon")).await);
        clock.jump(1);
    }
    clock.jump(-3);
    // Younger than thirty days, not as old.
    clock.jump(WINDOW);
    assert_eq!(bob.pull_all(100).await, sent[1..]);
    assert_eq!(bob.pull_from(id_of(&sent[1]), 100).await, sent[2..]);
    // The start of the window is kept for an hour, and no message of that hour is missing.
    clock.jump(HOUR - 1);
    let new = alice.send(&bob, "a new one").await;
    assert_eq!(bob.pull_all(100).await, [&sent[1..], std::slice::from_ref(&new)].concat());
    clock.jump(1);
    assert_eq!(bob.pull_all(100).await, std::slice::from_ref(&new));
    clock.jump(WINDOW);
    assert_eq!(bob.pull_all(100).await, Vec::<Value>::new());

    let mut expected = ids_of(&sent);
    expected.push(id_of(&new));
    expected.reverse();
    for (person, peer) in [(&alice, &bob), (&bob, &alice)] {
        assert_eq!(ids_of(&history(person, peer).await)[..4], expected);
    }
}

async fn the_window_begins_at_the_right_row_wherever_it_begins(backend: Backend) {
    let mut rng = StdRng::seed_from_u64(seed());
    let clock = ManualClock::at(NOON);
    let app = start(backend, &clock).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut direct = DirectWriter::connect(&app.database.url).await;
    let mut id = id_of(&bob.pull_all(1).await[0]);
    let (mut stored, mut time) = (Vec::new(), NOON);
    // Neighbours and wide gaps in the ids, equal times and hours between them, others' messages among them.
    while stored.len() < 40 {
        id += if rng.random_bool(0.5) { 1 } else { rng.random_range(1..100_000) };
        time += if rng.random_bool(0.3) { 0 } else { rng.random_range(HOUR..2 * HOUR) };
        let is_ours = rng.random_bool(0.8);
        direct.store_at(id, if is_ours { (alice.id, bob.id) } else { (1_000_000, 1_000_001) }, time).await;
        if is_ours {
            stored.push((id, time));
        }
    }
    let mut times: Vec<i64> = stored.iter().map(|(_, time)| *time).collect();
    times.dedup();
    let mut now = NOON;
    for time in times {
        // Each pull comes more than an hour after the last, so that each computes the window anew.
        clock.jump(time + WINDOW - now);
        now = time + WINDOW;
        let expected: Vec<i64> = stored.iter().filter(|(_, sent)| *sent > time).map(|(id, _)| *id).collect();
        assert_eq!(ids_of(&bob.pull_all(1_000).await), expected, "{stored:?} after {time}");
    }
}

async fn a_window_of_a_time_that_was_wrong_is_given_up(backend: Backend) {
    let clock = ManualClock::at(NOON);
    let app = start(backend, &clock).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    alice.send(&bob, "before the clock was wrong").await;
    let all = bob.pull_all(100).await;
    assert_eq!(all.len(), 2);
    clock.jump(2 * WINDOW);
    assert_eq!(bob.pull_all(100).await, Vec::<Value>::new());
    clock.jump(-2 * WINDOW);
    assert_eq!(bob.pull_all(100).await, all);
}
