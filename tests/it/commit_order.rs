//! Random commands of many people, on two servers where the database allows it, while somebody watches the tables: rows
//! become visible in the order of their ids and stamps (`design.md` I3, I4). `TEST_LONG=1` runs longer, `TEST_SEED`
//! repeats a random run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::support::app::{Person, Setup, TestApp, befriend, id_of, random_id, start_server, text_message};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{is_long, on_own_thread, seed};
use crate::support::stored::{Table, Tables};

on_every_database! {
    rows_become_visible_in_the_order_of_ids_and_stamps,
}

const PEOPLE: usize = 6;
const TABLES: [Table; 4] = [Table::PrivateMessage, Table::Friend, Table::FriendRequest, Table::ConversationRead];

/// What people know of each other's doings.
#[derive(Default)]
struct Shared {
    /// Sender, receiver and id of messages.
    messages: Vec<(usize, usize, i64)>,
    /// To whom a friend request was made, and its id.
    requests: Vec<(usize, i64)>,
}

async fn rows_become_visible_in_the_order_of_ids_and_stamps(backend: Backend) {
    let seed = seed();
    let app = TestApp::start(backend).await;
    let mut bases = vec![app.base.clone()];
    let mut second = None;
    if backend != Backend::Sqlite {
        let server = start_server(&app.database.url, Setup::default()).await;
        bases.push(format!("http://{}", server.address()));
        second = Some(server);
    }
    let mut people = Vec::new();
    for number in 0..PEOPLE {
        people.push(app.user("person").await.on(&bases[number % bases.len()]));
    }
    for number in 0..PEOPLE {
        befriend(&people[number], &people[(number + 1) % PEOPLE]).await;
    }

    let mut tables = Tables::open(&app.database.url).await;
    let before = tables.message_ids().await.len();
    let is_over = Arc::new(AtomicBool::new(false));
    let observer = on_own_thread({
        let is_over = is_over.clone();
        move || watch(tables, is_over)
    });
    let shared = RefCell::new(Shared::default());
    let lives = (0..PEOPLE).map(|me| {
        let rng = StdRng::seed_from_u64(seed.wrapping_add(me as u64));
        live(me, &people, &shared, rng)
    });
    join_all(lives).await;
    is_over.store(true, Ordering::SeqCst);
    let changes = observer.await.unwrap();
    assert!(changes > 10, "the observer saw only {changes} changes: too slow for this test");

    // Nobody repeated a send, so no id was left out: no batch failed, no counter moved without its rows.
    let ids = Tables::open(&app.database.url).await.message_ids().await;
    let new = &ids[before..];
    assert!(new.len() > 20 && new.windows(2).all(|pair| pair[1] == pair[0] + 1), "a gap in {new:?}");
    if let Some(second) = second {
        second.stop().await;
    }
}

/// One person's random doings. What the rules refuse is part of it.
async fn live(me: usize, people: &[Person], shared: &RefCell<Shared>, mut rng: StdRng) {
    let person = &people[me];
    for _ in 0..if is_long() { 1_000 } else { 100 } {
        let peer = (me + rng.random_range(1..PEOPLE)) % PEOPLE;
        match rng.random_range(0..10) {
            0..5 => {
                let body = text_message(people[peer].id, &random_id(), "a text");
                let answer = allowed(person.call("POST", "/im/message/private/send", Some(body)).await);
                if !answer.is_null() {
                    shared.borrow_mut().messages.push((me, peer, id_of(&answer)));
                }
            }
            5..8 => {
                let Some((sender, receiver, id)) = pick(&shared.borrow().messages, &mut rng) else { continue };
                if receiver == me {
                    person.read(&people[sender], id).await;
                }
            }
            8 => {
                let Some((_, _, id)) = pick(&shared.borrow().messages, &mut rng) else { continue };
                allowed(person.call("DELETE", &format!("/im/message/private/recall?id={id}"), None).await);
            }
            _ => {
                let body = json!({"toUserId": people[peer].id});
                let request = allowed(person.call("POST", "/im/friend-request/apply", Some(body)).await);
                if let Some(id) = request.as_i64() {
                    shared.borrow_mut().requests.push((peer, id));
                }
                let Some((to, id)) = pick(&shared.borrow().requests, &mut rng) else { continue };
                allowed(people[to].call("PUT", &format!("/im/friend-request/agree?id={id}"), None).await);
            }
        }
    }
}

fn pick<T: Copy>(things: &[T], rng: &mut StdRng) -> Option<T> {
    if things.is_empty() { None } else { Some(things[rng.random_range(0..things.len())]) }
}

/// The data of an answer, null where a rule says no; anything else that is no success fails the test.
fn allowed(answer: Value) -> Value {
    let code = answer["code"].as_i64().unwrap();
    assert!(code == 0 || code > 1_000_000_000, "{answer}");
    answer["data"].clone()
}

/// Looks at the tables again and again; the number of changes it saw. A row that is new, or has changed, must come
/// after everything that was visible before.
async fn watch(mut tables: Tables, is_over: Arc<AtomicBool>) -> usize {
    let mut changes = 0;
    let mut known: Vec<(HashMap<i64, i64>, i64)> = vec![(HashMap::new(), i64::MIN); TABLES.len()];
    loop {
        let is_last = is_over.load(Ordering::SeqCst);
        for (table, (rows, newest)) in TABLES.into_iter().zip(&mut known) {
            let visible_before = *newest;
            let mut changed = 0;
            for (id, version) in tables.versions(table).await {
                if rows.insert(id, version) != Some(version) {
                    assert!(version > visible_before, "{table:?} {id}: {version} came after {visible_before}");
                    *newest = version.max(*newest);
                    changed = 1;
                }
            }
            changes += changed;
        }
        if is_last {
            return changes;
        }
    }
}
