//! What the sessions of this node have confirmed and what of it is still to be written: the rules of
//! [`Positions`](super::Positions), without a database.
//!
//! Sessions with one row (the same login and device) each hold a claim, and the lowest of them counts. A claim outlives
//! its session as long as others with the same row go on: only the next session of the row replays what that session
//! may have missed.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::domain::device_position::DevicePosition;

/// A row is written at most once in this time, not counting the end of its sessions.
const WRITE_INTERVAL: Duration = Duration::from_secs(30);

/// Every row that a session of this node holds, or that is not written yet.
#[derive(Default)]
pub(super) struct Book {
    entries: HashMap<i64, Entry>,
    /// Rows to be written now.
    due: VecDeque<i64>,
    /// Rows to be written at some time.
    later: VecDeque<(Instant, i64)>,
    last_claim: u64,
}

struct Entry {
    /// One for each open session.
    claims: Vec<(u64, DevicePosition)>,
    /// The lowest claim of the sessions that have ended since the last one began.
    ended: Option<DevicePosition>,
    /// What is in the table.
    stored: DevicePosition,
    written_at: Option<Instant>,
    waits: Waits,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Not,
    Later,
    Now,
}

impl Entry {
    fn lowest(&self) -> DevicePosition {
        let claims = self.claims.iter().map(|(_, position)| *position).chain(self.ended);
        claims.reduce(DevicePosition::lowest).unwrap_or(self.stored)
    }

    fn is_unwritten(&self) -> bool {
        self.lowest() != self.stored
    }
}

impl Book {
    /// A session begins. It takes over what sessions before it have left; the number of its claim, and where it starts.
    pub fn open(&mut self, row: i64, stored: DevicePosition, start: DevicePosition) -> (u64, DevicePosition) {
        self.last_claim += 1;
        let fresh =
            || Entry { claims: Vec::with_capacity(1), ended: None, stored, written_at: None, waits: Waits::Not };
        let entry = self.entries.entry(row).or_insert_with(fresh);
        let is_new = entry.claims.is_empty() && entry.ended.is_none();
        let start = if is_new { start } else { entry.lowest() };
        entry.ended = None;
        entry.claims.push((self.last_claim, start));
        if is_new && entry.is_unwritten() {
            entry.waits = Waits::Now;
            self.due.push_back(row);
        }
        (self.last_claim, start)
    }

    /// The session's peer has confirmed what was written to it up to here.
    pub fn confirm(&mut self, row: i64, claim: u64, position: DevicePosition, now: Instant) {
        let Some(entry) = self.entries.get_mut(&row) else { return };
        if let Some((_, claimed)) = entry.claims.iter_mut().find(|(number, _)| *number == claim) {
            *claimed = claimed.highest(position);
        }
        if entry.waits != Waits::Not || !entry.is_unwritten() {
            return;
        }
        match entry.written_at.map(|written| written + WRITE_INTERVAL).filter(|due| *due > now) {
            Some(due) => {
                entry.waits = Waits::Later;
                self.later.push_back((due, row));
            }
            None => {
                entry.waits = Waits::Now;
                self.due.push_back(row);
            }
        }
    }

    /// The session has ended.
    pub fn close(&mut self, row: i64, claim: u64) {
        let Some(entry) = self.entries.get_mut(&row) else { return };
        let Some(index) = entry.claims.iter().position(|(number, _)| *number == claim) else { return };
        let (_, position) = entry.claims.swap_remove(index);
        entry.ended = Some(entry.ended.map_or(position, |ended| ended.lowest(position)));
        if entry.is_unwritten() {
            if entry.waits != Waits::Now {
                entry.waits = Waits::Now;
                self.due.push_back(row);
            }
        } else if entry.claims.is_empty() && entry.waits == Waits::Not {
            self.entries.remove(&row);
        }
    }

    /// Makes everything due that is not written, whatever the interval: the server stops.
    pub fn hurry(&mut self) {
        for (row, entry) in &mut self.entries {
            if entry.is_unwritten() && entry.waits != Waits::Now {
                entry.waits = Waits::Now;
                self.due.push_back(*row);
            }
        }
    }

    /// The next rows to write, at most `limit`. They must be handed to [`Book::written`] or [`Book::put_back`].
    pub fn take(&mut self, limit: usize, now: Instant) -> Vec<(i64, DevicePosition)> {
        while let Some((_, row)) = self.later.pop_front_if(|(due, _)| *due <= now) {
            if let Some(entry) = self.entries.get_mut(&row).filter(|entry| entry.waits == Waits::Later) {
                entry.waits = Waits::Now;
                self.due.push_back(row);
            }
        }
        let mut taken = Vec::new();
        while taken.len() < limit {
            let Some(row) = self.due.pop_front() else { break };
            let Some(entry) = self.entries.get_mut(&row) else { continue };
            entry.waits = Waits::Not;
            if entry.is_unwritten() {
                entry.written_at = Some(now);
                taken.push((row, entry.lowest()));
            } else if entry.claims.is_empty() {
                self.entries.remove(&row);
            }
        }
        taken
    }

    pub fn written(&mut self, rows: &[(i64, DevicePosition)]) {
        for (row, position) in rows {
            let Some(entry) = self.entries.get_mut(row) else { continue };
            entry.stored = *position;
            if entry.claims.is_empty() && entry.waits == Waits::Not && !entry.is_unwritten() {
                self.entries.remove(row);
            }
        }
    }

    pub fn put_back(&mut self, rows: &[(i64, DevicePosition)]) {
        for (row, _) in rows {
            let Some(entry) = self.entries.get_mut(row).filter(|entry| entry.waits != Waits::Now) else { continue };
            entry.waits = Waits::Now;
            self.due.push_back(*row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::MessageId;

    fn at(private: i64, group: i64) -> DevicePosition {
        DevicePosition { private: MessageId(private), group: MessageId(group), ..DevicePosition::START }
    }

    /// Takes what is due and writes it.
    fn write(book: &mut Book, now: Instant) -> Vec<(i64, DevicePosition)> {
        let rows = book.take(100, now);
        book.written(&rows);
        rows
    }

    #[test]
    fn a_row_is_written_at_once_and_then_at_most_every_thirty_seconds() {
        let (mut book, start) = (Book::default(), Instant::now());
        let (claim, _) = book.open(7, at(10, 10), at(10, 10));
        book.confirm(7, claim, at(10, 10), start);
        assert_eq!(write(&mut book, start), [], "nothing has changed");
        book.confirm(7, claim, at(11, 10), start);
        assert_eq!(write(&mut book, start), [(7, at(11, 10))]);
        for second in 1..30 {
            let now = start + Duration::from_secs(second);
            book.confirm(7, claim, at(11 + i64::try_from(second).unwrap(), 10), now);
            assert_eq!(write(&mut book, now), [], "second {second}");
        }
        assert_eq!(write(&mut book, start + WRITE_INTERVAL), [(7, at(40, 10))], "without another confirmation");
        assert_eq!(write(&mut book, start + WRITE_INTERVAL * 2), []);
    }

    #[test]
    fn the_end_of_a_session_is_written_at_once_and_leaves_nothing_behind() {
        let (mut book, now) = (Book::default(), Instant::now());
        let (claim, _) = book.open(7, at(10, 10), at(10, 10));
        book.confirm(7, claim, at(11, 10), now);
        write(&mut book, now);
        book.confirm(7, claim, at(12, 20), now);
        book.close(7, claim);
        assert_eq!(write(&mut book, now), [(7, at(12, 20))]);
        let (claim, _) = book.open(8, at(1, 1), at(1, 1));
        book.close(8, claim);
        assert_eq!(write(&mut book, now), []);
        assert!(book.entries.is_empty() && book.due.is_empty());
        write(&mut book, now + WRITE_INTERVAL);
        assert!(book.later.is_empty());
    }

    #[test]
    fn of_several_sessions_the_lowest_wins_in_each_stream() {
        let (mut book, now) = (Book::default(), Instant::now());
        let (first, _) = book.open(7, at(10, 10), at(10, 10));
        let (second, _) = book.open(7, at(10, 10), at(10, 10));
        book.confirm(7, first, at(50, 20), now);
        assert_eq!(write(&mut book, now), []);
        book.confirm(7, second, at(30, 40), now);
        assert_eq!(write(&mut book, now), [(7, at(30, 20))]);
        assert_eq!(book.open(7, at(0, 0), at(0, 0)).1, at(30, 20), "a third starts there, whatever it has read");
    }

    #[test]
    fn what_an_ended_session_may_have_missed_stays_until_the_next_one_begins() {
        let (mut book, now) = (Book::default(), Instant::now());
        let (dying, _) = book.open(7, at(10, 10), at(10, 10));
        let (alive, _) = book.open(7, at(10, 10), at(10, 10));
        book.confirm(7, alive, at(50, 50), now);
        book.close(7, dying);
        assert_eq!(write(&mut book, now), []);
        book.confirm(7, alive, at(60, 60), now);
        assert_eq!(write(&mut book, now + WRITE_INTERVAL), []);
        let (back, start) = book.open(7, at(10, 10), at(10, 10));
        assert_eq!(start, at(10, 10));
        book.confirm(7, back, at(60, 55), now);
        assert_eq!(write(&mut book, now), [(7, at(60, 55))]);
    }

    #[test]
    fn a_position_never_falls_by_a_confirmation_that_comes_late() {
        let (mut book, now) = (Book::default(), Instant::now());
        let (claim, _) = book.open(7, at(10, 10), at(10, 10));
        book.confirm(7, claim, at(20, 10), now);
        book.confirm(7, claim, at(15, 12), now);
        assert_eq!(write(&mut book, now), [(7, at(20, 12))]);
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_and_a_new_session_starts_from_it() {
        let (mut book, now) = (Book::default(), Instant::now());
        let (claim, _) = book.open(7, at(10, 10), at(10, 10));
        book.confirm(7, claim, at(20, 20), now);
        let rows = book.take(100, now);
        book.close(7, claim);
        book.put_back(&rows);
        assert_eq!(book.open(7, at(10, 10), at(10, 10)).1, at(20, 20));
        assert_eq!(write(&mut book, now), [(7, at(20, 20))]);
    }

    #[test]
    fn a_stop_hurries_what_would_have_waited() {
        let (mut book, now) = (Book::default(), Instant::now());
        let (claim, _) = book.open(7, at(10, 10), at(10, 10));
        book.confirm(7, claim, at(20, 20), now);
        write(&mut book, now);
        book.confirm(7, claim, at(30, 30), now);
        assert_eq!(write(&mut book, now), []);
        book.hurry();
        assert_eq!(write(&mut book, now), [(7, at(30, 30))]);
    }

    #[test]
    fn a_position_that_had_to_be_lowered_is_written_at_once() {
        let (mut book, now) = (Book::default(), Instant::now());
        let (_, start) = book.open(7, at(900, 900), at(20, 900));
        assert_eq!((start, write(&mut book, now)), (at(20, 900), vec![(7, at(20, 900))]));
    }

    #[test]
    fn a_turn_takes_no_more_than_its_limit() {
        let (mut book, now) = (Book::default(), Instant::now());
        for row in 0..5 {
            let (claim, _) = book.open(row, at(0, 0), at(0, 0));
            book.confirm(row, claim, at(1, 1), now);
        }
        assert_eq!((book.take(3, now).len(), book.take(3, now).len(), book.take(3, now).len()), (3, 2, 0));
    }
}
