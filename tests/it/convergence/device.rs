//! A device that keeps the client rules (`design.md` section 7): a push is a hint and never moves a cursor, state
//! cursors go back five seconds before a scan and only forward afterwards, rows are merged by id. It ignores some of its
//! pushes, as if they had been lost (A10), and pulls by the single pulls or by `POST /im/sync`.

use std::collections::BTreeMap;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::support::app::{Person, Push, Socket, id_of};

use super::model::RECALL;
use super::views::stored;

/// What a client goes back before it scans states, milliseconds.
const OVERLAP: i64 = 5_000;
/// Pushes that are lost.
const LOST: f64 = 0.3;
/// The pulled states: path of the pull, and name in `sync`.
const STATES: [(&str, &str); 4] = [
    ("friend", "friend"),
    ("friend-request", "friendRequest"),
    ("group-request", "groupRequest"),
    ("conversation-read", "read"),
];

/// A stream of messages.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    pub rows: BTreeMap<i64, Value>,
    pub cursor: i64,
}

/// A stream of states.
#[derive(Clone, Debug, Default)]
pub struct States {
    pub rows: BTreeMap<i64, Value>,
    cursor: Option<(i64, i64)>,
}

pub struct Device {
    pub person: Person,
    uses_sync: bool,
    page: usize,
    pub socket: Option<Socket>,
    /// Private and group messages.
    pub messages: [Messages; 2],
    /// Friends, friend requests, join requests, read positions.
    pub states: [States; 4],
    pub groups: Vec<Value>,
    group_list_time: i64,
}

impl Device {
    pub fn new(person: &Person, uses_sync: bool, page: usize) -> Device {
        Device {
            person: person.clone(),
            uses_sync,
            page,
            socket: None,
            messages: Default::default(),
            states: Default::default(),
            groups: Vec::new(),
            group_list_time: 0,
        }
    }

    pub fn name(&self) -> String {
        let pulls = if self.uses_sync { "sync" } else { "single pulls" };
        format!("a device of {} ({pulls} of {})", self.person.id, self.page)
    }

    /// Takes in what was pushed so far, but for what is lost. The ids of the stored rows that came, lost ones too:
    /// private ones, then those of groups.
    pub async fn look_at_pushes(&mut self, rng: &mut StdRng) -> [Vec<i64>; 2] {
        let mut came: [Vec<i64>; 2] = Default::default();
        let Some(socket) = &mut self.socket else { return came };
        for push in socket.drain().await {
            let Some(stream) = stream_of(&push) else { continue };
            came[stream].push(id_of(&push.payload));
            if rng.random_bool(1.0 - LOST) {
                // What is here already may be newer than what was pushed before.
                self.messages[stream].rows.entry(id_of(&push.payload)).or_insert_with(|| stored(&push.payload));
            }
        }
        came
    }

    /// Pulls once, to the end of everything.
    pub async fn pull(&mut self) {
        let starts = self.states.each_ref().map(|states| states.cursor.map(|(time, _)| ((time - OVERLAP).max(0), 0)));
        if self.uses_sync {
            self.sync(starts).await;
        } else {
            self.pull_singly(starts).await;
        }
        self.settle();
    }

    async fn pull_singly(&mut self, starts: [Option<(i64, i64)>; 4]) {
        for (table, messages) in ["private", "group"].into_iter().zip(&mut self.messages) {
            loop {
                let path = format!("/im/message/{table}/pull?minId={}&size={}", messages.cursor, self.page);
                let page = self.person.get(&path).await;
                if messages.merge(&page) < self.page {
                    break;
                }
            }
        }
        for (((path, _), states), mut start) in STATES.into_iter().zip(&mut self.states).zip(starts) {
            loop {
                let after = start.map_or(String::new(), |(time, id)| format!("&lastUpdateTime={time}&lastId={id}"));
                let page = self.person.get(&format!("/im/{path}/pull?limit={}{after}", self.page)).await;
                let (count, end) = states.merge(&page);
                if count < self.page {
                    break;
                }
                start = end;
            }
        }
        self.groups = list(&self.person.get("/im/group/list").await);
    }

    async fn sync(&mut self, mut starts: [Option<(i64, i64)>; 4]) {
        loop {
            let [private, group] = self.messages.each_ref().map(|messages| messages.cursor);
            let mut body = json!({"privateMinId": private, "groupMinId": group, "size": self.page,
                "groupListTime": self.group_list_time});
            for ((_, name), start) in STATES.into_iter().zip(starts) {
                if let Some((time, id)) = start {
                    body[name] = json!({"lastUpdateTime": time, "lastId": id});
                }
            }
            let news = self.person.post("/im/sync", body).await;
            let mut has_more = false;
            for (name, messages) in ["private", "group"].into_iter().zip(&mut self.messages) {
                messages.merge(&news[name]["list"]);
                assert_eq!(news[name]["minId"], messages.cursor, "{name}");
                assert_eq!(news[name]["truncated"], false, "{name}");
                has_more |= news[name]["more"] == true;
            }
            for (((_, name), states), start) in STATES.into_iter().zip(&mut self.states).zip(&mut starts) {
                states.merge(&news[name]["list"]);
                *start = news[name]["lastUpdateTime"].as_i64().zip(news[name]["lastId"].as_i64());
                has_more |= news[name]["more"] == true;
            }
            if let Some(time) = news["groupList"]["time"].as_i64() {
                self.groups = list(&news["groupList"]["list"]);
                self.group_list_time = time;
            }
            if !has_more {
                return;
            }
        }
    }

    /// A RECALL row takes the text away from what it names, in whatever order the two came.
    fn settle(&mut self) {
        for messages in &mut self.messages {
            let recalls = messages.rows.values().filter(|row| row["type"] == RECALL);
            let recalled: Vec<i64> = recalls.filter_map(|row| row["content"]["messageId"].as_i64()).collect();
            for id in recalled {
                if let Some(row) = messages.rows.get_mut(&id) {
                    row["status"] = json!(2);
                    row["content"] = json!({});
                }
            }
        }
    }
}

impl Messages {
    /// Takes in a page and moves the cursor over it; its number of rows.
    fn merge(&mut self, page: &Value) -> usize {
        for row in list(page) {
            let id = id_of(&row);
            assert!(id > self.cursor, "{row} after {}", self.cursor);
            self.cursor = id;
            self.rows.insert(id, stored(&row));
        }
        list(page).len()
    }
}

impl States {
    /// Takes in a page and moves the cursor forward; its number of rows, and the place of the last one.
    fn merge(&mut self, page: &Value) -> (usize, Option<(i64, i64)>) {
        let mut end = None;
        for row in list(page) {
            let place = (row["updateTime"].as_i64().unwrap(), id_of(&row));
            assert!(Some(place) > end, "{row} after {end:?}");
            end = Some(place);
            self.cursor = self.cursor.max(end);
            self.rows.insert(id_of(&row), row);
        }
        (list(page).len(), end)
    }
}

fn list(answer: &Value) -> Vec<Value> {
    answer.as_array().unwrap_or_else(|| panic!("no list: {answer}")).clone()
}

/// 0: a row of the private table; 1: one of the group table.
fn stream_of(push: &Push) -> Option<usize> {
    let is_stored = push.payload["id"].is_i64() && ![2200, 2201].contains(&push.content_type);
    match push.conversation_type {
        1 if is_stored => Some(0),
        2 if is_stored => Some(1),
        _ => None,
    }
}
