//! The counter rows of `im_sequence` (`design.md` section 4).
//!
//! `private`, `group` and `channel` count message ids and carry the last `send_time`; `clock` counts state stamps;
//! `writer:<node>` holds the number of the last batch that this writer committed. Their row locks, taken first and
//! held until commit, are what makes id order and stamp order equal to commit order, on every database and across
//! nodes (I3, I4).

use diesel::backend::Backend as DieselBackend;
use diesel::dsl::max;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, HasSqlType, Text};

use super::schema::{
    im_conversation_read, im_friend, im_friend_request, im_group, im_group_member, im_group_message, im_group_request,
    im_private_message, im_sensitive_word, im_sequence,
};
use super::{Backend, Db, RunQueryDsl};

/// Ids skipped whenever a writer connects: MariaDB can show a commit before it is durable, so after a crash of its
/// host ids that somebody has seen must not be issued again.
const ID_LIFT: i64 = 65_536;
/// Milliseconds skipped on the state clock for the same reason.
const CLOCK_LIFT_MS: i64 = 1_000;
/// `writer:` rows of nodes that have not committed for this long are removed.
const WRITER_ROW_LIFE_MS: i64 = 7 * 24 * 3_600_000;

/// A counter row that commands lock. The order of the variants is the one order in which locks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    Clock,
    Private,
    Group,
    Channel,
}

impl Counter {
    pub const ALL: [Counter; 4] = [Counter::Clock, Counter::Private, Counter::Group, Counter::Channel];

    pub fn name(self) -> &'static str {
        match self {
            Counter::Clock => "clock",
            Counter::Private => "private",
            Counter::Group => "group",
            Counter::Channel => "channel",
        }
    }
}

/// The content of a counter row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Queryable)]
pub struct CounterValue {
    /// The last id, or the last stamp in milliseconds.
    pub value: i64,
    /// The highest `send_time` given out with an id; milliseconds.
    pub time: i64,
}

/// Locks a counter row until the end of the transaction and reads it.
pub async fn lock(db: &mut Db, counter: Counter) -> QueryResult<CounterValue> {
    lock_row(db, counter.name()).await
}

/// Locks the row of a writer, which waits until a transaction of that writer has ended; its last committed batch.
pub async fn lock_writer(db: &mut Db, row: &str) -> QueryResult<i64> {
    Ok(lock_row(db, row).await?.value)
}

async fn lock_row(db: &mut Db, row: &str) -> QueryResult<CounterValue> {
    LockRow { backend: db.backend(), name: row.to_owned() }.get_result(db).await
}

/// `SELECT … FOR UPDATE`, which diesel has not for all databases. As a type of its own it stays prepared, as SQL text would
/// not: a round trip less for every batch.
struct LockRow {
    backend: Backend,
    name: String,
}

impl Query for LockRow {
    type SqlType = (BigInt, BigInt);
}

impl QueryId for LockRow {
    type QueryId = ();
    // Its text depends on the database; prepared statements are found by the text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB> QueryFragment<DB> for LockRow
where
    DB: DieselBackend + HasSqlType<Text>,
    str: ToSql<Text, DB>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT value, time FROM im_sequence WHERE name = ");
        out.push_bind_param::<Text, _>(self.name.as_str())?;
        // SQLite has one writer, who holds the database since BEGIN IMMEDIATE.
        if self.backend != Backend::Sqlite {
            out.push_sql(" FOR UPDATE");
        }
        Ok(())
    }
}

/// Writes the counters that a transaction has moved, and the number of its batch, with one statement.
pub async fn store(db: &mut Db, rows: &[(String, CounterValue)]) -> QueryResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut values = String::new();
    let mut times = String::new();
    let mut names = String::new();
    for (name, counter) in rows {
        let separator = if names.is_empty() { "" } else { ", " };
        values.push_str(&format!(" WHEN '{name}' THEN {}", counter.value));
        times.push_str(&format!(" WHEN '{name}' THEN {}", counter.time));
        names.push_str(&format!("{separator}'{name}'"));
    }
    let sql = format!(
        "UPDATE im_sequence SET value = CASE name{values} ELSE value END, time = CASE name{times} ELSE time END \
         WHERE name IN ({names})"
    );
    db.run_text(&sql).await
}

/// The value of a message counter without a lock: no id above it is visible yet to whoever reads afterwards, and
/// every id up to it is (the horizon H of `design.md` section 7).
pub async fn horizon(db: &mut Db, counter: Counter) -> QueryResult<i64> {
    im_sequence::table.filter(im_sequence::name.eq(counter.name())).select(im_sequence::value).get_result(db).await
}

/// Makes sure that the row of this writer exists, and removes those of writers long gone. The last batch in the row.
pub async fn register_writer(db: &mut Db, row: &str, now: i64) -> QueryResult<i64> {
    let mine = im_sequence::table.filter(im_sequence::name.eq(row));
    let last: Option<i64> = mine.select(im_sequence::value).first(db).await.optional()?;
    if last.is_none() {
        diesel::insert_into(im_sequence::table)
            .values((im_sequence::name.eq(row), im_sequence::value.eq(0_i64), im_sequence::time.eq(now)))
            .execute(db)
            .await?;
    }
    diesel::delete(im_sequence::table)
        .filter(im_sequence::name.like("writer:%"))
        .filter(im_sequence::name.ne(row))
        .filter(im_sequence::time.lt(now - WRITER_ROW_LIFE_MS))
        .execute(db)
        .await?;
    Ok(last.unwrap_or(0))
}

/// Lifts every counter above whatever its table holds, in the caller's transaction; `now` in milliseconds.
pub async fn lift(db: &mut Db, now: i64) -> QueryResult<()> {
    let mut lifted = Vec::new();
    for counter in Counter::ALL {
        let row = lock(db, counter).await?;
        let lifted_row = match counter {
            Counter::Clock => {
                CounterValue { value: row.value.max(newest_stamp(db).await?).max(now) + CLOCK_LIFT_MS, time: row.time }
            }
            Counter::Private => {
                let (id, time) = newest_private(db).await?;
                CounterValue { value: row.value.max(id) + ID_LIFT, time: row.time.max(time) }
            }
            Counter::Group => {
                let (id, time) = newest_group(db).await?;
                CounterValue { value: row.value.max(id) + ID_LIFT, time: row.time.max(time) }
            }
            Counter::Channel => CounterValue { value: row.value + ID_LIFT, time: row.time },
        };
        lifted.push((counter.name().to_owned(), lifted_row));
    }
    store(db, &lifted).await
}

/// Id and `send_time` of the newest private message.
async fn newest_private(db: &mut Db) -> QueryResult<(i64, i64)> {
    use im_private_message::{id, send_time, table};
    let newest = table.order(id.desc()).select((id, send_time)).first(db).await.optional()?;
    Ok(newest.unwrap_or((0, 0)))
}

/// Id and `send_time` of the newest group message.
async fn newest_group(db: &mut Db) -> QueryResult<(i64, i64)> {
    use im_group_message::{id, send_time, table};
    let newest = table.order(id.desc()).select((id, send_time)).first(db).await.optional()?;
    Ok(newest.unwrap_or((0, 0)))
}

/// The highest stamp of any state table.
async fn newest_stamp(db: &mut Db) -> QueryResult<i64> {
    let stamps: [Option<i64>; 7] = [
        im_friend::table.select(max(im_friend::update_time)).get_result(db).await?,
        im_friend_request::table.select(max(im_friend_request::update_time)).get_result(db).await?,
        im_conversation_read::table.select(max(im_conversation_read::update_time)).get_result(db).await?,
        im_group::table.select(max(im_group::update_time)).get_result(db).await?,
        im_group_member::table.select(max(im_group_member::update_time)).get_result(db).await?,
        im_group_request::table.select(max(im_group_request::update_time)).get_result(db).await?,
        im_sensitive_word::table.select(max(im_sensitive_word::update_time)).get_result(db).await?,
    ];
    Ok(stamps.into_iter().flatten().max().unwrap_or(0))
}
