//! Storing many messages of one table at once: ids, one multi-row insert that skips repeated keys, and the rows that a
//! repeat means (`design.md` I2 and section 4). Private and group messages share it.

use std::collections::{HashMap, HashSet};

use diesel::QueryResult;
use diesel::result::Error;

use super::{Locks, Tx};
use crate::db::sequence::Counter;
use crate::db::{Db, group_messages, private_messages};
use crate::domain::ids::{MessageId, UserId};
use crate::domain::refusal::Refusal;

/// A row of a message table, as far as storing needs to know it.
pub trait MessageRow: Clone {
    const COUNTER: Counter;
    const LOCK: Locks;

    fn id(&self) -> MessageId;
    /// Sender and client message id: unique in the table.
    fn key(&self) -> (UserId, &str);
    /// What a repeat is compared by.
    fn content_hash(&self) -> &[u8];
    /// Gives the row its id and send time.
    fn place(&mut self, id: MessageId, send_time: i64);

    async fn insert_all_if_new(db: &mut Db, rows: &[Self]) -> QueryResult<usize>;
    async fn list_ids_between(db: &mut Db, first: MessageId, last: MessageId) -> QueryResult<Vec<MessageId>>;
    async fn list_by_client_ids(db: &mut Db, keys: &[(UserId, &str)]) -> QueryResult<Vec<Self>>;
}

macro_rules! message_row {
    ($module:ident, $row:ident, $counter:expr, $lock:expr) => {
        impl MessageRow for $module::$row {
            const COUNTER: Counter = $counter;
            const LOCK: Locks = $lock;

            fn id(&self) -> MessageId {
                self.id
            }

            fn key(&self) -> (UserId, &str) {
                (self.sender_id, &self.client_message_id)
            }

            fn content_hash(&self) -> &[u8] {
                &self.content_hash
            }

            fn place(&mut self, id: MessageId, send_time: i64) {
                self.id = id;
                self.send_time = send_time;
            }

            async fn insert_all_if_new(db: &mut Db, rows: &[Self]) -> QueryResult<usize> {
                $module::insert_all_if_new(db, rows).await
            }

            async fn list_ids_between(db: &mut Db, first: MessageId, last: MessageId) -> QueryResult<Vec<MessageId>> {
                $module::list_ids_between(db, first, last).await
            }

            async fn list_by_client_ids(db: &mut Db, keys: &[(UserId, &str)]) -> QueryResult<Vec<Self>> {
                $module::list_by_client_ids(db, keys).await
            }
        }
    };
}

message_row!(private_messages, PrivateMessageRow, Counter::Private, Locks::PRIVATE);
message_row!(group_messages, GroupMessageRow, Counter::Group, Locks::GROUP);

/// A message that somebody wants stored, after its checks.
pub struct Wanted<'a, R> {
    pub key: (UserId, &'a str),
    pub content_hash: &'a [u8],
    /// The row, without id and send time, or what the checks said. A repeat is answered even where they said no.
    pub row: Result<R, Refusal>,
}

/// What became of one of them.
pub struct Placed<R> {
    /// The id taken for it, which the stored row bears unless it was a repeat.
    pub id: Option<MessageId>,
    /// The row that is stored.
    pub outcome: Result<R, Refusal>,
    /// The row was stored before this call.
    pub is_repeat: bool,
}

/// What became of all of them.
pub struct Stored<R> {
    /// One for each, in order.
    pub placed: Vec<Placed<R>>,
    /// Rows that are new, in the order of their ids.
    pub new: Vec<R>,
    /// The newest id that existed before, as far as this call knows: at least every visible one.
    pub newest_before: MessageId,
}

/// Stores messages in their order. The first of two equal keys wins; the others are its repeats.
pub async fn store_all<R: MessageRow>(tx: &mut Tx<'_>, wanted: Vec<Wanted<'_, R>>) -> QueryResult<Stored<R>> {
    let mut taken = HashSet::new();
    let is_first: Vec<bool> = wanted.iter().map(|wanted| wanted.row.is_ok() && taken.insert(wanted.key)).collect();
    let mut rows = Vec::new();
    let mut ids = vec![None; wanted.len()];
    let mut newest_before = MessageId(i64::MAX);
    let count = is_first.iter().filter(|first| **first).count();
    if count > 0 {
        tx.lock(R::LOCK).await?;
        let range = tx.take_ids(R::COUNTER, count)?;
        newest_before = MessageId(range.first.0 - 1);
        let mut next = range.first;
        for ((wanted, is_first), id) in wanted.iter().zip(&is_first).zip(ids.iter_mut()) {
            if let (Ok(row), true) = (&wanted.row, is_first) {
                let mut row = row.clone();
                row.place(next, range.send_time);
                *id = Some(next);
                next = MessageId(next.0 + 1);
                rows.push(row);
            }
        }
    }
    let inserted = insert(tx, &rows).await?;
    if rows.len() == wanted.len() && inserted.len() == wanted.len() {
        // As nearly always: nothing was refused, nothing is a repeat.
        let placed = rows.iter().map(|row| Placed { id: Some(row.id()), outcome: Ok(row.clone()), is_repeat: false });
        return Ok(Stored { placed: placed.collect(), new: rows, newest_before });
    }
    let by_key = find_stored(tx, &wanted, &rows, &inserted).await?;
    let placed = wanted
        .into_iter()
        .zip(ids)
        .map(|(wanted, id)| {
            let stored = by_key.get(&(wanted.key.0, wanted.key.1.to_owned()));
            let is_repeat = stored.is_none_or(|row| id != Some(row.id()));
            Placed { id, outcome: outcome(wanted, stored), is_repeat }
        })
        .collect();
    rows.retain(|row| inserted.contains(&row.id()));
    Ok(Stored { placed, new: rows, newest_before })
}

/// Inserts rows; the ids of those that were new.
async fn insert<R: MessageRow>(tx: &mut Tx<'_>, rows: &[R]) -> QueryResult<HashSet<MessageId>> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(HashSet::new()) };
    let count = R::insert_all_if_new(tx.db, rows).await?;
    if count == rows.len() {
        return Ok(rows.iter().map(MessageRow::id).collect());
    }
    Ok(R::list_ids_between(tx.db, first.id(), last.id()).await?.into_iter().collect())
}

/// The row behind every key that the answers need.
async fn find_stored<R: MessageRow>(
    tx: &mut Tx<'_>,
    wanted: &[Wanted<'_, R>],
    rows: &[R],
    inserted: &HashSet<MessageId>,
) -> QueryResult<HashMap<(UserId, String), R>> {
    let (new, skipped): (Vec<&R>, Vec<&R>) = rows.iter().partition(|row| inserted.contains(&row.id()));
    let owned = |row: &R| (row.key().0, row.key().1.to_owned());
    let mut stored: HashMap<(UserId, String), R> = new.into_iter().map(|row| (owned(row), row.clone())).collect();
    let mut missing: Vec<(UserId, &str)> = skipped.iter().map(|row| row.key()).collect();
    missing.extend(wanted.iter().filter(|wanted| wanted.row.is_err()).map(|wanted| wanted.key));
    for row in R::list_by_client_ids(tx.db, &missing).await? {
        stored.entry(owned(&row)).or_insert(row);
    }
    if skipped.iter().any(|row| !stored.contains_key(&owned(row))) {
        // Neither new nor there under its key: its id exists already. Nothing may be answered as stored.
        return Err(Error::QueryBuilderError("a message was neither inserted nor found".into()));
    }
    Ok(stored)
}

/// The answer for one: the row of its key if that is the same message, else what the checks said.
fn outcome<R: MessageRow>(wanted: Wanted<'_, R>, stored: Option<&R>) -> Result<R, Refusal> {
    match (stored, wanted.row) {
        (Some(row), _) if row.content_hash() == wanted.content_hash => Ok(row.clone()),
        (Some(_), _) => Err(Refusal::ClientMessageIdReused),
        (None, Err(refusal)) => Err(refusal),
        // A row that passed its checks is stored, or its repeat is: `find_stored` has made sure.
        (None, Ok(row)) => Ok(row),
    }
}
