//! What this device knows: messages, read positions, members of groups, and pull cursors. In memory, no I/O.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::cursors::StateCursor;
use super::log::MessageLog;
use super::push::Push;
use super::sync::{Pulled, StatePage, SyncAnswer, SyncRequest};
use super::types::{ConversationRead, GroupMessage, PrivateMessage};
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{GroupId, MessageId, UserId};

/// Rows of a state table as they came, by id, and how far they were pulled.
#[derive(Debug, Default)]
struct StateRows {
    rows: BTreeMap<i64, Value>,
    cursor: StateCursor,
}

impl StateRows {
    /// With `keep` unset only the cursor moves.
    fn merge(&mut self, page: StatePage<Value>, keep: bool) {
        let number = |row: &Value, key: &str| row.get(key).and_then(Value::as_i64);
        for row in page.list {
            if let (Some(id), Some(time)) = (number(&row, "id"), number(&row, "updateTime")) {
                self.cursor.advance(time, id);
                if keep {
                    self.rows.insert(id, row);
                }
            }
        }
    }
}

/// The local state of one device.
#[derive(Debug)]
pub struct Store {
    private: MessageLog<PrivateMessage>,
    group: MessageLog<GroupMessage>,
    friends: StateRows,
    friend_requests: StateRows,
    group_requests: StateRows,
    groups: Vec<Value>,
    group_list_time: i64,
    read_cursor: StateCursor,
    reads: HashMap<(i32, i64), MessageId>,
    peer_reads: HashMap<UserId, Option<MessageId>>,
    /// Only those that nothing has changed since they were fetched.
    members: HashMap<GroupId, Arc<[UserId]>>,
    /// Rises with every event of a group and every connection: a list asked for before is not kept.
    member_events: u64,
    connection: u64,
}

impl Store {
    /// An empty store that keeps about `capacity` messages of each table.
    pub fn new(capacity: usize) -> Store {
        Store {
            private: MessageLog::new(capacity),
            group: MessageLog::new(capacity),
            friends: StateRows::default(),
            friend_requests: StateRows::default(),
            group_requests: StateRows::default(),
            groups: Vec::new(),
            group_list_time: 0,
            read_cursor: StateCursor::default(),
            reads: HashMap::new(),
            peer_reads: HashMap::new(),
            members: HashMap::new(),
            member_events: 0,
            connection: 0,
        }
    }

    /// The private messages known, by rising id, recalled ones and RECALL rows included.
    pub fn private_messages(&self) -> impl Iterator<Item = &Arc<PrivateMessage>> {
        self.private.iter()
    }

    /// The group messages known, by rising id, recalled ones, RECALL rows and events included.
    pub fn group_messages(&self) -> impl Iterator<Item = &Arc<GroupMessage>> {
        self.group.iter()
    }

    /// One private message.
    pub fn private_message(&self, id: MessageId) -> Option<&Arc<PrivateMessage>> {
        self.private.get(id)
    }

    /// The private message that this sender sent under this client id.
    pub fn find_by_client_id(&self, sender: UserId, client_message_id: &str) -> Option<&Arc<PrivateMessage>> {
        self.private.find_by_client_id(sender, client_message_id)
    }

    /// Every private message up to this id has been pulled.
    pub fn private_cursor(&self) -> i64 {
        self.private.cursor()
    }

    /// How often one (sender, client id) came under a second message id: 0, or the server is broken.
    pub fn duplicates(&self) -> u64 {
        self.private.duplicates() + self.group.duplicates()
    }

    /// My friends, former ones too, as the server tells them.
    pub fn friends(&self) -> impl Iterator<Item = &Value> {
        self.friends.rows.values()
    }

    /// My groups, left ones too, as the server tells them.
    pub fn groups(&self) -> &[Value] {
        &self.groups
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
        self.private.merge(message)
    }

    /// [`Store::merge_private`] of a group message; an event makes the list of members stale.
    pub fn merge_group(&mut self, message: GroupMessage) -> bool {
        self.notice_event(&message);
        self.group.merge(message)
    }

    /// The request for everything new: state cursors go back a few seconds.
    pub(super) fn sync_request(&self, size: usize) -> SyncRequest {
        SyncRequest {
            private_min_id: self.private.cursor(),
            group_min_id: self.group.cursor(),
            friend: self.friends.cursor.scan_start().map(Into::into),
            friend_request: self.friend_requests.cursor.scan_start().map(Into::into),
            group_request: self.group_requests.cursor.scan_start().map(Into::into),
            read: self.read_cursor.scan_start().map(Into::into),
            group_list_time: self.group_list_time,
            size,
        }
    }

    /// Takes in an answer and moves the cursors over it, in one step. What of its messages was not known.
    pub(super) fn merge_answer(&mut self, answer: SyncAnswer) -> Pulled {
        for message in &answer.group.list {
            self.notice_event(message);
        }
        let keep = !self.private.keeps_nothing();
        self.friends.merge(answer.friend, keep);
        self.friend_requests.merge(answer.friend_request, keep);
        self.group_requests.merge(answer.group_request, keep);
        self.merge_read_page(&answer.read.list);
        if let Some(groups) = answer.group_list {
            self.groups = if keep { groups.list } else { Vec::new() };
            self.group_list_time = groups.time;
        }
        Pulled {
            private: self.private.merge_page(answer.private.list).0,
            group: self.group.merge_page(answer.group.list).0,
        }
    }

    fn notice_event(&mut self, message: &GroupMessage) {
        if message.is_event() {
            self.members.remove(&message.group_id);
            self.member_events += 1;
        }
    }

    /// The members of a group, where nothing has happened there since they were fetched.
    pub fn members(&self, group: GroupId) -> Option<Arc<[UserId]>> {
        self.members.get(&group).cloned()
    }

    /// To be taken before members are fetched, for [`Store::merge_members`].
    pub(super) fn member_events(&self) -> u64 {
        self.member_events
    }

    /// Keeps fetched members, unless something has happened since they were asked for.
    pub(super) fn merge_members(&mut self, group: GroupId, members: Arc<[UserId]>, member_events: u64) {
        if member_events == self.member_events {
            self.members.insert(group, members);
        }
    }

    /// Takes in a push. Whether it told something new.
    pub fn merge_push(&mut self, push: &Push) -> bool {
        match push {
            Push::PrivateMessage(_) | Push::Recall { .. } | Push::GroupMessage(_) | Push::GroupRecall { .. }
                if self.private.keeps_nothing() =>
            {
                true
            }
            Push::PrivateMessage(row) | Push::Recall { row, .. } => self.merge_private(row.clone()),
            Push::GroupMessage(row) | Push::GroupRecall { row, .. } => self.merge_group(row.clone()),
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
        self.members.clear();
        self.member_events += 1;
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
}

/// Raises a read position, which never falls. Whether it rose.
fn raise(position: &mut Option<MessageId>, message: MessageId) -> bool {
    let has_risen = Some(message) > *position;
    *position = (*position).max(Some(message));
    has_risen
}

#[cfg(test)]
mod tests;
