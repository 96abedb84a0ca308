//! `im_conversation_read`: how far each user has read each conversation; the only authority for unread counts and
//! receipts (I6). Positions only rise.

use std::collections::HashMap;

use diesel::prelude::*;

use super::schema::im_conversation_read::{self, table};
use super::{Backend, Columns, Db, RunQueryDsl};
use crate::domain::ids::{MessageId, UserId};

/// A read position.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = im_conversation_read)]
pub struct ConversationRead {
    pub id: i64,
    pub conversation_type: i32,
    pub target_id: i64,
    pub message_id: MessageId,
    pub update_time: i64,
}

/// Whose position in which conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PositionKey {
    pub user: UserId,
    pub conversation_type: i32,
    /// Peer, group or channel.
    pub target: i64,
}

/// A position that rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    pub key: PositionKey,
    pub message: MessageId,
}

pub async fn get(db: &mut Db, key: PositionKey) -> QueryResult<Option<MessageId>> {
    table
        .filter(im_conversation_read::user_id.eq(key.user))
        .filter(im_conversation_read::conversation_type.eq(key.conversation_type))
        .filter(im_conversation_read::target_id.eq(key.target))
        .select(im_conversation_read::message_id)
        .first(db)
        .await
        .optional()
}

/// Positions of `users` towards `targets` (any combination of them), in conversations of one type.
pub async fn list_positions(
    db: &mut Db,
    conversation_type: i32,
    users: Vec<UserId>,
    targets: Vec<i64>,
) -> QueryResult<HashMap<PositionKey, MessageId>> {
    if users.is_empty() || targets.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(UserId, i64, MessageId)> = table
        .filter(im_conversation_read::user_id.eq_any(users))
        .filter(im_conversation_read::conversation_type.eq(conversation_type))
        .filter(im_conversation_read::target_id.eq_any(targets))
        .select((im_conversation_read::user_id, im_conversation_read::target_id, im_conversation_read::message_id))
        .load(db)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(user, target, message)| (PositionKey { user, conversation_type, target }, message))
        .collect())
}

/// Everybody's position in one conversation.
pub async fn list_of_target(
    db: &mut Db,
    conversation_type: i32,
    target: i64,
) -> QueryResult<HashMap<UserId, MessageId>> {
    let rows: Vec<(UserId, MessageId)> = table
        .filter(im_conversation_read::conversation_type.eq(conversation_type))
        .filter(im_conversation_read::target_id.eq(target))
        .select((im_conversation_read::user_id, im_conversation_read::message_id))
        .load(db)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Raises positions with one statement; a row that is higher already is left alone. All get the same stamp.
pub async fn raise_all(db: &mut Db, advances: &[Advance], stamp: i64) -> QueryResult<()> {
    if advances.is_empty() {
        return Ok(());
    }
    let mut rows = advances.to_vec();
    rows.sort_unstable_by_key(|advance| advance.key);
    let values: Vec<String> = rows
        .iter()
        .map(|Advance { key, message }| {
            format!("({},{},{},{message},{stamp},{stamp})", key.user, key.conversation_type, key.target)
        })
        .collect();
    let update = match db.backend() {
        Backend::Sqlite | Backend::Postgres => {
            "ON CONFLICT (user_id, conversation_type, target_id) DO UPDATE SET message_id = excluded.message_id, \
             read_time = excluded.read_time, update_time = excluded.update_time \
             WHERE excluded.message_id > im_conversation_read.message_id"
        }
        // MySQL assigns left to right and sees its own writes: the compared column comes last.
        Backend::Mysql => {
            "ON DUPLICATE KEY UPDATE read_time = IF(VALUES(message_id) > message_id, VALUES(read_time), read_time), \
             update_time = IF(VALUES(message_id) > message_id, VALUES(update_time), update_time), \
             message_id = GREATEST(VALUES(message_id), message_id)"
        }
    };
    let sql = format!(
        "INSERT INTO im_conversation_read (user_id, conversation_type, target_id, message_id, read_time, update_time) \
         VALUES {} {update}",
        values.join(",")
    );
    db.run_text(&sql).await
}

/// A user's positions after the cursor (stamp, id), ascending by it.
pub async fn list_after(
    db: &mut Db,
    user: UserId,
    cursor: Option<(i64, i64)>,
    limit: i64,
) -> QueryResult<Vec<ConversationRead>> {
    use im_conversation_read::{id, update_time, user_id};
    let (time, last) = cursor.unwrap_or((i64::MIN, 0));
    table
        .filter(user_id.eq(user))
        .filter(update_time.ge(time))
        .filter(update_time.gt(time).or(id.gt(last)))
        .order((update_time.asc(), id.asc()))
        .limit(limit)
        .select(ConversationRead::columns())
        .load(db)
        .await
}
