//! What was acknowledged is there after `kill -9` (`design.md` I10; field test D1). `TEST_LONG=1`: ten rounds a database
//! instead of two.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::app::{
    API_KEY, Person, SCHEMA, befriend, data, eventually, http_client, id_of, random_id, text_message,
};
use crate::support::databases::{Backend, TestDatabase, on_every_database};
use crate::support::process::ServerProcess;

on_every_database! {
    acknowledged_messages_survive_a_kill,
}

const PEOPLE: usize = 10;
const SENDERS_A_PERSON: usize = 5;

/// Sends that ended, by client id: with the id of the acknowledged row, or without an answer.
type Outcomes = Arc<Mutex<HashMap<String, Option<i64>>>>;

async fn acknowledged_messages_survive_a_kill(backend: Backend) {
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let rounds = if std::env::var_os("TEST_LONG").is_some() { 10 } else { 2 };
    let database = TestDatabase::create(backend, SCHEMA).await;
    let folder = TempDir::new().unwrap();
    let environment = [("DATABASE_URL", database.url.as_str()), ("NUDGE_API_KEY", API_KEY)];
    let mut server = ServerProcess::start(folder.path(), &environment).await.unwrap();
    let (http, base) = (http_client(), server.url());
    let receiver = Person::create(&http, &base, "receiver", "receiver").await;
    let mut senders = Vec::new();
    for number in 0..PEOPLE {
        let sender = Person::create(&http, &base, &format!("sender {number}"), "sender").await;
        befriend(&sender, &receiver).await;
        senders.push(sender);
    }

    let mut cursor = receiver.pull_all(1_000).await.last().map_or(0, id_of);
    for round in 0..rounds {
        let outcomes = Outcomes::default();
        let sending = senders.iter().cycle().take(PEOPLE * SENDERS_A_PERSON);
        let sending: Vec<_> = sending
            .map(|sender| actix_web::rt::spawn(send_until_it_fails(sender.clone(), receiver.id, outcomes.clone())))
            .collect();
        let enough = random.random_range(20..400);
        eventually("so many are acknowledged", async || outcomes.lock().unwrap().len() >= enough).await;
        server.kill9();
        join_all(sending).await;
        server.restart().await.unwrap();

        let outcomes = outcomes.lock().unwrap().clone();
        let acknowledged = outcomes.values().flatten().count();
        assert_eq!(outcomes.len() - acknowledged, PEOPLE * SENDERS_A_PERSON, "each sender fails once");
        let rows = by_client_id(&receiver.pull_from(cursor, 1_000).await);
        for (client_id, id) in outcomes.iter().filter_map(|(key, id)| Some((key, (*id)?))) {
            assert_eq!(rows.get(client_id), Some(&id), "round {round}, seed {seed}: an acknowledged message is gone");
        }

        // Every send is repeated, acknowledged or not: it is there once, under the id that was told.
        for (client_id, id) in &outcomes {
            let sender = senders.iter().find(|sender| client_id.starts_with(&format!("{}-", sender.id))).unwrap();
            let row = data(sender.send_as(&receiver, client_id, "hello").await);
            assert!(id.is_none_or(|id| id == id_of(&row)), "round {round}, seed {seed}: {row}");
        }
        let all = receiver.pull_from(cursor, 1_000).await;
        let rows = by_client_id(&all);
        assert_eq!((rows.len(), rows.len()), (all.len(), outcomes.len()), "round {round}, seed {seed}");
        cursor = all.last().map_or(cursor, id_of);
    }
    assert_eq!(server.panics(), Vec::<String>::new());
}

/// One after another, as fast as they are answered.
async fn send_until_it_fails(sender: Person, receiver: i64, outcomes: Outcomes) {
    loop {
        let client_id = format!("{}-{}", sender.id, random_id());
        let body = text_message(receiver, &client_id, "hello");
        let answer = sender.try_call("POST", "/im/message/private/send", Some(body)).await;
        let id = answer.ok().map(|answer| id_of(&data(answer)));
        outcomes.lock().unwrap().insert(client_id, id);
        if id.is_none() {
            return;
        }
    }
}

fn by_client_id(rows: &[Value]) -> HashMap<String, i64> {
    rows.iter().map(|row| (row["clientMessageId"].as_str().unwrap().to_owned(), id_of(row))).collect()
}
