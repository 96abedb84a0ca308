//! What a device has missed, as the frames that it would have got: one page of a replay (`design.md` section 7, "resume
//! replay"). The rows are those of its user's pulls, and they are shown as pulls show them.

use super::pull_window::{PullWindow, Pulled};
use super::{group_messages, private_messages};
use crate::config::MessageConfig;
use crate::db::Db;
use crate::domain::device_position::DevicePosition;
use crate::domain::ids::{MessageId, UserId};
use crate::error::AppError;
use crate::protocol::frame::Frame;

/// Rows of a page.
const PAGE_ROWS: usize = 500;
/// A page with so many bytes of frames is full.
const PAGE_BYTES: usize = 256 << 10;
/// Rows of the first read of a page. Further reads are as large as what was read before allows: a page of the longest
/// messages must not be 500 of them.
const FIRST_READ_ROWS: usize = 50;

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCursor {
    /// Everything up to here has been replayed, or was confirmed before.
    pub after: DevicePosition,
    pub private_is_done: bool,
    pub group_is_done: bool,
}

impl ReplayCursor {
    /// Where the replay of a device begins that has confirmed `position`.
    pub fn begin(position: DevicePosition) -> ReplayCursor {
        ReplayCursor { after: position, private_is_done: false, group_is_done: false }
    }

    pub fn is_done(&self) -> bool {
        self.private_is_done && self.group_is_done
    }
}

/// One page.
#[derive(Debug)]
pub struct ReplayPage {
    /// In rising order of ids within each stream.
    pub frames: Vec<Frame>,
    /// Where the next page begins.
    pub cursor: ReplayCursor,
    /// The counter values up to which this page was read: it and the pages after it hold everything up to there.
    /// 0 for a stream that was done before.
    pub horizon: DevicePosition,
}

/// What a replay reads by.
pub struct ReplayRules<'a> {
    /// Milliseconds since 1970.
    pub now: i64,
    pub config: &'a MessageConfig,
    pub private_window: &'a PullWindow,
    pub group_window: &'a PullWindow,
}

/// The next page: private messages until there are none, then group messages.
pub async fn read_page(
    db: &mut Db,
    user: UserId,
    cursor: ReplayCursor,
    rules: &ReplayRules<'_>,
) -> Result<ReplayPage, AppError> {
    let &ReplayRules { now, config, private_window, group_window } = rules;
    let max_read = usize::try_from(config.max_pull_size).unwrap_or(1).clamp(1, PAGE_ROWS);
    let mut filling = Filling { frames: Vec::new(), rows: 0, bytes: 0, max_read };
    let mut next = cursor;
    let mut horizon = DevicePosition::START;
    if !cursor.private_is_done {
        let read = async |db: &mut Db, after: MessageId, size: i64| -> Result<Pulled<Row>, AppError> {
            let page = private_messages::pull_page(db, user, after, size, now, config, private_window).await?;
            page.try_map(|message| Ok(Row { id: message.id, frame: private_messages::stored_frame(message)? }))
        };
        let part = filling.fill(db, cursor.after.private, read).await?;
        (next.after.private, next.private_is_done, horizon.private) = (part.after, part.is_done, part.horizon);
    }
    if !cursor.group_is_done && !filling.is_full() {
        let read = async |db: &mut Db, after: MessageId, size: i64| -> Result<Pulled<Row>, AppError> {
            let page = group_messages::pull_page(db, user, after, size, now, config, group_window).await?;
            page.try_map(|message| Ok(Row { id: message.id, frame: group_messages::stored_frame(message)? }))
        };
        let part = filling.fill(db, cursor.after.group, read).await?;
        (next.after.group, next.group_is_done, horizon.group) = (part.after, part.is_done, part.horizon);
    }
    Ok(ReplayPage { frames: filling.frames, cursor: next, horizon })
}

struct Row {
    id: MessageId,
    /// None for a type that this server does not know and so would not push.
    frame: Option<Frame>,
}

/// How far one stream has come in a page.
struct Part {
    after: MessageId,
    is_done: bool,
    horizon: MessageId,
}

/// A page that is being put together.
struct Filling {
    frames: Vec<Frame>,
    rows: usize,
    bytes: usize,
    /// Rows of one read at most.
    max_read: usize,
}

impl Filling {
    fn is_full(&self) -> bool {
        self.rows >= PAGE_ROWS || self.bytes >= PAGE_BYTES
    }

    /// Rows of the next read: what still fits, if rows go on being as large as they were.
    fn read_size(&self) -> usize {
        let by_bytes = match self.rows {
            0 => FIRST_READ_ROWS,
            rows => PAGE_BYTES.saturating_sub(self.bytes) / (self.bytes / rows).max(1) + 1,
        };
        by_bytes.min(PAGE_ROWS.saturating_sub(self.rows)).clamp(1, self.max_read)
    }

    /// Adds the rows of one stream until it ends or the page is full.
    async fn fill<F>(&mut self, db: &mut Db, mut after: MessageId, read: F) -> Result<Part, AppError>
    where
        F: AsyncFn(&mut Db, MessageId, i64) -> Result<Pulled<Row>, AppError>,
    {
        loop {
            let size = self.read_size();
            let Pulled { rows, newest: horizon } = read(db, after, i64::try_from(size).unwrap_or(1)).await?;
            let is_last = rows.len() < size;
            for row in rows {
                // What no longer fits is read again by the next page.
                if self.is_full() {
                    return Ok(Part { after, is_done: false, horizon });
                }
                after = row.id;
                self.rows += 1;
                self.bytes += row.frame.as_ref().map_or(0, |frame| frame.text.len());
                self.frames.extend(row.frame);
            }
            if is_last || self.is_full() {
                return Ok(Part { after, is_done: is_last, horizon });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_grow_with_short_rows_and_shrink_with_long_ones() {
        let filling = |rows, bytes| Filling { frames: Vec::new(), rows, bytes, max_read: 500 };
        assert_eq!(filling(0, 0).read_size(), FIRST_READ_ROWS);
        assert_eq!(filling(50, 50 * 300).read_size(), 450, "short rows: all that a page may have");
        assert_eq!(filling(1, 200 << 10).read_size(), 1, "long rows: one at a time");
        assert_eq!(filling(50, 100 << 10).read_size(), 79);
        assert_eq!(Filling { max_read: 10, ..filling(0, 0) }.read_size(), 10);
    }
}
