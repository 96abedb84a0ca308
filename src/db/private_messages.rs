//! `im_private_message`: every private message once, whatever the number of devices (`contract/02` section 8.1).

mod columns;
mod walk;

use diesel::prelude::*;

use self::columns::InsertColumns;
use self::walk::Walk;
use super::page::PageQuery;
use super::schema::im_private_message::{self, table};
use super::{Columns, Connection, Db, RunQueryDsl};
use crate::domain::content::ContentType;
use crate::domain::ids::{MessageId, UserId};
use crate::domain::message::STATUS_RECALLED;
use crate::domain::page::{Page, Paged, TimeRange};

/// A row as stored: content of recalled messages is kept, the receipt is only "none" or "asked for".
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = im_private_message, treat_none_as_default_value = false)]
pub struct PrivateMessageRow {
    pub id: MessageId,
    pub client_message_id: String,
    pub sender_id: UserId,
    pub receiver_id: UserId,
    pub type_: i32,
    pub content: String,
    pub content_hash: Vec<u8>,
    pub status: i32,
    pub receipt_status: i32,
    pub send_time: i64,
}

/// Inserts messages and skips those whose (sender, client id) exists; the number of new ones.
pub async fn insert_all_if_new(db: &mut Db, rows: &[PrivateMessageRow]) -> QueryResult<usize> {
    if let Connection::Postgres(conn) = &mut db.connection {
        return diesel_async::RunQueryDsl::execute(InsertColumns::of(rows), conn).await;
    }
    super::insert_new_rows!(db, table, rows)
}

/// Which ids of a range exist.
pub async fn list_ids_between(db: &mut Db, first: MessageId, last: MessageId) -> QueryResult<Vec<MessageId>> {
    table.filter(im_private_message::id.between(first, last)).select(im_private_message::id).load(db).await
}

/// Messages by (sender, client id). May return a few more when different senders used the same client id.
pub async fn list_by_client_ids(db: &mut Db, keys: &[(UserId, &str)]) -> QueryResult<Vec<PrivateMessageRow>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let senders: Vec<UserId> = keys.iter().map(|(sender, _)| *sender).collect();
    let ids: Vec<&str> = keys.iter().map(|(_, id)| *id).collect();
    table
        .filter(im_private_message::sender_id.eq_any(senders))
        .filter(im_private_message::client_message_id.eq_any(ids))
        .select(PrivateMessageRow::columns())
        .load(db)
        .await
}

pub async fn get_by_id(db: &mut Db, id: MessageId) -> QueryResult<Option<PrivateMessageRow>> {
    table.filter(im_private_message::id.eq(id)).select(PrivateMessageRow::columns()).first(db).await.optional()
}

pub async fn list_by_ids(db: &mut Db, ids: Vec<MessageId>) -> QueryResult<Vec<PrivateMessageRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    table.filter(im_private_message::id.eq_any(ids)).select(PrivateMessageRow::columns()).load(db).await
}

/// Sender and receiver of messages, for read reports.
pub async fn list_parties(db: &mut Db, ids: Vec<MessageId>) -> QueryResult<Vec<(MessageId, UserId, UserId)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    table
        .filter(im_private_message::id.eq_any(ids))
        .select((im_private_message::id, im_private_message::sender_id, im_private_message::receiver_id))
        .load(db)
        .await
}

/// The newest message of a conversation up to `ceiling`.
pub async fn newest_of_pair(db: &mut Db, a: UserId, b: UserId, ceiling: MessageId) -> QueryResult<Option<MessageId>> {
    let mut newest = None;
    for key in [[a, b], [b, a]] {
        let walk = Walk {
            backend: db.backend(),
            index: walk::PAIR,
            key: key.to_vec(),
            above: MessageId(0),
            up_to: ceiling,
            is_newest_first: true,
            without_type: None,
            limit: 1,
        };
        let rows: Vec<PrivateMessageRow> = walk.load(db).await?;
        newest = newest.max(rows.first().map(|row| row.id));
    }
    Ok(newest)
}

/// Marks a message recalled; false when it is so already.
pub async fn mark_recalled(db: &mut Db, id: MessageId) -> QueryResult<bool> {
    let row = table.filter(im_private_message::id.eq(id)).filter(im_private_message::status.ne(STATUS_RECALLED));
    Ok(diesel::update(row).set(im_private_message::status.eq(STATUS_RECALLED)).execute(db).await? == 1)
}

/// Messages that `user` sent or received with `after < id <= horizon`, ascending, at most `limit`: two index reads of
/// at most `limit` rows each.
pub async fn list_after(
    db: &mut Db,
    user: UserId,
    after: MessageId,
    horizon: MessageId,
    limit: i64,
) -> QueryResult<Vec<PrivateMessageRow>> {
    let mut page = Vec::new();
    for index in [walk::SENDER, walk::RECEIVER] {
        let walk = Walk {
            backend: db.backend(),
            index,
            key: vec![user],
            above: after,
            up_to: horizon,
            is_newest_first: false,
            without_type: None,
            limit,
        };
        let rows: Vec<PrivateMessageRow> = walk.load(db).await?;
        page.extend(rows);
    }
    page.sort_unstable_by_key(|row| row.id);
    page.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(page)
}

/// History of a conversation, newest first, below `before`, without the rows that only announce a recall.
pub async fn list_before(
    db: &mut Db,
    user: UserId,
    peer: UserId,
    before: MessageId,
    limit: i64,
) -> QueryResult<Vec<PrivateMessageRow>> {
    let mut page = Vec::new();
    for key in [[user, peer], [peer, user]] {
        let walk = Walk {
            backend: db.backend(),
            index: walk::PAIR,
            key: key.to_vec(),
            above: MessageId(0),
            up_to: MessageId(before.0.saturating_sub(1)),
            is_newest_first: true,
            without_type: Some(ContentType::Recall.number()),
            limit,
        };
        let rows: Vec<PrivateMessageRow> = walk.load(db).await?;
        page.extend(rows);
    }
    page.sort_unstable_by_key(|row| std::cmp::Reverse(row.id));
    page.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(page)
}

/// The first message with at least this id, and its send time: a step of the search for the pull window.
pub async fn first_from(db: &mut Db, id: MessageId) -> QueryResult<Option<(MessageId, i64)>> {
    table
        .filter(im_private_message::id.ge(id))
        .order(im_private_message::id.asc())
        .select((im_private_message::id, im_private_message::send_time))
        .first(db)
        .await
        .optional()
}

/// Which messages a management page shows; `None` is no filter.
#[derive(Clone, Debug, Default)]
pub struct PrivateMessageFilter {
    /// With the receiver: both directions of their conversation.
    pub sender_id: Option<i64>,
    pub receiver_id: Option<i64>,
    pub content_type: Option<i64>,
    /// Part of the stored content, in whatever case.
    pub content: Option<String>,
    pub status: Option<i64>,
    pub send_time: TimeRange,
}

/// A management page, newest first, and how many messages there are.
pub async fn list_page(
    db: &mut Db,
    filter: &PrivateMessageFilter,
    page: Page,
) -> QueryResult<Paged<PrivateMessageRow>> {
    let query = PageQuery::of("im_private_message");
    let query = match (filter.sender_id, filter.receiver_id) {
        // Nobody writes to himself, so this is both directions and nothing else.
        (Some(one), Some(other)) => query.one_of("sender_id", [one, other]).one_of("receiver_id", [one, other]),
        (sender, receiver) => query.equals("sender_id", sender).equals("receiver_id", receiver),
    };
    let Paged { list, total } = query
        .equals("type", filter.content_type)
        .equals("status", filter.status)
        .between("send_time", filter.send_time)
        .contains("content", filter.content.as_deref())
        .load(db, page)
        .await?;
    let rows = table
        .filter(im_private_message::id.eq_any(list.into_iter().map(MessageId).collect::<Vec<_>>()))
        .order(im_private_message::id.desc());
    Ok(Paged { list: rows.select(PrivateMessageRow::columns()).load(db).await?, total })
}
