//! `im_friend`: one directed row a side (`contract/03` section 8).

use std::collections::HashMap;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Integer};

use super::schema::im_friend::{self, table};
use super::{Backend, Db, RunQueryDsl, on_backend};
use crate::domain::friendship::{ACTIVE, Side};
use crate::domain::ids::UserId;

/// What a row becomes when its owner gains the friend (again): remark, source, and everything else reset.
#[derive(Clone, Debug)]
pub struct NewFriend<'a> {
    pub user: UserId,
    pub friend: UserId,
    pub display_name: &'a str,
    pub add_source: Option<i32>,
    pub stamp: i64,
}

/// The row of `user` about `friend`.
pub async fn get_side(db: &mut Db, user: UserId, friend: UserId) -> QueryResult<Option<Side>> {
    let row: Option<(i32, bool)> = table
        .filter(im_friend::user_id.eq(user))
        .filter(im_friend::friend_user_id.eq(friend))
        .select((im_friend::status, im_friend::blocked))
        .first(db)
        .await
        .optional()?;
    Ok(row.map(|(status, blocked)| Side { is_active: status == ACTIVE, has_blocked: blocked }))
}

/// The rows of many (user, friend) pairs with one statement, an index look-up each.
pub async fn list_sides(db: &mut Db, pairs: &[(UserId, UserId)]) -> QueryResult<HashMap<(UserId, UserId), Side>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        user_id: i64,
        #[diesel(sql_type = BigInt)]
        friend_user_id: i64,
        #[diesel(sql_type = Integer)]
        status: i32,
        #[diesel(sql_type = Bool)]
        blocked: bool,
    }

    let mut unique = pairs.to_vec();
    unique.sort_unstable();
    unique.dedup();
    if unique.is_empty() {
        return Ok(HashMap::new());
    }
    let query = diesel::sql_query(format!(
        "WITH pairs AS ({}) SELECT f.user_id, f.friend_user_id, f.status, f.blocked FROM pairs p \
         JOIN im_friend f ON f.user_id = p.u AND f.friend_user_id = p.f",
        pair_rows(db.backend(), &unique)
    ));
    db.before_statement().await;
    let rows: Vec<Row> = on_backend!(db, conn => diesel_async::RunQueryDsl::load(query, conn).await)?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let side = Side { is_active: row.status == ACTIVE, has_blocked: row.blocked };
            ((UserId(row.user_id), UserId(row.friend_user_id)), side)
        })
        .collect())
}

/// The pairs as a table of constants. SQLite allows only 500 terms in a compound SELECT but any number of VALUES rows;
/// MySQL and MariaDB have no common form of VALUES.
fn pair_rows(backend: Backend, pairs: &[(UserId, UserId)]) -> String {
    let mut sql = String::with_capacity(pairs.len() * 24 + 64);
    match backend {
        Backend::Sqlite | Backend::Postgres => {
            sql.push_str("SELECT column1 AS u, column2 AS f FROM (VALUES ");
            for (index, (user, friend)) in pairs.iter().enumerate() {
                sql.push_str(if index == 0 { "" } else { "," });
                // PostgreSQL casts before it negates, and the smallest number has no positive counterpart.
                sql.push_str(&format!("(({user})::bigint,({friend})::bigint)"));
            }
            sql.push_str(") AS v");
            if backend == Backend::Sqlite {
                sql = sql.replace("::bigint", "");
            }
        }
        Backend::Mysql => {
            for (index, (user, friend)) in pairs.iter().enumerate() {
                sql.push_str(if index == 0 { "SELECT " } else { " UNION ALL SELECT " });
                sql.push_str(&format!("{user} AS u,{friend} AS f"));
            }
        }
    }
    sql
}

/// Makes `user`'s row about `friend` an active friend by the life cycle of `contract/03` section 1: a missing or
/// deleted row starts anew, an active one is left as it is. Whether something changed.
pub async fn become_friend(db: &mut Db, new: &NewFriend<'_>) -> QueryResult<bool> {
    let status: Option<i32> = table
        .filter(im_friend::user_id.eq(new.user))
        .filter(im_friend::friend_user_id.eq(new.friend))
        .select(im_friend::status)
        .first(db)
        .await
        .optional()?;
    match status {
        Some(ACTIVE) => Ok(false),
        Some(_) => revive(db, new).await,
        None => insert(db, new).await,
    }
}

async fn revive(db: &mut Db, new: &NewFriend<'_>) -> QueryResult<bool> {
    let row = table.filter(im_friend::user_id.eq(new.user)).filter(im_friend::friend_user_id.eq(new.friend));
    diesel::update(row)
        .set((
            im_friend::status.eq(ACTIVE),
            im_friend::silent.eq(false),
            im_friend::pinned.eq(false),
            im_friend::blocked.eq(false),
            im_friend::display_name.eq(new.display_name),
            im_friend::add_source.eq(new.add_source),
            im_friend::add_time.eq(Some(new.stamp)),
            im_friend::delete_time.eq(None::<i64>),
            im_friend::update_time.eq(new.stamp),
        ))
        .execute(db)
        .await?;
    Ok(true)
}

async fn insert(db: &mut Db, new: &NewFriend<'_>) -> QueryResult<bool> {
    diesel::insert_into(table)
        .values((
            im_friend::user_id.eq(new.user),
            im_friend::friend_user_id.eq(new.friend),
            im_friend::display_name.eq(new.display_name),
            im_friend::add_source.eq(new.add_source),
            im_friend::status.eq(ACTIVE),
            im_friend::add_time.eq(Some(new.stamp)),
            im_friend::create_time.eq(new.stamp),
            im_friend::update_time.eq(new.stamp),
        ))
        .execute(db)
        .await?;
    Ok(true)
}
