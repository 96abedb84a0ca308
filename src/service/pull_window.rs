//! The pull window in ids: `send_time` does not fall with rising id, so "the last N days" begins at one id.

use std::sync::Mutex;

use diesel::QueryResult;

use crate::config::MessageConfig;
use crate::db::sequence::{Counter, horizon};
use crate::db::{Db, group_messages, private_messages};
use crate::domain::ids::MessageId;
use crate::domain::refusal::Refusal;
use crate::error::AppError;

/// How long a computed start of the window is used, milliseconds.
const WINDOW_LIFE_MS: i64 = 3_600_000;

/// What a pull may show: `floor < id <= newest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The highest id that lies before the window.
    pub floor: MessageId,
    /// The counter's value when the pull began. Nothing above it is shown, since the statements of one read may see
    /// different states (`design.md` section 7).
    pub newest: MessageId,
}

/// The rows of a page, and up to which id it is complete if it is not full.
#[derive(Debug)]
pub struct Pulled<T> {
    pub rows: Vec<T>,
    pub newest: MessageId,
}

impl<T> Pulled<T> {
    pub fn try_map<U>(self, change: impl Fn(T) -> Result<U, AppError>) -> Result<Pulled<U>, AppError> {
        let rows = self.rows.into_iter().map(change).collect::<Result<_, _>>()?;
        Ok(Pulled { rows, newest: self.newest })
    }
}

/// Refuses a page that is empty or over the limit (1040300005).
pub fn check_pull_size(size: i64, rules: &MessageConfig) -> Result<(), AppError> {
    if size < 1 {
        return Err(AppError::Malformed("size must be at least 1".into()));
    }
    if size > rules.max_pull_size {
        return Err(Refusal::PullSizeExceeded(rules.max_pull_size).into());
    }
    Ok(())
}

/// Where the window of one message table begins; cached for an hour.
#[derive(Debug)]
pub struct PullWindow {
    counter: Counter,
    known: Mutex<Option<(i64, MessageId)>>,
}

impl PullWindow {
    /// The window of private messages.
    pub fn private() -> PullWindow {
        PullWindow { counter: Counter::Private, known: Mutex::new(None) }
    }

    /// The window of group messages.
    pub fn group() -> PullWindow {
        PullWindow { counter: Counter::Group, known: Mutex::new(None) }
    }

    /// What a pull that begins now may show.
    pub async fn look(&self, db: &mut Db, now: i64, rules: &MessageConfig) -> QueryResult<View> {
        let days = match self.counter {
            Counter::Group => rules.group_pull_max_days,
            _ => rules.private_pull_max_days,
        };
        let newest = MessageId(horizon(db, self.counter).await?);
        let floor = self.floor(db, now, days, newest).await?;
        Ok(View { floor, newest })
    }

    /// The highest id that lies before the window. `newest` bounds the search.
    async fn floor(&self, db: &mut Db, now: i64, days: i64, newest: MessageId) -> QueryResult<MessageId> {
        let known = self.known.lock().map_or(None, |known| *known);
        // A clock that was ahead and came back must not leave a window that begins too late.
        if let Some((time, floor)) = known
            && (0..WINDOW_LIFE_MS).contains(&(now - time))
        {
            return Ok(floor);
        }
        let oldest = now.saturating_sub(days.saturating_mul(86_400_000));
        let floor = self.search(db, oldest, newest).await?;
        if let Ok(mut known) = self.known.lock() {
            *known = Some((now, floor));
        }
        Ok(floor)
    }

    /// The highest id whose message was sent at `time` or earlier.
    pub async fn last_id_until(&self, db: &mut Db, time: i64) -> QueryResult<MessageId> {
        let newest = MessageId(horizon(db, self.counter).await?);
        self.search(db, time, newest).await
    }

    /// Binary search on the primary key: the highest id whose message was sent at `time` or earlier.
    async fn search(&self, db: &mut Db, time: i64, newest: MessageId) -> QueryResult<MessageId> {
        let (mut low, mut high) = (0, newest.0);
        while low < high {
            let middle = low + (high - low + 1) / 2;
            match self.first_from(db, MessageId(middle)).await? {
                Some((id, send_time)) if send_time <= time => low = id.0.min(high),
                _ => high = middle - 1,
            }
        }
        Ok(MessageId(low))
    }

    async fn first_from(&self, db: &mut Db, id: MessageId) -> QueryResult<Option<(MessageId, i64)>> {
        match self.counter {
            Counter::Group => group_messages::first_from(db, id).await,
            _ => private_messages::first_from(db, id).await,
        }
    }
}
