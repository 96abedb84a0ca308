//! `system_users`: accounts. `username` is null for accounts that a business system made, `external_id` for others.

use diesel::prelude::*;
use diesel::sql_types::Text;

use super::page::contains;
use super::schema::system_users::{self, table};
use super::{Columns, Db, RunQueryDsl};
use crate::domain::ids::UserId;

/// `status`: may sign in.
pub const STATUS_ENABLED: i32 = 0;
/// `status`: may not sign in, and nothing that was signed in goes on.
pub const STATUS_DISABLED: i32 = 1;

/// An account. The password hash is not part of it.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = system_users)]
pub struct User {
    pub id: UserId,
    pub username: Option<String>,
    pub external_id: Option<String>,
    pub nickname: String,
    pub avatar: Option<String>,
    pub sex: i32,
    pub email: Option<String>,
    pub mobile: Option<String>,
    pub status: i32,
    pub login_ip: Option<String>,
    pub login_date: Option<i64>,
    pub create_time: i64,
}

/// A new account.
#[derive(Clone, Insertable)]
#[diesel(table_name = system_users, treat_none_as_default_value = false)]
pub struct NewUser {
    pub username: Option<String>,
    pub external_id: Option<String>,
    pub password: Option<String>,
    pub nickname: String,
    pub avatar: Option<String>,
    pub sex: i32,
    pub status: i32,
    pub create_time: i64,
    pub update_time: i64,
}

/// Profile fields to change; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, AsChangeset)]
#[diesel(table_name = system_users)]
pub struct ProfileChange {
    pub nickname: Option<String>,
    pub avatar: Option<String>,
    pub sex: Option<i32>,
    pub email: Option<String>,
    pub mobile: Option<String>,
    pub update_time: Option<i64>,
}

pub async fn get_by_id(db: &mut Db, id: UserId) -> QueryResult<Option<User>> {
    table.filter(system_users::id.eq(id)).select(User::columns()).first(db).await.optional()
}

pub async fn get_by_username(db: &mut Db, username: &str) -> QueryResult<Option<User>> {
    table.filter(system_users::username.eq(username)).select(User::columns()).first(db).await.optional()
}

/// The password hash of an account; `None` when the account is unknown or has no password.
pub async fn get_password(db: &mut Db, id: UserId) -> QueryResult<Option<String>> {
    let row: Option<Option<String>> =
        table.filter(system_users::id.eq(id)).select(system_users::password).first(db).await.optional()?;
    Ok(row.flatten())
}

/// Accounts by id, in no particular order; unknown ids are left out. At most as many rows as ids.
pub async fn list_by_ids(db: &mut Db, ids: &[UserId]) -> QueryResult<Vec<User>> {
    table.filter(system_users::id.eq_any(ids.to_vec())).select(User::columns()).load(db).await
}

/// Accounts made by the business system, by their external ids.
pub async fn list_by_external_ids(db: &mut Db, ids: &[String]) -> QueryResult<Vec<User>> {
    table.filter(system_users::external_id.eq_any(ids.to_vec())).select(User::columns()).load(db).await
}

diesel::define_sql_function! { fn lower(text: Text) -> Text; }

/// Accounts whose nickname contains `part` in whatever case (on SQLite that is so for ASCII letters only), by id, at
/// most `limit`.
pub async fn list_by_nickname(db: &mut Db, part: &str, limit: i64) -> QueryResult<Vec<User>> {
    table
        .filter(lower(system_users::nickname).like(lower(contains(part))).escape('!'))
        .order(system_users::id)
        .limit(limit)
        .select(User::columns())
        .load(db)
        .await
}

/// Inserts an account. A taken user name or external id is a unique violation.
pub async fn insert(db: &mut Db, user: &NewUser) -> QueryResult<usize> {
    diesel::insert_into(table).values(user).execute(db).await
}

/// Inserts accounts, skipping those whose external id exists; the number of new ones.
pub async fn insert_all_if_new(db: &mut Db, users: &[NewUser]) -> QueryResult<usize> {
    super::insert_new_rows!(db, table, users)
}

pub async fn update_profile(db: &mut Db, id: UserId, change: &ProfileChange) -> QueryResult<usize> {
    diesel::update(table.filter(system_users::id.eq(id))).set(change).execute(db).await
}

pub async fn update_password(db: &mut Db, id: UserId, password: &str, now: i64) -> QueryResult<usize> {
    diesel::update(table.filter(system_users::id.eq(id)))
        .set((system_users::password.eq(password), system_users::update_time.eq(now)))
        .execute(db)
        .await
}

pub async fn update_status(db: &mut Db, id: UserId, status: i32, now: i64) -> QueryResult<usize> {
    diesel::update(table.filter(system_users::id.eq(id)))
        .set((system_users::status.eq(status), system_users::update_time.eq(now)))
        .execute(db)
        .await
}

/// Notes when and from where an account signed in.
pub async fn update_login(db: &mut Db, id: UserId, address: &str, now: i64) -> QueryResult<usize> {
    diesel::update(table.filter(system_users::id.eq(id)))
        .set((system_users::login_ip.eq(address), system_users::login_date.eq(now)))
        .execute(db)
        .await
}
