//! A client as the web client is (`contract/02` sections 7 and 9): one cursor for each stream, moved by whatever it sees,
//! pushes and the answers to its own sends included; it pulls from there whenever its socket opens.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::app::{PATIENCE, Person, Push, Socket, data, id_of, random_id, text_message};
use super::bare::stored_rows;
use super::chats::group_text;

/// Rows of a page.
const PAGE: usize = 100;

/// What the client knows of one stream.
#[derive(Default)]
pub struct Stream {
    pub cursor: i64,
    pub rows: BTreeMap<i64, Value>,
}

impl Stream {
    /// A row is merged by id and moves the cursor, whatever brought it.
    fn see(&mut self, row: Value) {
        let id = id_of(&row);
        self.cursor = self.cursor.max(id);
        self.rows.insert(id, row);
    }
}

/// A device of a person. Its own sends do not take the line of its socket.
pub struct JumpingClient {
    person: Person,
    /// Where its socket goes.
    line: Person,
    parameters: String,
    socket: Option<Socket>,
    pub private: Stream,
    pub group: Stream,
    /// The ids that each socket has brought, private and group, in order of arrival.
    pub pushed: Vec<[Vec<i64>; 2]>,
}

impl JumpingClient {
    pub fn new(person: &Person, line: &str, parameters: &str) -> JumpingClient {
        JumpingClient {
            person: person.clone(),
            line: person.on(line),
            parameters: parameters.to_owned(),
            socket: None,
            private: Stream::default(),
            group: Stream::default(),
            pushed: Vec::new(),
        }
    }

    /// Opens a socket and pulls both streams, until an empty page each.
    pub async fn connect(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        // The line may break in the middle of a handshake; a server that starts has no socket yet.
        let socket = loop {
            match self.line.try_connect(&self.parameters).await {
                Ok(socket) => break socket,
                Err(status) => assert!(Instant::now() < deadline, "no socket: {status}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        self.socket = Some(socket);
        self.pushed.push(Default::default());
        self.pull().await;
    }

    async fn pull(&mut self) {
        for (kind, stream) in [("private", &mut self.private), ("group", &mut self.group)] {
            loop {
                let path = format!("/im/message/{kind}/pull?minId={}&size={PAGE}", stream.cursor);
                let page = self.person.get(&path).await;
                let page = page.as_array().unwrap();
                page.iter().for_each(|row| stream.see(row.clone()));
                if page.is_empty() {
                    break;
                }
            }
        }
    }

    /// Sends a text to somebody; the answer moves the cursor.
    pub async fn send(&mut self, to: &Person, text: &str) {
        let body = text_message(to.id, &random_id(), text);
        self.private.see(data(self.person.call("POST", "/im/message/private/send", Some(body)).await));
    }

    /// Sends a text to a group; the answer moves the cursor.
    pub async fn say(&mut self, group: i64, text: &str) {
        let body = group_text(group, &random_id(), text);
        self.group.see(data(self.person.try_say(body).await));
    }

    /// Takes in the next push; false at the end of the socket.
    pub async fn take_push(&mut self) -> bool {
        let Some(socket) = &mut self.socket else { return false };
        match socket.try_next().await {
            Some(push) => {
                self.see_push(&push);
                true
            }
            None => {
                self.socket = None;
                false
            }
        }
    }

    /// Takes in what happens to be there, at most so much.
    pub async fn take_some(&mut self, count: usize) {
        for _ in 0..count {
            if tokio::time::timeout(Duration::from_millis(1), self.take_push()).await != Ok(true) {
                return;
            }
        }
    }

    fn see_push(&mut self, push: &Push) {
        let index = usize::from(push.conversation_type == 2);
        for row in stored_rows(std::slice::from_ref(push)) {
            self.pushed.last_mut().unwrap()[index].push(id_of(&row));
            if index == 0 { self.private.see(row) } else { self.group.see(row) }
        }
    }

    /// The socket is gone, and the client knows it.
    pub fn drop_socket(&mut self) {
        self.socket = None;
    }

    pub fn is_connected(&self) -> bool {
        self.socket.is_some()
    }

    /// Takes in pushes, and reconnects where the socket ends, until it has all of these; an error names what is missing.
    pub async fn wait_for(&mut self, private: &[i64], group: &[i64]) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let missing = |ids: &[i64], stream: &Stream| -> Vec<i64> {
                ids.iter().copied().filter(|id| !stream.rows.contains_key(id)).collect()
            };
            let missing = (missing(private, &self.private), missing(group, &self.group));
            if missing.0.is_empty() && missing.1.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("missing: private {:?}, group {:?}", missing.0, missing.1));
            }
            if !self.is_connected() {
                self.connect().await;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let _ = tokio::time::timeout(left, self.take_push()).await;
        }
    }

    /// Checks what every socket must be: ids rise within each stream, and between the first and the last that it has
    /// brought none is left out of those that the user may see.
    pub fn check_sockets(&self, private: &[i64], group: &[i64]) -> Result<(), String> {
        for (number, socket) in self.pushed.iter().enumerate() {
            for (ids, all) in socket.iter().zip([private, group]) {
                let (Some(first), Some(last)) = (ids.first(), ids.last()) else { continue };
                let expected: Vec<i64> = all.iter().copied().filter(|id| (first..=last).contains(&id)).collect();
                if *ids != expected {
                    return Err(format!("socket {number} brought {ids:?} of {expected:?}"));
                }
            }
        }
        Ok(())
    }
}
