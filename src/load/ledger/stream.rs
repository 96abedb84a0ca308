//! What one device got of one message table, by push and by pull, and what that says about the server. Ids only.

/// What a device saw and must not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The same id twice on one socket, or in two pulls.
    Duplicated,
    /// An id below one that came before.
    OutOfOrder,
}

/// The ids of a table that one device got.
#[derive(Debug, Default)]
pub struct StreamRecord {
    /// In the order of their arrival, over all sockets.
    pushed: Vec<i64>,
    /// Where in `pushed` each socket begins.
    sockets: Vec<usize>,
    /// Highest id of any row on the present socket.
    newest_on_socket: i64,
    pulled: Vec<i64>,
    newest_pulled: i64,
}

/// What became of the messages that a device had to get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Messages that it had to get.
    pub expected: u64,
    /// Acknowledged, and not in the tables at the end.
    pub lost: Vec<i64>,
    /// Pushed and not in the tables at the end.
    pub phantom: Vec<i64>,
    /// Left out on a socket that went on with later ones.
    pub skipped: Vec<i64>,
    /// In the tables and never pushed.
    pub healed: u64,
}

impl StreamRecord {
    /// A new socket: its ids rise from anywhere.
    pub fn start_socket(&mut self) {
        if self.sockets.last() != Some(&self.pushed.len()) {
            self.sockets.push(self.pushed.len());
        }
        self.newest_on_socket = 0;
    }

    /// A row came by push. Only rows of this run (`is_ours`) are kept.
    pub fn push(&mut self, id: i64, is_ours: bool) -> Option<Fault> {
        let fault = fault(id, self.newest_on_socket, self.present_socket());
        self.newest_on_socket = self.newest_on_socket.max(id);
        if is_ours {
            self.pushed.push(id);
        }
        fault
    }

    /// A row came by pull.
    pub fn pull(&mut self, id: i64, is_ours: bool) -> Option<Fault> {
        let fault = fault(id, self.newest_pulled, &self.pulled);
        self.newest_pulled = self.newest_pulled.max(id);
        if is_ours {
            self.pulled.push(id);
        }
        fault
    }

    fn present_socket(&self) -> &[i64] {
        self.pushed.get(self.sockets.last().copied().unwrap_or_default()..).unwrap_or_default()
    }

    /// Compares with what the device had to get (`expected`, rising), once it has pulled to the end.
    pub fn conclude(mut self, expected: &[i64]) -> Verdict {
        self.pulled.sort_unstable();
        let mut skipped = Vec::new();
        for part in self.parts() {
            skipped.extend(left_out(part, expected, &self.pulled));
        }
        self.pushed.sort_unstable();
        self.pushed.dedup();
        let has_pulled = |id: &i64| self.pulled.binary_search(id).is_ok();
        let has_pushed = |id: &i64| self.pushed.binary_search(id).is_ok();
        let lost: Vec<i64> = expected.iter().copied().filter(|id| !has_pulled(id)).collect();
        let is_lost = |id: &i64| lost.binary_search(id).is_ok();
        let phantom = self.pushed.iter().copied().filter(|id| !has_pulled(id) && !is_lost(id)).collect();
        let healed = expected.iter().filter(|id| has_pulled(id) && !has_pushed(id)).count();
        Verdict { expected: count(expected.len()), phantom, skipped, healed: count(healed), lost }
    }

    fn parts(&self) -> impl Iterator<Item = &[i64]> {
        let ends = self.sockets.iter().skip(1).copied().chain([self.pushed.len()]);
        self.sockets.iter().zip(ends).filter_map(|(start, end)| self.pushed.get(*start..end))
    }
}

/// What is wrong with an id that comes after `newest`. `earlier` are those before it that were kept.
fn fault(id: i64, newest: i64, earlier: &[i64]) -> Option<Fault> {
    match id {
        id if id > newest => None,
        id if id == newest || earlier.contains(&id) => Some(Fault::Duplicated),
        _ => Some(Fault::OutOfOrder),
    }
}

/// The expected ids between the first and the last one of a socket that the socket does not have, and the tables have.
fn left_out(part: &[i64], expected: &[i64], pulled: &[i64]) -> Vec<i64> {
    let mut part = part.to_vec();
    part.sort_unstable();
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return Vec::new() };
    let start = expected.partition_point(|id| id < first);
    let between = expected.iter().skip(start).take_while(|id| *id < last);
    let is_missing = |id: &&i64| part.binary_search(id).is_err() && pulled.binary_search(id).is_ok();
    between.filter(is_missing).copied().collect()
}

fn count(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
