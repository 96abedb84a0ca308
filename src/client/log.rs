//! The messages of one table as this device knows them: merged by id, with their recalls, and how far they were pulled.
//!
//! They come from pulls, pushes and the answers to sends, in any order and more than once. A message is one message by
//! its id; the same (sender, client id) under a second id would be a fault of the server and is counted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::cursors::MessageCursor;
use super::types::{GroupMessage, PrivateMessage, STATUS_RECALLED};
use crate::domain::ids::{MessageId, UserId};

/// A row of a message table.
pub(super) trait Row: Clone {
    fn id(&self) -> i64;
    fn key(&self) -> Option<(UserId, String)>;
    fn recalled(&self) -> Option<MessageId>;
    /// Status and content.
    fn parts(&mut self) -> (&mut i32, &mut String);
    fn is_recalled(&self) -> bool;
}

macro_rules! row {
    ($type:ty) => {
        impl Row for $type {
            fn id(&self) -> i64 {
                self.id.0
            }

            fn key(&self) -> Option<(UserId, String)> {
                self.client_message_id.clone().map(|client_id| (self.sender_id, client_id))
            }

            fn recalled(&self) -> Option<MessageId> {
                self.recalled_message()
            }

            fn parts(&mut self) -> (&mut i32, &mut String) {
                (&mut self.status, &mut self.content)
            }

            fn is_recalled(&self) -> bool {
                self.status == STATUS_RECALLED
            }
        }
    };
}

row!(PrivateMessage);
row!(GroupMessage);

#[derive(Debug)]
pub(super) struct MessageLog<R> {
    messages: BTreeMap<i64, Arc<R>>,
    ids_by_client_id: HashMap<(UserId, String), i64>,
    /// Recalled messages that are not here (yet).
    recalled: HashSet<i64>,
    /// Messages kept; older pulled ones are forgotten. 0: none, and each is new whenever it comes.
    capacity: usize,
    /// Everything up to this id has been seen, and may have been forgotten.
    forgotten_to: i64,
    duplicates: u64,
    cursor: MessageCursor,
}

impl<R: Row> MessageLog<R> {
    pub fn new(capacity: usize) -> MessageLog<R> {
        MessageLog {
            messages: BTreeMap::new(),
            ids_by_client_id: HashMap::new(),
            recalled: HashSet::new(),
            capacity,
            forgotten_to: 0,
            duplicates: 0,
            cursor: MessageCursor::default(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<R>> {
        self.messages.values()
    }

    pub fn get(&self, id: MessageId) -> Option<&Arc<R>> {
        self.messages.get(&id.0)
    }

    pub fn find_by_client_id(&self, sender: UserId, client_message_id: &str) -> Option<&Arc<R>> {
        let id = self.ids_by_client_id.get(&(sender, client_message_id.to_owned()))?;
        self.messages.get(id)
    }

    pub fn cursor(&self) -> i64 {
        self.cursor.position()
    }

    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Takes in one message that was pushed or that answers a send. The cursor stays. Whether it was new.
    pub fn merge(&mut self, message: R) -> bool {
        let is_new = self.insert(message).is_some();
        self.forget_old();
        is_new
    }

    /// Takes in a pulled page and moves the cursor over it, in one step. The new ones of its messages, and whether the
    /// cursor moved.
    pub fn merge_page(&mut self, page: Vec<R>) -> (Vec<Arc<R>>, bool) {
        let mut has_moved = false;
        let mut new = Vec::new();
        for message in page {
            let id = message.id();
            new.extend(self.insert(message));
            has_moved |= self.cursor.advance(id);
        }
        self.forget_old();
        (new, has_moved)
    }

    /// Whether it is only a cursor.
    pub fn keeps_nothing(&self) -> bool {
        self.capacity == 0
    }

    /// Stores a message and what it means for others. Returns it if it was not known.
    fn insert(&mut self, mut message: R) -> Option<Arc<R>> {
        let id = message.id();
        if self.keeps_nothing() {
            return Some(Arc::new(message));
        }
        if let Some(recalled) = message.recalled() {
            self.mark_recalled(recalled.0);
        }
        let known = self.messages.get(&id);
        if known.is_none() && id <= self.forgotten_to {
            return None;
        }
        // A copy made before the recall can come after it.
        if self.recalled.remove(&id) || known.is_some_and(|known| known.is_recalled()) {
            recall(&mut message);
        }
        let is_new = known.is_none();
        if is_new && let Some(key) = message.key() {
            let other = self.ids_by_client_id.insert(key, id);
            self.duplicates += u64::from(other.is_some_and(|other| other != id));
        }
        let message = Arc::new(message);
        self.messages.insert(id, message.clone());
        is_new.then_some(message)
    }

    fn mark_recalled(&mut self, id: i64) {
        match self.messages.get_mut(&id) {
            Some(message) => recall(Arc::make_mut(message)),
            None if id > self.forgotten_to => drop(self.recalled.insert(id)),
            None => {}
        }
    }

    /// Forgets the oldest messages over the capacity, but only pulled ones: of all others it is not yet known whether
    /// the rows before them have been seen.
    fn forget_old(&mut self) {
        while self.messages.len() > self.capacity {
            let Some(oldest) = self.messages.first_entry().filter(|entry| *entry.key() <= self.cursor.position())
            else {
                return;
            };
            let (id, message) = oldest.remove_entry();
            self.forgotten_to = self.forgotten_to.max(id);
            if let Some(key) = message.key() {
                self.ids_by_client_id.remove(&key);
            }
        }
    }
}

/// Recalled messages lose their text, also where it was here before.
fn recall(message: &mut impl Row) {
    let (status, content) = message.parts();
    *status = STATUS_RECALLED;
    "{}".clone_into(content);
}
