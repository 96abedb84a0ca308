//! Several server processes on one database: whoever pulls from any of them misses nothing (`design.md` I3; field tests
//! A1, A6). Not on SQLite, where a second server is refused. `TEST_LONG=1` runs for a minute.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tempfile::TempDir;

use crate::support::app::{API_KEY, Person, SCHEMA, befriend, http_client, id_of, ids_of};
use crate::support::cursors::MessageCursor;
use crate::support::databases::{Backend, TestDatabase};
use crate::support::direct::is_long;
use crate::support::process::ServerProcess;
use crate::support::stored::Tables;

const SERVERS: usize = 4;
const SENDERS_OF_A_SERVER: usize = 3;
/// What each sender sends at least, however busy the machine.
const MIN_SENT: usize = 40;

mod a_pull_misses_nothing_that_four_servers_write {
    use super::*;

    #[actix_web::test]
    async fn postgres() {
        four_servers_write(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        four_servers_write(Backend::Mysql).await;
    }
}

async fn four_servers_write(backend: Backend) {
    let database = TestDatabase::create(backend, SCHEMA).await;
    let folder = TempDir::new().unwrap();
    let environment = [("DATABASE_URL", &*database.url), ("NUDGE_API_KEY", API_KEY), ("NUDGE_WORKERS", "1")];
    let start = async || ServerProcess::start(folder.path(), &environment).await.unwrap();
    let servers = join_all((0..SERVERS).map(|_| start())).await;
    let urls: Vec<String> = servers.iter().map(ServerProcess::url).collect();
    let http = http_client();
    let bob = Person::create(&http, &urls[0], "bob", "bob").await;
    let mut senders = Vec::new();
    for url in &urls {
        for _ in 0..SENDERS_OF_A_SERVER {
            let number = senders.len();
            let sender = Person::create(&http, url, &format!("sender-{number}"), "sender").await;
            befriend(&sender, &bob).await;
            senders.push(sender);
        }
    }

    let until = Instant::now() + Duration::from_secs(if is_long() { 60 } else { 5 });
    let sends = senders.into_iter().map(|sender| actix_web::rt::spawn(send_until(sender, bob.clone(), until)));
    let sends: Vec<_> = sends.collect();
    // One device on each server, each pulling in a tight loop.
    let mut cursors: Vec<_> = urls.iter().map(|url| MessageCursor::new(&bob.on(url), 100)).collect();
    join_all(cursors.iter_mut().map(async |cursor| {
        while sends.iter().any(|send| !send.is_finished()) {
            cursor.page().await;
        }
    }))
    .await;
    let mut sent = Vec::new();
    for answered in sends {
        sent.extend(answered.await.unwrap());
    }
    let stored = Tables::open(&database.url).await.message_ids_of(bob.id).await;
    assert!(sent.iter().all(|id| stored.binary_search(id).is_ok()), "an acknowledged message is not stored");
    for (cursor, url) in cursors.iter_mut().zip(&urls) {
        cursor.finish().await;
        let pulled = ids_of(&cursor.rows);
        let missed: Vec<_> = stored.iter().filter(|id| pulled.binary_search(id).is_err()).collect();
        assert!(missed.is_empty(), "{url}: missed {} of {}: {missed:?}", missed.len(), stored.len());
    }
    eprintln!("{backend}: {} messages through {SERVERS} servers, 0 missed", stored.len());
}

async fn send_until(from: Person, to: Person, until: Instant) -> Vec<i64> {
    let mut ids = Vec::new();
    while Instant::now() < until || ids.len() < MIN_SENT {
        ids.push(id_of(&from.send(&to, "a text").await));
    }
    ids
}
