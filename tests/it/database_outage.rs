//! The database is stopped or frozen under load: every call ends in time with a stored row or an error, and the server
//! comes back by itself (field test D2).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use nudge::config::Config;
use nudge::server::Server;
use url::Url;

use crate::support::app::{
    Person, SCHEMA, Setup, TestApp, befriend, data, eventually, http_client, id_of, random_id, start_server,
};
use crate::support::database_server::{Action, DatabaseServer};
use crate::support::databases::Backend;
use crate::support::second_connection::SecondConnection;

/// Longest time for one call: to look up the token, and to execute the command; each its deadline and ten seconds.
const LONGEST_CALL: Duration = Duration::from_secs(25);
const SENDERS: usize = 8;

fn setup() -> Setup {
    let mut config = Config::default();
    config.writer.deadline_ms = 1_000;
    config.database.read_deadline_ms = 1_000;
    Setup { config, ..Setup::default() }
}

/// Sends until told to stop. What each send came to, by client id.
async fn send_on(sender: Person, receiver: Person, stop: Arc<AtomicBool>, sent: Arc<Mutex<HashMap<String, i64>>>) {
    while !stop.load(Ordering::SeqCst) {
        let client_id = random_id();
        let call = sender.send_as(&receiver, &client_id, "hello");
        let answer = tokio::time::timeout(LONGEST_CALL, call).await.expect("a send without an outcome");
        match answer["code"].as_i64().unwrap() {
            0 => drop(sent.lock().unwrap().insert(client_id, id_of(&answer["data"]))),
            429 | 503 => {}
            _ => panic!("{answer}"),
        }
    }
}

async fn two_friends_on_their_own_database(backend: Backend) -> (DatabaseServer, Server, [Person; 2]) {
    let database = DatabaseServer::start(backend).await;
    SecondConnection::open(&database.url).await.execute("CREATE DATABASE nudge_outage").await;
    let mut url = Url::parse(&database.url).unwrap();
    url.set_path("nudge_outage");
    (SCHEMA.migrate)(url.as_str()).await.unwrap();
    let server = start_server(url.as_str(), setup()).await;
    let (http, base) = (http_client(), format!("http://{}", server.address()));
    let alice = Person::create(&http, &base, "alice", "alice").await;
    let bob = Person::create(&http, &base, "bob", "bob").await;
    befriend(&alice, &bob).await;
    (database, server, [alice, bob])
}

async fn an_outage_ends_by_itself(backend: Backend, down: Action, up: Action) {
    let (database, server, [alice, bob]) = two_friends_on_their_own_database(backend).await;
    let (http, base) = (http_client(), format!("http://{}", server.address()));
    let before = id_of(&alice.send(&bob, "before").await);

    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<HashMap<String, i64>>>::default());
    let send = || send_on(alice.clone(), bob.clone(), stop.clone(), sent.clone());
    let sending: Vec<_> = (0..SENDERS).map(|_| actix_web::rt::spawn(send())).collect();
    eventually("messages are sent", async || sent.lock().unwrap().len() > 20).await;
    database.control(down).await;
    eventually("the server says that it is not ready", async || !server.state().health.is_ready()).await;
    let path = format!("/im/message/private/pull?minId={before}&size=10");
    let pull = bob.call("GET", &path, None);
    let pull = tokio::time::timeout(LONGEST_CALL, pull).await.expect("a pull without an outcome");
    assert_eq!(pull["code"], 503, "{pull}");
    assert_eq!(http.get(format!("{base}/readyz")).send().await.unwrap().status(), 503);

    database.control(up).await;
    eventually("the server is ready again", async || server.state().health.is_ready()).await;
    let count = sent.lock().unwrap().len();
    eventually("messages are sent again", async || sent.lock().unwrap().len() > count + 20).await;
    stop.store(true, Ordering::SeqCst);
    for sender in join_all(sending).await {
        sender.unwrap();
    }

    // What was acknowledged is there once; of what was not, each at most once.
    let mut rows = HashMap::new();
    for row in bob.pull_from(before, 1_000).await {
        let client_id = row["clientMessageId"].as_str().unwrap().to_owned();
        assert!(rows.insert(client_id, id_of(&row)).is_none(), "twice: {row}");
    }
    for (client_id, id) in sent.lock().unwrap().iter() {
        assert_eq!(rows.get(client_id), Some(id));
    }
}

mod a_stopped_database {
    use super::{Action, Backend};

    #[actix_web::test]
    async fn postgres() {
        super::an_outage_ends_by_itself(Backend::Postgres, Action::Stop, Action::Start).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::an_outage_ends_by_itself(Backend::Mysql, Action::Stop, Action::Start).await;
    }
}

mod a_killed_database {
    use super::{Action, Backend};

    #[actix_web::test]
    async fn postgres() {
        super::an_outage_ends_by_itself(Backend::Postgres, Action::Kill, Action::Start).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::an_outage_ends_by_itself(Backend::Mysql, Action::Kill, Action::Start).await;
    }
}

mod a_frozen_database {
    use super::{Action, Backend};

    #[actix_web::test]
    async fn postgres() {
        super::an_outage_ends_by_itself(Backend::Postgres, Action::Freeze, Action::Thaw).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::an_outage_ends_by_itself(Backend::Mysql, Action::Freeze, Action::Thaw).await;
    }
}

/// Connections that broke while nobody used them cost nobody his call.
async fn a_restart_between_calls_is_not_noticed(backend: Backend) {
    let (database, server, [alice, bob]) = two_friends_on_their_own_database(backend).await;
    for round in 0..2 {
        database.control(Action::Restart).await;
        // Together, so that every reader is used.
        let pulls = join_all((0..4).map(|_| bob.pull_all(100))).await;
        assert!(pulls.iter().all(|rows| rows.len() == 1 + round), "{pulls:?}");
        database.control(Action::Restart).await;
        data(alice.send_as(&bob, &random_id(), "hello").await);
    }
    assert!(server.state().health.is_ready());
}

mod a_restart_between_calls {
    use super::Backend;

    #[actix_web::test]
    async fn postgres() {
        super::a_restart_between_calls_is_not_noticed(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::a_restart_between_calls_is_not_noticed(Backend::Mysql).await;
    }
}

/// SQLite has no server; its like is another program that keeps the write lock for longer than the server waits.
#[actix_web::test]
async fn a_locked_sqlite_database() {
    let app = TestApp::start_with(Backend::Sqlite, setup()).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut other = SecondConnection::open(&app.database.url).await;
    other.hold_counter("private").await;
    let sends: Vec<_> = (0..SENDERS).map(|_| alice.start_send(&bob, &random_id(), "hello")).collect();
    eventually("the server says that it is not ready", async || !app.server.state().health.is_ready()).await;
    for send in sends {
        let answer = tokio::time::timeout(LONGEST_CALL, send).await.expect("a send without an outcome").unwrap();
        assert_eq!(answer["code"], 503, "{answer}");
    }
    other.release().await;
    eventually("the server is ready again", async || app.server.state().health.is_ready()).await;
    data(alice.send_as(&bob, "after", "hello").await);
    let mut tables = SecondConnection::open(&app.database.url).await;
    assert_eq!(tables.count("im_private_message", "type = 101").await, 1);
}
