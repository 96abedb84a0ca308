//! `system_user_permission`: what operators may do; one row for a user and permission.

use diesel::prelude::*;

use super::schema::system_user_permission::{self, table};
use super::schema::system_users as users;
use super::{Db, RunQueryDsl};
use crate::domain::ids::UserId;

#[derive(Clone, Insertable)]
#[diesel(table_name = system_user_permission, treat_none_as_default_value = false)]
struct NewPermission {
    user_id: UserId,
    permission: String,
    create_time: i64,
}

/// What is stored for a user, in no particular order.
pub async fn list_of_user(db: &mut Db, user: UserId) -> QueryResult<Vec<String>> {
    table.filter(system_user_permission::user_id.eq(user)).select(system_user_permission::permission).load(db).await
}

/// Gives a user permissions; those that he has already stay. How many are new.
pub async fn grant(db: &mut Db, user: UserId, permissions: &[&str], now: i64) -> QueryResult<usize> {
    let row =
        |permission: &&str| NewPermission { user_id: user, permission: (*permission).to_owned(), create_time: now };
    let rows: Vec<NewPermission> = permissions.iter().map(row).collect();
    super::insert_new_rows!(db, table, &rows)
}

/// Takes permissions from a user; how many he had of them.
pub async fn revoke(db: &mut Db, user: UserId, permissions: &[&str]) -> QueryResult<usize> {
    let permissions: Vec<String> = permissions.iter().map(|permission| (*permission).to_owned()).collect();
    diesel::delete(table)
        .filter(system_user_permission::user_id.eq(user))
        .filter(system_user_permission::permission.eq_any(permissions))
        .execute(db)
        .await
}

/// Takes everything from a user; how much that was.
pub async fn revoke_all(db: &mut Db, user: UserId) -> QueryResult<usize> {
    diesel::delete(table).filter(system_user_permission::user_id.eq(user)).execute(db).await
}

/// An operator's account, and one thing that he may do.
#[derive(Clone, Debug, PartialEq, Eq, Queryable)]
pub struct Granted {
    pub user: UserId,
    pub username: Option<String>,
    pub external_id: Option<String>,
    pub permission: String,
}

/// All operators with what they may do, by user, after (user, permission), at most `limit` rows.
pub async fn list_after(db: &mut Db, after: (UserId, &str), limit: i64) -> QueryResult<Vec<Granted>> {
    use system_user_permission::{permission, user_id};
    let (user, last) = after;
    table
        .inner_join(users::table.on(users::id.eq(user_id)))
        .filter(user_id.gt(user).or(user_id.eq(user).and(permission.gt(last.to_owned()))))
        .order((user_id.asc(), permission.asc()))
        .limit(limit)
        .select((user_id, users::username, users::external_id, permission))
        .load(db)
        .await
}
