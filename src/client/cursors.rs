//! How far this device has pulled. Only pulls move a cursor: a push or the answer to a send says nothing about the
//! rows before it, and a cursor that jumped to it would skip them for good (`design.md` section 7).

/// How far a scan of state rows goes back before the cursor, in milliseconds.
pub const OVERLAP_MS: i64 = 5_000;

/// The highest id pulled from one message table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCursor(i64);

impl MessageCursor {
    /// Everything up to this id has been pulled.
    pub fn position(self) -> i64 {
        self.0
    }

    /// Takes in a pulled row. Whether the cursor moved; it never goes back.
    pub fn advance(&mut self, id: i64) -> bool {
        let is_ahead = id > self.0;
        self.0 = self.0.max(id);
        is_ahead
    }
}

/// The newest (update time, id) pulled from one state table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCursor(Option<(i64, i64)>);

impl StateCursor {
    /// Where a scan begins: a few seconds before the cursor, to be safe against a server whose stamps do not follow
    /// commits. `None`: from the beginning.
    pub fn scan_start(self) -> Option<(i64, i64)> {
        self.0.map(|(update_time, _)| (update_time.saturating_sub(OVERLAP_MS), 0))
    }

    /// Takes in a pulled row; the cursor never goes back.
    pub fn advance(&mut self, update_time: i64, id: i64) {
        self.0 = self.0.max(Some((update_time, id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_cursors_only_go_forward() {
        let mut cursor = MessageCursor::default();
        assert!(cursor.advance(5));
        assert!(!cursor.advance(5));
        assert!(!cursor.advance(3));
        assert_eq!(cursor.position(), 5);
    }

    #[test]
    fn state_scans_overlap_and_the_cursor_stays() {
        let mut cursor = StateCursor::default();
        assert_eq!(cursor.scan_start(), None);
        cursor.advance(10_000, 7);
        cursor.advance(6_000, 9);
        assert_eq!(cursor, StateCursor(Some((10_000, 7))));
        assert_eq!(cursor.scan_start(), Some((5_000, 0)));
        cursor.advance(10_000, 8);
        assert_eq!(cursor, StateCursor(Some((10_000, 8))));
    }
}
