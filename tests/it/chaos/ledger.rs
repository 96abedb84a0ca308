//! What the people of a chaos run asked for and what they were told, to be compared with what is stored.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

/// Messages that are remembered for being read.
const RECENT: usize = 40;

/// Everybody of a run writes into one ledger.
pub type SharedLedger = Rc<RefCell<Ledger>>;

/// A message that somebody sends, again and again until it is acknowledged.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Whoever sends waits for the answer before the next one, so the ids of one hand rise with the numbers.
    pub hand: usize,
    pub number: usize,
    pub is_group: bool,
    /// The receiver, or the group.
    pub target: i64,
    /// What was acknowledged.
    pub id: Option<i64>,
}

/// A message that is there and can be read.
#[derive(Clone, Copy, Debug)]
pub struct Recent {
    pub is_group: bool,
    pub id: i64,
    pub sender: i64,
    pub target: i64,
}

#[derive(Default)]
pub struct Ledger {
    /// By sender and client id.
    pub sent: HashMap<(i64, String), Sent>,
    /// The highest position that was reported, by reader, conversation type and peer or group.
    pub reads: BTreeMap<(i64, i32, i64), i64>,
    /// Messages whose recall was acknowledged: private ones and those of groups.
    pub recalled: [BTreeSet<i64>; 2],
    pub recent: VecDeque<Recent>,
    /// Calls that were answered with success.
    pub acknowledged: usize,
    /// Calls that broke or were answered with an error, and were repeated.
    pub failures: usize,
}

impl Ledger {
    pub fn acknowledge(&mut self, sender: i64, client_id: &str, id: i64) {
        let sent = self.sent.get_mut(&(sender, client_id.to_owned())).unwrap();
        sent.id = Some(id);
        let recent = Recent { is_group: sent.is_group, id, sender, target: sent.target };
        self.recent.push_back(recent);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        self.acknowledged += 1;
    }

    pub fn report(&mut self, key: (i64, i32, i64), message: i64) {
        let highest = self.reads.entry(key).or_default();
        *highest = message.max(*highest);
    }
}
