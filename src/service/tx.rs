//! One write transaction as services see it: connection, clock, counters and outbox.

use std::collections::HashSet;
use std::sync::Arc;

use diesel::QueryResult;
use diesel::result::Error;
use serde::Serialize;

use crate::config::Config;
use crate::db::Db;
use crate::db::sequence::{self, Counter, CounterValue};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{LoginId, MessageId, UserId};
use crate::protocol::frame::{Frame, FrameClass, Notification};
use crate::service::member_cache::MemberCache;

/// The counter rows that a command needs. They are locked before anything else, in one order (`design.md` section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locks(u8);

impl Locks {
    pub const NONE: Locks = Locks(0);
    pub const CLOCK: Locks = Locks(1 << Counter::Clock as u8);
    pub const PRIVATE: Locks = Locks(1 << Counter::Private as u8);
    pub const GROUP: Locks = Locks(1 << Counter::Group as u8);
    pub const CHANNEL: Locks = Locks(1 << Counter::Channel as u8);

    /// Both.
    pub const fn and(self, other: Locks) -> Locks {
        Locks(self.0 | other.0)
    }

    fn has(self, counter: Counter) -> bool {
        self.0 & (1 << counter as u8) != 0
    }
}

/// Ids that a transaction owns, and the send time that goes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    pub first: MessageId,
    pub last: MessageId,
    pub send_time: i64,
}

#[derive(Clone, Copy)]
struct Held {
    counter: Counter,
    value: CounterValue,
    moved: bool,
}

/// A write transaction.
pub struct Tx<'a> {
    pub db: &'a mut Db,
    /// Wall-clock milliseconds when the transaction began. Order comes from stamps and ids, never from this.
    pub now: i64,
    pub config: &'a Config,
    pub members: &'a mut MemberCache,
    held: Vec<Held>,
    stamp: Option<i64>,
    outbox: Outbox,
}

/// What leaves after the commit, and only then.
#[derive(Debug, Default)]
pub struct Outbox {
    /// In commit order.
    pub notifications: Vec<Notification>,
    /// Logins whose sockets must close: all of the user's where the second is `None`.
    pub ended_logins: Vec<(UserId, Option<LoginId>)>,
    /// Users some of whose tokens were replaced; their sockets stay.
    pub replaced_tokens: Vec<UserId>,
}

/// How much was in the outbox at some time.
#[derive(Clone, Copy)]
pub struct OutboxMark([usize; 3]);

impl Outbox {
    /// Users whose tokens must be read anew.
    pub fn users_with_revoked_tokens(&self) -> HashSet<UserId> {
        self.ended_logins.iter().map(|(user, _)| *user).chain(self.replaced_tokens.iter().copied()).collect()
    }
}

/// A notification as the frame that sockets get.
pub fn notification<P: Serialize>(
    class: FrameClass,
    conversation: ConversationType,
    content_type: ContentType,
    payload: &P,
) -> QueryResult<Frame> {
    Frame::im_notification(class, conversation, content_type.number(), payload)
        .map_err(|error| Error::SerializationError(Box::new(error)))
}

impl<'a> Tx<'a> {
    pub fn new(db: &'a mut Db, now: i64, config: &'a Config, members: &'a mut MemberCache) -> Tx<'a> {
        Tx { db, now, config, members, held: Vec::new(), stamp: None, outbox: Outbox::default() }
    }

    /// Locks counter rows in their one order. A lock that comes before one held already is a defect, since two nodes
    /// could then wait for each other.
    pub async fn lock(&mut self, locks: Locks) -> QueryResult<()> {
        for counter in Counter::ALL {
            if !locks.has(counter) || self.held.iter().any(|held| held.counter == counter) {
                continue;
            }
            if self.held.iter().any(|held| held.counter > counter) {
                return Err(Error::QueryBuilderError(format!("{} locked out of order", counter.name()).into()));
            }
            let value = sequence::lock(self.db, counter).await?;
            self.held.push(Held { counter, value, moved: false });
        }
        Ok(())
    }

    fn held(&mut self, counter: Counter) -> QueryResult<&mut Held> {
        let missing = || Error::QueryBuilderError(format!("{} is not locked", counter.name()).into());
        self.held.iter_mut().find(|held| held.counter == counter).ok_or_else(missing)
    }

    /// Begins the next command or run: it gets a stamp of its own.
    pub fn begin_command(&mut self) {
        self.stamp = None;
    }

    /// The stamp of everything this command changes; above every stamp committed before (I4). Needs the clock.
    pub fn stamp(&mut self) -> QueryResult<i64> {
        if let Some(stamp) = self.stamp {
            return Ok(stamp);
        }
        let now = self.now;
        let clock = self.held(Counter::Clock)?;
        clock.value.value = (clock.value.value + 1).max(now);
        clock.moved = true;
        let stamp = clock.value.value;
        self.stamp = Some(stamp);
        Ok(stamp)
    }

    /// Takes `count` (at least one) message ids. Needs the counter.
    pub fn take_ids(&mut self, counter: Counter, count: usize) -> QueryResult<IdRange> {
        let now = self.now;
        let count = i64::try_from(count.max(1)).unwrap_or(1);
        let held = self.held(counter)?;
        let first = MessageId(held.value.value + 1);
        held.value.value += count;
        held.value.time = held.value.time.max(now);
        held.moved = true;
        Ok(IdRange { first, last: MessageId(held.value.value), send_time: held.value.time })
    }

    /// The last id that was given out. Needs the counter.
    pub fn last_id(&mut self, counter: Counter) -> QueryResult<MessageId> {
        Ok(MessageId(self.held(counter)?.value.value))
    }

    /// Puts a notification into the outbox: serialised now, once, for all receivers.
    pub fn notify<P: Serialize>(
        &mut self,
        receivers: impl Into<Arc<[UserId]>>,
        class: FrameClass,
        conversation: ConversationType,
        content_type: ContentType,
        payload: &P,
    ) -> QueryResult<()> {
        self.notify_frame(receivers, notification(class, conversation, content_type, payload)?);
        Ok(())
    }

    /// The same for a frame that is made already.
    pub fn notify_frame(&mut self, receivers: impl Into<Arc<[UserId]>>, frame: Frame) {
        self.outbox.notifications.push(Notification { receivers: receivers.into(), frame });
    }

    /// Closes the sockets of a login (of all the user's logins for `None`) after the commit.
    pub fn end_login(&mut self, user: UserId, login: Option<LoginId>) {
        self.outbox.ended_logins.push((user, login));
    }

    /// The user's present access tokens are good no more after the commit.
    pub fn replace_tokens(&mut self, user: UserId) {
        self.outbox.replaced_tokens.push(user);
    }

    /// A mark to which [`Tx::discard_since`] goes back when a savepoint is rolled back.
    pub fn outbox_mark(&self) -> OutboxMark {
        let Outbox { notifications, ended_logins, replaced_tokens } = &self.outbox;
        OutboxMark([notifications.len(), ended_logins.len(), replaced_tokens.len()])
    }

    pub fn discard_since(&mut self, OutboxMark([notifications, ended_logins, replaced_tokens]): OutboxMark) {
        self.outbox.notifications.truncate(notifications);
        self.outbox.ended_logins.truncate(ended_logins);
        self.outbox.replaced_tokens.truncate(replaced_tokens);
    }

    /// Writes the counters back, with the number of the batch in the row of its writer; gives up the outbox.
    pub async fn finish(mut self, writer_row: &str, batch: i64) -> QueryResult<Outbox> {
        let moved = self.held.iter().filter(|held| held.moved);
        let mut rows: Vec<_> = moved.map(|held| (held.counter.name().to_owned(), held.value)).collect();
        rows.push((writer_row.to_owned(), CounterValue { value: batch, time: self.now }));
        sequence::store(self.db, &rows).await?;
        Ok(std::mem::take(&mut self.outbox))
    }
}
