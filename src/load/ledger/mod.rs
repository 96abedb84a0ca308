//! The ledger: every message that was sent and what was acknowledged, compared at the end with what every device got.
//! It keeps ids, never bodies: about 50 bytes a message and 8 bytes a delivery.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

pub use self::stream::{Fault, StreamRecord, Verdict};
use crate::client::{GroupMessage, PrivateMessage};
use crate::domain::ids::{GroupId, UserId};

mod stream;
#[cfg(test)]
mod tests;

/// Violations that are told in words.
const MAX_EXAMPLES: usize = 20;

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    User(UserId),
    Group(GroupId),
}

/// A stored row as a device saw it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub id: i64,
    pub sender: UserId,
    pub target: Target,
    /// The number of a message of this run.
    pub number: Option<usize>,
}

/// Which message an id is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Acknowledged,
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    sender: UserId,
    target: Target,
    /// When it had to be sent, since the start of the ledger.
    due: Duration,
    /// Where any device or an answer has told it; 0 is unknown.
    id: i64,
    state: State,
}

/// What devices had to get: rising ids.
#[derive(Debug, Default)]
pub struct Expected {
    of_users: HashMap<UserId, Vec<i64>>,
    of_groups: HashMap<GroupId, Vec<i64>>,
}

/// The columns of the ledger. All but `healed` must be 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Columns {
    /// Acknowledged, and not in the tables for a device of the sender or of a receiver.
    pub lost: u64,
    /// The same id twice on one socket or by pull, or two ids for one client id.
    pub duplicated: u64,
    /// An id below an earlier one of the same socket, or one left out on a socket that went on.
    pub out_of_order: u64,
    /// Got by a device of somebody who is neither sender nor receiver, or stored although it was refused.
    pub wrongly_delivered: u64,
    /// Pushed and not in the tables, at once or at the end.
    pub pushed_before_commit: u64,
    /// Missed by push and healed by pull.
    pub healed: u64,
    /// Deliveries that were due: acknowledged messages times the devices of sender and receivers.
    pub expected: u64,
    /// Sends without an answer to the end.
    pub unresolved: u64,
}

impl Columns {
    /// Whether nothing went wrong, as far as answers tell.
    pub fn is_clean(&self) -> bool {
        let faults = [self.lost, self.duplicated, self.out_of_order, self.wrongly_delivered, self.pushed_before_commit];
        faults.iter().all(|count| *count == 0) && self.unresolved == 0
    }
}

/// All that was sent, and what was seen to be wrong so far.
#[derive(Debug)]
pub struct Ledger {
    start: Instant,
    /// Marks the client ids of this run.
    run: u64,
    members: HashMap<GroupId, HashSet<UserId>>,
    sent: Mutex<Vec<Sent>>,
    duplicated: AtomicU64,
    out_of_order: AtomicU64,
    wrongly_delivered: AtomicU64,
    pushed_before_commit: AtomicU64,
    examples: Mutex<Vec<String>>,
}

impl Ledger {
    /// An empty ledger; `members` of groups do not change during the run.
    pub fn new(run: u64, members: HashMap<GroupId, HashSet<UserId>>) -> Ledger {
        Ledger {
            start: Instant::now(),
            run,
            members,
            sent: Mutex::default(),
            duplicated: AtomicU64::new(0),
            out_of_order: AtomicU64::new(0),
            wrongly_delivered: AtomicU64::new(0),
            pushed_before_commit: AtomicU64::new(0),
            examples: Mutex::default(),
        }
    }

    fn sent(&self) -> std::sync::MutexGuard<'_, Vec<Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a message before its first try; its number and client id.
    pub fn begin(&self, sender: UserId, target: Target, due: Instant) -> (usize, String) {
        let due = due.saturating_duration_since(self.start);
        let mut sent = self.sent();
        let number = sent.len();
        sent.push(Sent { sender, target, due, id: 0, state: State::Open });
        (number, format!("{:016x}{number:016x}", self.run))
    }

    /// The number in a client id of this run.
    fn number(&self, client_message_id: Option<&str>) -> Option<usize> {
        let (run, number) = client_message_id?.split_at_checked(16)?;
        let is_ours = u64::from_str_radix(run, 16).ok()? == self.run;
        is_ours.then(|| usize::from_str_radix(number, 16).ok()).flatten()
    }

    /// What a private row tells.
    pub fn private_row(&self, message: &PrivateMessage) -> Row {
        Row {
            id: message.id.0,
            sender: message.sender_id,
            target: Target::User(message.receiver_id),
            number: self.number(message.client_message_id.as_deref()),
        }
    }

    /// What a group row tells.
    pub fn group_row(&self, message: &GroupMessage) -> Row {
        Row {
            id: message.id.0,
            sender: message.sender_id,
            target: Target::Group(message.group_id),
            number: self.number(message.client_message_id.as_deref()),
        }
    }

    /// The server has answered: stored under this id.
    pub fn acknowledge(&self, number: usize, id: i64) {
        if let Some(sent) = self.sent().get_mut(number) {
            sent.state = State::Acknowledged;
            self.settle_id(sent, number, id);
        }
    }

    /// The server has refused it, so nobody must ever see it.
    pub fn refuse(&self, number: usize) {
        if let Some(sent) = self.sent().get_mut(number) {
            sent.state = State::Refused;
            if sent.id != 0 {
                self.blame(&self.wrongly_delivered, || format!("message {}: stored, but refused", sent.id));
            }
        }
    }

    /// One client id has one id for ever.
    fn settle_id(&self, sent: &mut Sent, number: usize, id: i64) {
        if sent.id == 0 {
            sent.id = id;
        } else if sent.id != id {
            let first = sent.id;
            self.blame(&self.duplicated, || format!("send {number}: stored as {first} and as {id}"));
        }
    }

    /// A device of `user` got a row. When the message had to be sent, if it is one of this run.
    pub fn see(&self, user: UserId, row: &Row) -> Option<Instant> {
        let may_see = match row.target {
            Target::User(receiver) => user == receiver || user == row.sender,
            Target::Group(group) => self.members.get(&group).is_some_and(|members| members.contains(&user)),
        };
        // Of groups that are not ours nothing is known.
        let is_known = row.number.is_some() || matches!(row.target, Target::User(_));
        if !may_see && is_known {
            self.blame(&self.wrongly_delivered, || format!("message {}: reached user {user}", row.id));
        }
        let number = row.number?;
        let mut all = self.sent();
        let Some(sent) = all.get_mut(number) else {
            self.blame(&self.wrongly_delivered, || format!("message {}: was never sent", row.id));
            return None;
        };
        if (sent.sender, sent.target) != (row.sender, row.target) {
            self.blame(&self.wrongly_delivered, || format!("message {}: has another sender or receiver", row.id));
        }
        if sent.state == State::Refused {
            self.blame(&self.wrongly_delivered, || format!("message {}: stored, but refused", row.id));
        }
        self.settle_id(sent, number, row.id);
        Some(self.start + sent.due)
    }

    /// Counts what a device saw wrong.
    pub fn note_fault(&self, fault: Fault, device: &str, id: i64) {
        match fault {
            Fault::Duplicated => self.blame(&self.duplicated, || format!("message {id}: twice at {device}")),
            Fault::OutOfOrder => {
                self.blame(&self.out_of_order, || format!("message {id}: after a later one at {device}"));
            }
        }
    }

    /// A pushed row was not in the tables when it was looked up at once.
    pub fn note_early_push(&self, id: i64) {
        self.blame(&self.pushed_before_commit, || format!("message {id}: pushed and not in the tables"));
    }

    fn blame(&self, column: &AtomicU64, example: impl FnOnce() -> String) {
        column.fetch_add(1, Ordering::Relaxed);
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        if examples.len() < MAX_EXAMPLES {
            examples.push(example());
        }
    }

    /// Sends that have no answer yet.
    pub fn count_open(&self) -> u64 {
        let open = self.sent().iter().filter(|sent| sent.state == State::Open).count();
        u64::try_from(open).unwrap_or(u64::MAX)
    }

    /// What devices have to get, as far as sends are acknowledged.
    pub fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for sent in self.sent().iter().filter(|sent| sent.state == State::Acknowledged) {
            match sent.target {
                Target::User(receiver) => {
                    expected.of_users.entry(sent.sender).or_default().push(sent.id);
                    if receiver != sent.sender {
                        expected.of_users.entry(receiver).or_default().push(sent.id);
                    }
                }
                Target::Group(group) => expected.of_groups.entry(group).or_default().push(sent.id),
            }
        }
        for ids in expected.of_users.values_mut().chain(expected.of_groups.values_mut()) {
            ids.sort_unstable();
        }
        expected
    }

    /// Adds what a device's comparison found to the columns.
    pub fn add_verdict(&self, columns: &mut Columns, device: &str, verdict: &Verdict) {
        columns.expected += verdict.expected;
        columns.healed += verdict.healed;
        let lost = AtomicU64::new(0);
        for id in &verdict.lost {
            self.blame(&lost, || format!("message {id}: acknowledged, and not there for {device}"));
        }
        columns.lost += lost.into_inner();
        for id in &verdict.skipped {
            self.blame(&self.out_of_order, || format!("message {id}: left out on a socket of {device}"));
        }
        for id in &verdict.phantom {
            self.blame(&self.pushed_before_commit, || format!("message {id}: pushed to {device}, not in the tables"));
        }
    }

    /// Completes the columns with what was counted on the way.
    pub fn complete(&self, columns: Columns) -> Columns {
        let count = |column: &AtomicU64| column.load(Ordering::Relaxed);
        Columns {
            duplicated: count(&self.duplicated),
            out_of_order: count(&self.out_of_order),
            wrongly_delivered: count(&self.wrongly_delivered),
            pushed_before_commit: count(&self.pushed_before_commit),
            unresolved: self.count_open(),
            ..columns
        }
    }

    /// The first violations, in words.
    pub fn examples(&self) -> Vec<String> {
        self.examples.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Expected {
    /// Private messages of a user.
    pub fn private(&self, user: UserId) -> &[i64] {
        self.of_users.get(&user).map(Vec::as_slice).unwrap_or_default()
    }

    /// Messages of all these groups, rising.
    pub fn group(&self, groups: &[GroupId]) -> Vec<i64> {
        let mut ids: Vec<i64> =
            groups.iter().filter_map(|group| self.of_groups.get(group)).flatten().copied().collect();
        ids.sort_unstable();
        ids
    }
}
