//! What this device knows: messages merged by id, read positions and pull cursors. In memory, no I/O.
//!
//! Messages come from pulls, pushes and the answers to sends, in any order and more than once. A message is one
//! message by its id; the same (sender, client id) under a second id would be a fault of the server and is counted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::cursors::{MessageCursor, StateCursor};
use super::push::Push;
use super::types::{ConversationRead, PrivateMessage, STATUS_RECALLED};
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{MessageId, UserId};

/// The local state of one device.
#[derive(Debug)]
pub struct Store {
    messages: BTreeMap<i64, Arc<PrivateMessage>>,
    ids_by_client_id: HashMap<(UserId, String), i64>,
    /// Recalled messages that are not here (yet).
    recalled: HashSet<i64>,
    /// Messages kept; older pulled ones are forgotten.
    capacity: usize,
    /// Everything up to this id has been seen, and may have been forgotten.
    forgotten_to: i64,
    duplicates: u64,
    private_cursor: MessageCursor,
    read_cursor: StateCursor,
    reads: HashMap<(i32, i64), MessageId>,
    peer_reads: HashMap<UserId, Option<MessageId>>,
    connection: u64,
}

impl Store {
    /// An empty store that keeps about `capacity` private messages.
    pub fn new(capacity: usize) -> Store {
        Store {
            messages: BTreeMap::new(),
            ids_by_client_id: HashMap::new(),
            recalled: HashSet::new(),
            capacity,
            forgotten_to: 0,
            duplicates: 0,
            private_cursor: MessageCursor::default(),
            read_cursor: StateCursor::default(),
            reads: HashMap::new(),
            peer_reads: HashMap::new(),
            connection: 0,
        }
    }

    /// The private messages known, by rising id, recalled ones and RECALL rows included.
    pub fn private_messages(&self) -> impl Iterator<Item = &Arc<PrivateMessage>> {
        self.messages.values()
    }

    /// One private message.
    pub fn private_message(&self, id: MessageId) -> Option<&Arc<PrivateMessage>> {
        self.messages.get(&id.0)
    }

    /// The message that this sender sent under this client id.
    pub fn find_by_client_id(&self, sender: UserId, client_message_id: &str) -> Option<&Arc<PrivateMessage>> {
        let id = self.ids_by_client_id.get(&(sender, client_message_id.to_owned()))?;
        self.messages.get(id)
    }

    /// Everything up to this id has been pulled.
    pub fn private_cursor(&self) -> i64 {
        self.private_cursor.position()
    }

    /// How often one (sender, client id) came under a second message id: 0, or the server is broken.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// How far I have read.
    pub fn read_position(&self, conversation: ConversationType, target: i64) -> Option<MessageId> {
        self.reads.get(&(conversation.number(), target)).copied()
    }

    /// How far `peer` has read, where it was fetched or told since the last (re)connect; `Some(None)`: nothing yet.
    pub fn peer_read(&self, peer: UserId) -> Option<Option<MessageId>> {
        self.peer_reads.get(&peer).copied()
    }

    /// Takes in one message that was pushed or that answers a send. The cursor stays. Whether it was new.
    pub fn merge_private(&mut self, message: PrivateMessage) -> bool {
        let is_new = self.insert(message).is_some();
        self.forget_old();
        is_new
    }

    /// Takes in a pulled page and moves the cursor over it, in one step. The new ones of its messages, and whether
    /// the cursor moved.
    pub fn merge_private_page(&mut self, page: Vec<PrivateMessage>) -> (Vec<Arc<PrivateMessage>>, bool) {
        let mut has_moved = false;
        let mut new = Vec::new();
        for message in page {
            let id = message.id.0;
            new.extend(self.insert(message));
            has_moved |= self.private_cursor.advance(id);
        }
        self.forget_old();
        (new, has_moved)
    }

    /// Takes in a push. Whether it told something new.
    pub fn merge_push(&mut self, push: &Push) -> bool {
        match push {
            Push::PrivateMessage(row) | Push::Recall { row, .. } => self.merge_private(row.clone()),
            Push::Read { conversation_type, payload } => {
                let target =
                    payload.receiver_id.map(|id| id.0).or(payload.group_id.map(|id| id.0)).or(payload.channel_id);
                target.is_some_and(|target| self.raise_read(*conversation_type, target, payload.id))
            }
            Push::Receipt { conversation_type, payload } => match payload.sender_id {
                Some(peer) if *conversation_type == ConversationType::Private.number() => {
                    raise(self.peer_reads.entry(peer).or_default(), payload.id)
                }
                _ => true,
            },
            Push::Typing(_) | Push::Other { .. } => true,
        }
    }

    /// Where the next scan of read positions begins.
    pub(super) fn read_scan_start(&self) -> Option<(i64, i64)> {
        self.read_cursor.scan_start()
    }

    /// Takes in a pulled page of read positions.
    pub fn merge_read_page(&mut self, page: &[ConversationRead]) {
        for row in page {
            self.raise_read(row.conversation_type, row.target_id, row.message_id);
            self.read_cursor.advance(row.update_time, row.id);
        }
    }

    /// Raises my own position after a report of mine. Whether it rose.
    pub fn raise_read(&mut self, conversation_type: i32, target: i64, message: MessageId) -> bool {
        let mut position = self.reads.get(&(conversation_type, target)).copied();
        let has_risen = raise(&mut position, message);
        self.reads.extend(position.map(|position| ((conversation_type, target), position)));
        has_risen
    }

    /// A new connection: receipts may have been missed, so peers' positions are fetched again when they are needed.
    pub(super) fn start_connection(&mut self) {
        self.connection += 1;
        self.peer_reads.clear();
    }

    /// Which connection this is; an answer asked for during an earlier one is not kept.
    pub(super) fn connection(&self) -> u64 {
        self.connection
    }

    /// Takes in a fetched position of a peer. Returns the position as it is now known: a receipt may have been faster.
    pub(super) fn merge_peer_read(
        &mut self,
        peer: UserId,
        fetched: Option<MessageId>,
        connection: u64,
    ) -> Option<MessageId> {
        if connection != self.connection {
            return fetched;
        }
        let known = self.peer_reads.entry(peer).or_default();
        *known = (*known).max(fetched);
        *known
    }

    /// Stores a message and what it means for others. Returns it if it was not known.
    fn insert(&mut self, mut message: PrivateMessage) -> Option<Arc<PrivateMessage>> {
        let id = message.id.0;
        if let Some(recalled) = message.recalled_message() {
            self.mark_recalled(recalled.0);
        }
        let known = self.messages.get(&id);
        if known.is_none() && id <= self.forgotten_to {
            return None;
        }
        // A copy made before the recall can come after it.
        if self.recalled.remove(&id) || known.is_some_and(|known| known.status == STATUS_RECALLED) {
            recall(&mut message);
        }
        let is_new = known.is_none();
        if is_new && let Some(client_id) = &message.client_message_id {
            let other = self.ids_by_client_id.insert((message.sender_id, client_id.clone()), id);
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
            let Some(oldest) =
                self.messages.first_entry().filter(|entry| *entry.key() <= self.private_cursor.position())
            else {
                return;
            };
            let (id, message) = oldest.remove_entry();
            self.forgotten_to = self.forgotten_to.max(id);
            if let Some(client_id) = &message.client_message_id {
                self.ids_by_client_id.remove(&(message.sender_id, client_id.clone()));
            }
        }
    }
}

/// Recalled messages lose their text, also where it was here before.
fn recall(message: &mut PrivateMessage) {
    message.status = STATUS_RECALLED;
    "{}".clone_into(&mut message.content);
}

/// Raises a read position, which never falls. Whether it rose.
fn raise(position: &mut Option<MessageId>, message: MessageId) -> bool {
    let has_risen = Some(message) > *position;
    *position = (*position).max(Some(message));
    has_risen
}

#[cfg(test)]
mod tests;
