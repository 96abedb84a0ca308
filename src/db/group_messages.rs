//! `im_group_message`: every group message once, whatever the number of members (`contract/02` section 8.2).

use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::page::PageQuery;
use super::schema::im_group_message::{self, table};
use super::{Backend, Columns, Db, RunQueryDsl, Walk, on_backend};
use crate::domain::content::ContentType;
use crate::domain::group_message::Span;
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::message::{RECEIPT_PENDING, STATUS_RECALLED};
use crate::domain::page::{Page, Paged, TimeRange};

/// A row as stored: content of recalled messages is kept, the receipt is only "none" or "asked for".
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = im_group_message, treat_none_as_default_value = false)]
pub struct GroupMessageRow {
    pub id: MessageId,
    pub client_message_id: String,
    pub sender_id: UserId,
    pub group_id: GroupId,
    pub type_: i32,
    pub content: String,
    pub content_hash: Vec<u8>,
    pub status: i32,
    pub receipt_status: i32,
    pub send_time: i64,
    /// Comma list.
    pub at_user_ids: Option<String>,
    /// Comma list of a directed message; null means all members at that time.
    pub receiver_user_ids: Option<String>,
}

impl GroupMessageRow {
    pub fn mentions(&self) -> Option<Vec<i64>> {
        self.at_user_ids.as_deref().map(numbers)
    }

    /// The receivers of a directed message.
    pub fn directed_to(&self) -> Option<Vec<UserId>> {
        self.receiver_user_ids.as_deref().map(|list| numbers(list).into_iter().map(UserId).collect())
    }

    /// Whether a user with these spans in the group sees the message: he was a member, and where it is directed, it is
    /// directed to him or is his own.
    pub fn is_visible_to(&self, user: UserId, spans: &[Span]) -> bool {
        let is_addressed =
            self.sender_id == user || self.directed_to().is_none_or(|receivers| receivers.contains(&user));
        is_addressed && spans.iter().any(|span| span.covers(self.id))
    }
}

fn numbers(list: &str) -> Vec<i64> {
    list.split(',').filter_map(|number| number.parse().ok()).collect()
}

/// A comma list; `None` for an absent one.
pub fn comma_list(numbers: Option<&[i64]>) -> Option<String> {
    numbers.map(|numbers| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
}

/// Inserts messages and skips those whose (sender, client id) exists; the number of new ones.
pub async fn insert_all_if_new(db: &mut Db, rows: &[GroupMessageRow]) -> QueryResult<usize> {
    super::insert_new_rows!(db, table, rows)
}

/// Which ids of a range exist.
pub async fn list_ids_between(db: &mut Db, first: MessageId, last: MessageId) -> QueryResult<Vec<MessageId>> {
    table.filter(im_group_message::id.between(first, last)).select(im_group_message::id).load(db).await
}

/// Messages by (sender, client id). May return a few more when different senders used the same client id.
pub async fn list_by_client_ids(db: &mut Db, keys: &[(UserId, &str)]) -> QueryResult<Vec<GroupMessageRow>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let senders: Vec<UserId> = keys.iter().map(|(sender, _)| *sender).collect();
    let ids: Vec<&str> = keys.iter().map(|(_, id)| *id).collect();
    table
        .filter(im_group_message::sender_id.eq_any(senders))
        .filter(im_group_message::client_message_id.eq_any(ids))
        .select(GroupMessageRow::columns())
        .load(db)
        .await
}

pub async fn get_by_id(db: &mut Db, id: MessageId) -> QueryResult<Option<GroupMessageRow>> {
    table.filter(im_group_message::id.eq(id)).select(GroupMessageRow::columns()).first(db).await.optional()
}

/// Messages by id, ascending; unknown ids are left out.
pub async fn list_by_ids(db: &mut Db, ids: Vec<MessageId>) -> QueryResult<Vec<GroupMessageRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    table
        .filter(im_group_message::id.eq_any(ids))
        .order(im_group_message::id)
        .select(GroupMessageRow::columns())
        .load(db)
        .await
}

/// Marks a message recalled; false when it is so already.
pub async fn mark_recalled(db: &mut Db, id: MessageId) -> QueryResult<bool> {
    let row = table.filter(im_group_message::id.eq(id)).filter(im_group_message::status.ne(STATUS_RECALLED));
    Ok(diesel::update(row).set(im_group_message::status.eq(STATUS_RECALLED)).execute(db).await? == 1)
}

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = BigInt)]
    id: MessageId,
}

async fn load_ids(db: &mut Db, sql: String) -> QueryResult<Vec<MessageId>> {
    let query = diesel::sql_query(sql);
    db.before_statement().await;
    let rows: Vec<IdRow> = on_backend!(db, conn => diesel_async::RunQueryDsl::load(query, conn).await)?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// The messages of a group, by id.
const OF_GROUP: &str = "idx_im_group_message_group";
/// Those of a group that ask for a receipt, by id.
const RECEIPTS_OF_GROUP: &str = "idx_im_group_message_receipt";

/// The lowest `limit` ids inside any of the spans with `after < id <= horizon`: one index seek of at most a page for
/// each span, merged. At most as many spans as SQLite allows terms in a compound SELECT.
pub async fn list_ids_in_spans(
    db: &mut Db,
    spans: &[(GroupId, Span)],
    after: MessageId,
    horizon: MessageId,
    limit: i64,
) -> QueryResult<Vec<MessageId>> {
    let backend = db.backend();
    if spans.is_empty() {
        return Ok(Vec::new());
    }
    let bounds = spans.iter().map(|(group, span)| (*group, span.from.max(after), span.to.min(horizon)));
    if backend == Backend::Postgres {
        // One plan for all: a UNION of 200 terms takes some 30 ms to plan.
        let bounds: Vec<String> =
            bounds.map(|(group, from, to)| format!("({group}::bigint,{from}::bigint,{to}::bigint)")).collect();
        let sql = format!(
            "SELECT m.id AS id FROM (VALUES {}) AS s (group_id, low, high) CROSS JOIN LATERAL (SELECT id \
             FROM im_group_message g WHERE (g.group_id, g.id) > (s.group_id, s.low) \
             AND (g.group_id, g.id) <= (s.group_id, s.high) ORDER BY g.group_id, g.id LIMIT {limit}) AS m \
             ORDER BY m.id LIMIT {limit}",
            bounds.join(",")
        );
        return load_ids(db, sql).await;
    }
    let seek = |(index, (group, from, to)): (usize, (GroupId, MessageId, MessageId))| {
        let walk = Walk { table: "im_group_message", index: OF_GROUP, key: &[("group_id", group.0)] };
        let (rows, order) = (walk.rows(backend, from.0, to.0), walk.order(backend, false));
        format!("SELECT id FROM (SELECT id FROM {rows} {order} LIMIT {limit}) AS s{index}")
    };
    let seeks: Vec<String> = bounds.enumerate().map(seek).collect();
    load_ids(db, format!("{} ORDER BY id LIMIT {limit}", seeks.join(" UNION ALL "))).await
}

/// The lowest `limit` ids that the user sees by his spans with `low < id <= high`. Reads at most all messages between,
/// and an entry for each span.
pub async fn list_ids_in_window(
    db: &mut Db,
    user: UserId,
    low: MessageId,
    high: MessageId,
    limit: i64,
) -> QueryResult<Vec<MessageId>> {
    // MariaDB cannot seek by a group of the other table and an id at once: it would read all of each group.
    let tables = match db.backend() {
        Backend::Mysql => {
            "im_group_message m FORCE INDEX (PRIMARY) STRAIGHT_JOIN im_group_member_span s \
             FORCE INDEX (uk_im_group_member_span)"
        }
        Backend::Sqlite | Backend::Postgres => "im_group_member_span s JOIN im_group_message m",
    };
    let sql = format!(
        "SELECT m.id AS id FROM {tables} ON m.group_id = s.group_id AND m.id > s.from_id AND m.id <= s.to_id \
         WHERE s.user_id = {user} AND s.to_id > {low} AND s.from_id < {high} AND m.id > {low} AND m.id <= {high} \
         ORDER BY m.id LIMIT {limit}"
    );
    load_ids(db, sql).await
}

/// History of a group inside one span, newest first, below `before`, without the rows that only announce a recall.
pub async fn list_before(
    db: &mut Db,
    group: GroupId,
    span: Span,
    before: MessageId,
    limit: i64,
) -> QueryResult<Vec<GroupMessageRow>> {
    let backend = db.backend();
    let walk = Walk { table: "im_group_message", index: OF_GROUP, key: &[("group_id", group.0)] };
    let up_to = span.to.0.min(before.0.saturating_sub(1));
    let (rows, order) = (walk.rows(backend, span.from.0, up_to), walk.order(backend, true));
    let recall = ContentType::Recall.number();
    let ids = load_ids(db, format!("SELECT id FROM {rows} AND type <> {recall} {order} LIMIT {limit}")).await?;
    let mut page = list_by_ids(db, ids).await?;
    page.reverse();
    Ok(page)
}

/// Messages of a group that ask for a receipt, with `low < id <= high`, the newest `limit`: id and sender.
pub async fn list_receipts_between(
    db: &mut Db,
    group: GroupId,
    low: MessageId,
    high: MessageId,
    limit: i64,
) -> QueryResult<Vec<(MessageId, UserId)>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        id: MessageId,
        #[diesel(sql_type = BigInt)]
        sender_id: UserId,
    }

    let backend = db.backend();
    let key = [("group_id", group.0), ("receipt_status", i64::from(RECEIPT_PENDING))];
    let walk = Walk { table: "im_group_message", index: RECEIPTS_OF_GROUP, key: &key };
    let (rows, order) = (walk.rows(backend, low.0, high.0), walk.order(backend, true));
    let query = diesel::sql_query(format!(
        "SELECT id, sender_id FROM {rows} AND status <> {STATUS_RECALLED} {order} LIMIT {limit}"
    ));
    db.before_statement().await;
    let rows: Vec<Row> = on_backend!(db, conn => diesel_async::RunQueryDsl::load(query, conn).await)?;
    Ok(rows.into_iter().map(|row| (row.id, row.sender_id)).collect())
}

/// The first message with at least this id, and its send time: a step of the search for the pull window.
pub async fn first_from(db: &mut Db, id: MessageId) -> QueryResult<Option<(MessageId, i64)>> {
    table
        .filter(im_group_message::id.ge(id))
        .order(im_group_message::id.asc())
        .select((im_group_message::id, im_group_message::send_time))
        .first(db)
        .await
        .optional()
}

/// Which messages a management page shows; `None` is no filter.
#[derive(Clone, Debug, Default)]
pub struct GroupMessageFilter {
    pub group_id: Option<i64>,
    pub sender_id: Option<i64>,
    pub content_type: Option<i64>,
    /// Part of the stored content, in whatever case.
    pub content: Option<String>,
    pub status: Option<i64>,
    pub send_time: TimeRange,
}

/// A management page, newest first, and how many messages there are.
pub async fn list_page(db: &mut Db, filter: &GroupMessageFilter, page: Page) -> QueryResult<Paged<GroupMessageRow>> {
    let Paged { list, total } = PageQuery::of("im_group_message")
        .equals("group_id", filter.group_id)
        .equals("sender_id", filter.sender_id)
        .equals("type", filter.content_type)
        .equals("status", filter.status)
        .between("send_time", filter.send_time)
        .contains("content", filter.content.as_deref())
        .load(db, page)
        .await?;
    let mut rows = list_by_ids(db, list.into_iter().map(MessageId).collect()).await?;
    rows.reverse();
    Ok(Paged { list: rows, total })
}
