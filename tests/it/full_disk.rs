//! SQLite's disk is full in the middle of commands (`design.md` section 4, "errors in a batch"). A limit on the size of
//! the server's files stands for the full disk: a write beyond it fails in the same place, and it needs no privilege.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::app::{API_KEY, Person, befriend, data, eventually, http_client, id_of, random_id};
use crate::support::background::answers;
use crate::support::process::ServerProcess;

/// A page of the log that SQLite writes, with its header.
const LOG_PAGE: u64 = 4_096 + 24;

#[actix_web::test]
async fn a_full_disk_loses_and_repeats_nothing() {
    let folder = TempDir::new().unwrap();
    let environment = [("NUDGE_API_KEY", API_KEY), ("NUDGE_WRITER__DEADLINE_MS", "2000")];
    let server = ServerProcess::start_with_file_limits(folder.path(), &environment).await.unwrap();
    let http = http_client();
    let base = server.url();
    let alice = Person::create(&http, &base, "alice", "alice").await;
    let bob = Person::create(&http, &base, "bob", "bob").await;
    befriend(&alice, &bob).await;
    let mut socket = bob.connect().await;
    let mut cursor = id_of(&alice.send(&bob, "the first one").await);
    socket.until(cursor).await;
    let log = folder.path().join("nudge.db-wal");

    // No room at all, room for a part of the commands one by one, room for a part of a batch.
    for pages in [0, 8, 16] {
        let failures = failed_commits(&server);
        server.limit_file_size(Some(std::fs::metadata(&log).unwrap().len() + pages * LOG_PAGE));
        let sends: Vec<_> = (0..20)
            .map(|number| (random_id(), format!("{number} {}", "x".repeat(3_000))))
            .map(|(id, text)| (id.clone(), text.clone(), alice.start_send(&bob, &id, &text)))
            .collect();
        eventually("the disk is full", async || {
            let is_over = sends.iter().all(|(_, _, call)| call.is_finished());
            failed_commits(&server) > failures && (is_over || !is_ready(&http, &base).await)
        })
        .await;
        server.limit_file_size(None);
        eventually("the server works again", async || is_ready(&http, &base).await).await;

        // Repeating is what a client does with an error; before it, nothing is said about what was not stored.
        let mut stored = Vec::new();
        for (id, text, call) in sends {
            let mut answer = answers(vec![call]).await.remove(0);
            if answer["code"] != 0 {
                assert_eq!(answer["code"], 503, "{answer}");
                answer = alice.send_as(&bob, &id, &text).await;
            }
            stored.push(data(answer));
        }
        stored.sort_by_key(id_of);
        let pushed = socket.stored_rows(&alice, &bob).await;
        assert_eq!(pushed, stored, "{pages} pages");
        let mut pulled: Vec<Value> = bob.pull_from(cursor, 100).await;
        cursor = id_of(&pulled.pop().unwrap());
        assert_eq!(pulled, stored, "{pages} pages");
    }
}

/// SQLite writes when it commits, so that is where a full disk is met.
fn failed_commits(server: &ServerProcess) -> usize {
    server.log().iter().filter(|line| line.contains("the answer to a commit is missing")).count()
}

async fn is_ready(http: &reqwest::Client, base: &str) -> bool {
    http.get(format!("{base}/readyz")).send().await.is_ok_and(|answer| answer.status() == 200)
}
