//! Calls that run beside the test, and what arrives meanwhile.

use actix_web::rt::task::JoinHandle;
use serde_json::Value;

use super::app::{Person, Push, Socket, TestApp, eventually, id_of, text_message};
use super::second_connection::SecondConnection;

/// The answers of calls that were started.
pub async fn answers(calls: Vec<JoinHandle<Value>>) -> Vec<Value> {
    let mut answers = Vec::with_capacity(calls.len());
    for call in calls {
        answers.push(call.await.unwrap());
    }
    answers
}

/// The codes of answers, sorted.
pub fn codes_of(answers: &[Value]) -> Vec<i64> {
    let mut codes: Vec<i64> = answers.iter().map(|answer| answer["code"].as_i64().unwrap()).collect();
    codes.sort_unstable();
    codes
}

impl Person {
    pub fn start_call(&self, method: &'static str, path: &str, body: Option<Value>) -> JoinHandle<Value> {
        let (person, path) = (self.clone(), path.to_owned());
        actix_web::rt::spawn(async move { person.call(method, &path, body).await })
    }

    pub fn start_send(&self, to: &Person, client_message_id: &str, text: &str) -> JoinHandle<Value> {
        let body = text_message(to.id, client_message_id, text);
        self.start_call("POST", "/im/message/private/send", Some(body))
    }
}

impl Socket {
    /// Every notification up to the one of a stored row, which comes last.
    pub async fn until(&mut self, id: i64) -> Vec<Push> {
        let mut pushes = Vec::new();
        loop {
            pushes.push(self.next().await);
            if pushes.last().is_some_and(|push| push.payload["id"] == id && push.payload["clientMessageId"].is_string())
            {
                return pushes;
            }
        }
    }

    /// What was pushed of stored rows: `sender` sends `receiver` one more message, and this socket sees it last.
    pub async fn stored_rows(&mut self, sender: &Person, receiver: &Person) -> Vec<Value> {
        let last = id_of(&sender.send(receiver, "the last one").await);
        let mut rows: Vec<Value> = self.until(last).await.into_iter().map(|push| push.payload).collect();
        rows.pop();
        rows.retain(|row| row["clientMessageId"].is_string());
        rows
    }
}

impl TestApp {
    /// Waits until so many commands wait for the writer or run.
    pub async fn commands_waiting(&self, count: usize) {
        let writer = &self.server.state().writer;
        eventually(&format!("{count} commands wait"), async || writer.waiting() == count).await;
    }

    /// Starts calls while nothing can commit, and lets them go when all of them wait: the first is a batch of its own,
    /// the others are one batch in the order of their arrival. The first must need a lock.
    pub async fn in_one_batch(&self, start: impl AsyncFnOnce() -> Vec<JoinHandle<Value>>) -> Vec<Value> {
        let mut other = SecondConnection::open(&self.database.url).await;
        other.hold_counter("clock").await;
        // For those that lock no more than this one.
        if !matches!(other, SecondConnection::Sqlite(_)) {
            other.lock_counter("private").await;
        }
        let calls = start().await;
        self.commands_waiting(calls.len()).await;
        other.release().await;
        answers(calls).await
    }
}
