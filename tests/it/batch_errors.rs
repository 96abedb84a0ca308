//! The database ends a batch in its middle: a deadlock with somebody else's transaction (`design.md` section 4, "errors
//! in a batch"). SQLite knows no deadlocks.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::app::{TestApp, data, eventually, id_of, random_id};
use crate::support::background::answers;
use crate::support::databases::Backend;
use crate::support::second_connection::SecondConnection;

/// Somebody's open transaction that the database prefers to ours when one of both must end.
async fn preferred_transaction(url: &str, backend: Backend) -> SecondConnection {
    let mut other = SecondConnection::open(url).await;
    if backend == Backend::Postgres {
        // Whoever looks for deadlocks first ends himself.
        other.execute("SET deadlock_timeout = '60s'; START TRANSACTION").await;
        return other;
    }
    // The lighter one ends: this one has written more.
    other.execute("CREATE TABLE weight (id BIGINT PRIMARY KEY) ENGINE = InnoDB; START TRANSACTION").await;
    let rows: Vec<String> = (0..2_000).map(|number| format!("({number})")).collect();
    other.execute(&format!("INSERT INTO weight VALUES {}", rows.join(", "))).await;
    other
}

/// Waits until a connection of this database waits for a row.
async fn somebody_waits_for_a_row(url: &str, backend: Backend) {
    let mut observer = SecondConnection::open(url).await;
    let condition = match backend {
        Backend::Postgres => {
            "SELECT COUNT(*) AS number FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'"
        }
        _ => {
            "SELECT COUNT(*) AS number FROM information_schema.innodb_trx \
             JOIN information_schema.processlist ON trx_mysql_thread_id = id \
             WHERE db = DATABASE() AND trx_state = 'LOCK WAIT'"
        }
    };
    eventually("somebody waits for a row", async || {
        // MariaDB shows the same picture again to whoever looks within a tenth of a second.
        tokio::time::sleep(Duration::from_millis(150)).await;
        observer.number(condition).await > 0
    })
    .await;
}

async fn a_deadlock_within_a_batch_harms_no_command(backend: Backend) {
    let app = TestApp::start(backend).await;
    let url = &app.database.url;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    let request = carol.post("/im/friend-request/apply", json!({"toUserId": bob.id})).await;
    let mut socket = bob.connect().await;
    let first = id_of(&alice.send(&bob, "the first one").await);
    socket.until(first).await;

    // All of them in one batch: it takes the counters, writes messages, and then needs the row of the request.
    let mut rival = preferred_transaction(url, backend).await;
    rival.execute(&format!("UPDATE im_friend_request SET add_source = 2 WHERE id = {request}")).await;
    let mut gate = SecondConnection::open(url).await;
    gate.hold_counter("clock").await;
    gate.lock_counter("private").await;
    let mut calls = vec![alice.start_send(&bob, &random_id(), "a batch of its own")];
    app.commands_waiting(1).await;
    calls.extend((0..5).map(|_| alice.start_send(&bob, &random_id(), "before")));
    app.commands_waiting(6).await;
    calls.push(bob.start_call("PUT", &format!("/im/friend-request/agree?id={request}"), None));
    app.commands_waiting(7).await;
    calls.extend((0..5).map(|_| alice.start_send(&bob, &random_id(), "after")));
    app.commands_waiting(12).await;
    gate.release().await;
    let alone = data(calls.remove(0).await.unwrap());
    somebody_waits_for_a_row(url, backend).await;
    // The rival gets the counter while it keeps the row: the database has ended the batch.
    rival.lock_counter("clock").await;
    assert!(calls.iter().all(|call| !call.is_finished()));
    rival.release().await;

    let mut rows: Vec<Value> = answers(calls).await.into_iter().map(data).filter(Value::is_object).collect();
    rows.push(alone);
    rows.sort_by_key(id_of);
    assert_eq!(rows.len(), 11);
    let is_line = |row: &Value| row["type"] == 1204;
    let mut pushed = socket.stored_rows(&alice, &bob).await;
    assert_eq!(pushed.iter().filter(|row| is_line(row)).count(), 1);
    pushed.retain(|row| !is_line(row));
    assert_eq!(pushed, rows);
    let mut stored = bob.pull_from(first, 100).await;
    stored.pop();
    assert_eq!(stored.iter().filter(|row| is_line(row)).count(), 1);
    stored.retain(|row| !is_line(row));
    assert_eq!(stored, rows);
}

mod a_deadlock_within_a_batch {
    use super::Backend;

    #[actix_web::test]
    async fn postgres() {
        super::a_deadlock_within_a_batch_harms_no_command(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        super::a_deadlock_within_a_batch_harms_no_command(Backend::Mysql).await;
    }
}
