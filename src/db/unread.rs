//! Counting unread messages from the tables, without reading them: what others sent, of types that count, above my
//! position. Each conversation is one index seek and at most [`MAX_COUNTED`] + 1 rows.

use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::schema::{im_friend, im_group_member};
use super::{Db, RunQueryDsl, Walk, on_backend};
use crate::domain::content::ContentType;
use crate::domain::group_message::Span;
use crate::domain::ids::{GroupId, UserId};
use crate::domain::message::STATUS_RECALLED;

/// Messages counted in one conversation; more are only "more".
pub const MAX_COUNTED: i64 = 1_000;
/// Conversations counted by one statement: SQLite allows 500 terms in a compound SELECT.
const CONVERSATIONS_PER_STATEMENT: usize = 200;

/// Part of a conversation to count: what lies above `after` and, in a group, inside a span.
#[derive(Clone, Copy, Debug)]
pub struct Part<T> {
    pub target: T,
    pub span: Span,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    target: i64,
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// Peers of a user, present friends and former ones, and whether he has silenced them.
pub async fn list_peers(db: &mut Db, user: UserId) -> QueryResult<Vec<(UserId, bool)>> {
    im_friend::table
        .filter(im_friend::user_id.eq(user))
        .order(im_friend::friend_user_id)
        .select((im_friend::friend_user_id, im_friend::silent))
        .load(db)
        .await
}

/// Groups that a user is or was in, and whether he has silenced them.
pub async fn list_groups(db: &mut Db, user: UserId) -> QueryResult<Vec<(GroupId, bool)>> {
    im_group_member::table
        .filter(im_group_member::user_id.eq(user))
        .order(im_group_member::group_id)
        .select((im_group_member::group_id, im_group_member::silent))
        .load(db)
        .await
}

/// Unread messages of private conversations; only those with some, each at most [`MAX_COUNTED`] + 1.
pub async fn count_private(db: &mut Db, user: UserId, parts: &[Part<UserId>]) -> QueryResult<Vec<(UserId, i64)>> {
    let backend = db.backend();
    let rows = |part: &Part<UserId>| {
        let key = [("sender_id", part.target.0), ("receiver_id", user.0)];
        let walk = Walk { table: "im_private_message", index: "idx_im_private_message_pair", key: &key };
        walk.rows(backend, part.span.from.0, part.span.to.0)
    };
    let counts = count(db, parts, "sender_id", rows).await?;
    Ok(counts.into_iter().map(|(target, number)| (UserId(target), number)).collect())
}

/// Unread messages of groups, a count for each part; only those with some, each at most [`MAX_COUNTED`] + 1.
pub async fn count_group(db: &mut Db, user: UserId, parts: &[Part<GroupId>]) -> QueryResult<Vec<(GroupId, i64)>> {
    let backend = db.backend();
    let rows = |part: &Part<GroupId>| {
        let key = [("group_id", part.target.0)];
        let walk = Walk { table: "im_group_message", index: "idx_im_group_message_group", key: &key };
        let rows = walk.rows(backend, part.span.from.0, part.span.to.0);
        let addressed = format!("(receiver_user_ids IS NULL OR CONCAT(',', receiver_user_ids, ',') LIKE '%,{user},%')");
        format!("{rows} AND sender_id <> {user} AND {addressed}")
    };
    let counts = count(db, parts, "group_id", rows).await?;
    Ok(counts.into_iter().map(|(target, number)| (GroupId(target), number)).collect())
}

/// Counts the rows of each part; `target` is the column that tells which part they are of.
async fn count<T>(
    db: &mut Db,
    parts: &[Part<T>],
    target: &str,
    rows: impl Fn(&Part<T>) -> String,
) -> QueryResult<Vec<(i64, i64)>> {
    let types: Vec<String> = ContentType::ALL
        .iter()
        .filter(|content_type| content_type.counts_as_unread())
        .map(|content_type| content_type.number().to_string())
        .collect();
    let types = types.join(",");
    let mut counts = Vec::new();
    for chunk in parts.chunks(CONVERSATIONS_PER_STATEMENT) {
        let terms: Vec<String> = chunk
            .iter()
            .enumerate()
            .map(|(index, part)| {
                let (rows, limit) = (rows(part), MAX_COUNTED + 1);
                // The target comes from a column, because PostgreSQL takes a constant for a smaller integer.
                format!(
                    "SELECT COALESCE(MAX({target}), 0) AS target, COUNT(*) AS number FROM (SELECT {target} FROM {rows} \
                     AND status <> {STATUS_RECALLED} AND type IN ({types}) LIMIT {limit}) AS c{index}"
                )
            })
            .collect();
        let query = diesel::sql_query(terms.join(" UNION ALL "));
        db.before_statement().await;
        let rows: Vec<CountRow> = on_backend!(db, conn => diesel_async::RunQueryDsl::load(query, conn).await)?;
        counts.extend(rows.into_iter().filter(|row| row.number > 0).map(|row| (row.target, row.number)));
    }
    Ok(counts)
}
