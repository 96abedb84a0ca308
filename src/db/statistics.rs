//! Numbers over all users, groups and messages (`contract/05` E8). Each is one statement that reads what lies in its
//! window, so these run on the connection for operators.

use diesel::sql_types::BigInt;
use diesel::{QueryResult, QueryableByName};

use super::{Db, RunQueryDsl};
use crate::domain::calendar::DAY_MS;
use crate::domain::content::ContentType;
use crate::domain::message::STATUS_RECALLED;

/// A message table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    Private,
    Group,
}

/// Messages that were sent in `from <= time < to`, milliseconds. All of them have ids above `floor`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub messages: Messages,
    pub floor: i64,
    pub from: i64,
    pub to: i64,
}

impl Window {
    /// The rows of what users sent and did not recall, for after the SELECT list.
    fn rows(&self) -> String {
        let table = match self.messages {
            Messages::Private => "im_private_message",
            Messages::Group => "im_group_message",
        };
        let sent = ContentType::ALL.iter().filter(|kind| kind.is_normal()).map(|kind| kind.number().to_string());
        let types = sent.collect::<Vec<_>>().join(", ");
        let Window { floor, from, to, .. } = self;
        format!(
            "FROM {table} WHERE id > {floor} AND send_time >= {from} AND send_time < {to} AND type IN ({types}) \
             AND status <> {STATUS_RECALLED}"
        )
    }
}

/// When the day of a column's time began, in a zone so many milliseconds east of UTC.
fn day_of(column: &str, offset_ms: i64) -> String {
    format!("{column} - (({column} + ({offset_ms})) % {DAY_MS})")
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = BigInt)]
    item: i64,
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// What is counted, and how often.
async fn lines(db: &mut Db, sql: String) -> QueryResult<Vec<(i64, i64)>> {
    let lines: Vec<Line> = diesel::sql_query(sql).load(db).await?;
    Ok(lines.into_iter().map(|line| (line.item, line.number)).collect())
}

async fn number(db: &mut Db, source: &str) -> QueryResult<i64> {
    let counted = lines(db, format!("SELECT COUNT(*) AS item, COUNT(*) AS number {source}")).await?;
    Ok(counted.first().map_or(0, |(_, number)| *number))
}

pub async fn count_messages(db: &mut Db, window: &Window) -> QueryResult<i64> {
    number(db, &window.rows()).await
}

/// Messages by the beginning of their day; days without any are left out.
pub async fn count_messages_by_day(db: &mut Db, window: &Window, offset_ms: i64) -> QueryResult<Vec<(i64, i64)>> {
    let (day, rows) = (day_of("send_time", offset_ms), window.rows());
    lines(db, format!("SELECT day AS item, COUNT(*) AS number FROM (SELECT {day} AS day {rows}) AS days GROUP BY day"))
        .await
}

/// How many users sent something.
pub async fn count_senders(db: &mut Db, [one, other]: [&Window; 2]) -> QueryResult<i64> {
    let senders = format!("FROM (SELECT sender_id {} UNION SELECT sender_id {}) AS senders", one.rows(), other.rows());
    number(db, &senders).await
}

/// Users who sent something, by the beginning of the day.
pub async fn count_senders_by_day(
    db: &mut Db,
    [one, other]: [&Window; 2],
    offset_ms: i64,
) -> QueryResult<Vec<(i64, i64)>> {
    let day = day_of("send_time", offset_ms);
    let pairs = |window: &Window| format!("SELECT {day} AS day, sender_id {}", window.rows());
    let pairs = format!("{} UNION {}", pairs(one), pairs(other));
    lines(db, format!("SELECT day AS item, COUNT(*) AS number FROM ({pairs}) AS days GROUP BY day")).await
}

/// Messages by their type, ascending.
pub async fn count_messages_by_type(db: &mut Db, [one, other]: [&Window; 2]) -> QueryResult<Vec<(i64, i64)>> {
    let types = format!("SELECT type AS kind {} UNION ALL SELECT type AS kind {}", one.rows(), other.rows());
    let kind = "CAST(kind AS BIGINT)";
    let kind = if db.backend() == super::Backend::Mysql { "CAST(kind AS SIGNED)" } else { kind };
    lines(db, format!("SELECT {kind} AS item, COUNT(*) AS number FROM ({types}) AS kinds GROUP BY kind ORDER BY kind"))
        .await
}

/// Those who sent most, and how much.
pub async fn list_top_senders(db: &mut Db, [one, other]: [&Window; 2], limit: i64) -> QueryResult<Vec<(i64, i64)>> {
    let senders = format!("SELECT sender_id {} UNION ALL SELECT sender_id {}", one.rows(), other.rows());
    let sql = format!(
        "SELECT sender_id AS item, COUNT(*) AS number FROM ({senders}) AS senders GROUP BY sender_id \
         ORDER BY COUNT(*) DESC, sender_id LIMIT {limit}"
    );
    lines(db, sql).await
}

/// All accounts, also disabled ones.
pub async fn count_users(db: &mut Db) -> QueryResult<i64> {
    number(db, "FROM system_users").await
}

/// Accounts made in `from <= time < to`, by the beginning of the day.
pub async fn count_users_by_day(db: &mut Db, from: i64, to: i64, offset_ms: i64) -> QueryResult<Vec<(i64, i64)>> {
    let day = day_of("create_time", offset_ms);
    let users = format!("SELECT {day} AS day FROM system_users WHERE create_time >= {from} AND create_time < {to}");
    lines(db, format!("SELECT day AS item, COUNT(*) AS number FROM ({users}) AS days GROUP BY day")).await
}

/// Groups that are not dissolved.
pub async fn count_groups(db: &mut Db) -> QueryResult<i64> {
    number(db, "FROM im_group WHERE status = 0").await
}

/// Groups made in `from <= time < to`, whatever has become of them.
pub async fn count_new_groups(db: &mut Db, from: i64, to: i64) -> QueryResult<i64> {
    number(db, &format!("FROM im_group WHERE create_time >= {from} AND create_time < {to}")).await
}

/// How many groups that are not dissolved have how many active members.
pub async fn count_groups_by_size(db: &mut Db) -> QueryResult<Vec<(i64, i64)>> {
    let sizes = "SELECT COUNT(m.id) AS size FROM im_group g LEFT JOIN im_group_member m \
                 ON m.group_id = g.id AND m.status = 0 WHERE g.status = 0 GROUP BY g.id";
    lines(db, format!("SELECT size AS item, COUNT(*) AS number FROM ({sizes}) AS sizes GROUP BY size")).await
}
