//! `system_oauth2_refresh_token` (one row a login) and `system_oauth2_access_token`. Tokens are stored as SHA-256.

use std::collections::HashMap;

use diesel::prelude::*;

use super::schema::system_oauth2_access_token as access;
use super::schema::system_oauth2_refresh_token as refresh;
use super::schema::system_users as users;
use super::{Db, RunQueryDsl, device_positions};
use crate::domain::ids::{LoginId, UserId};

/// SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// A token that exists: whose it is and until when. It may have expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Queryable)]
pub struct TokenRow {
    pub login: LoginId,
    pub user: UserId,
    pub expires_time: i64,
    pub user_status: i32,
}

pub async fn get_access(db: &mut Db, hash: &TokenHash) -> QueryResult<Option<TokenRow>> {
    access::table
        .inner_join(users::table.on(users::id.eq(access::user_id)))
        .filter(access::token_hash.eq(hash.to_vec()))
        .select((access::refresh_token_id, access::user_id, access::expires_time, users::status))
        .get_result(db)
        .await
        .optional()
}

pub async fn get_refresh(db: &mut Db, hash: &TokenHash) -> QueryResult<Option<TokenRow>> {
    refresh::table
        .inner_join(users::table.on(users::id.eq(refresh::user_id)))
        .filter(refresh::token_hash.eq(hash.to_vec()))
        .select((refresh::id, refresh::user_id, refresh::expires_time, users::status))
        .get_result(db)
        .await
        .optional()
}

/// A new login: a refresh token and the first access token made from it.
#[derive(Clone, Copy, Debug)]
pub struct NewLogin {
    pub user: UserId,
    pub refresh_hash: TokenHash,
    pub refresh_expires: i64,
    pub access_hash: TokenHash,
    pub access_expires: i64,
}

#[derive(Clone, Insertable)]
#[diesel(table_name = refresh, treat_none_as_default_value = false)]
struct RefreshRow {
    user_id: UserId,
    token_hash: Vec<u8>,
    expires_time: i64,
    create_time: i64,
}

#[derive(Clone, Insertable)]
#[diesel(table_name = access, treat_none_as_default_value = false)]
struct AccessRow {
    user_id: UserId,
    refresh_token_id: LoginId,
    token_hash: Vec<u8>,
    expires_time: i64,
    create_time: i64,
}

/// Adds logins with three statements, however many.
pub async fn insert_logins(db: &mut Db, logins: &[NewLogin], now: i64) -> QueryResult<()> {
    if logins.is_empty() {
        return Ok(());
    }
    let refresh_rows: Vec<RefreshRow> = logins
        .iter()
        .map(|login| RefreshRow {
            user_id: login.user,
            token_hash: login.refresh_hash.to_vec(),
            expires_time: login.refresh_expires,
            create_time: now,
        })
        .collect();
    super::insert_new_rows!(db, refresh::table, &refresh_rows)?;
    let hashes: Vec<Vec<u8>> = refresh_rows.into_iter().map(|row| row.token_hash).collect();
    let ids: Vec<(Vec<u8>, LoginId)> = refresh::table
        .filter(refresh::token_hash.eq_any(hashes))
        .select((refresh::token_hash, refresh::id))
        .load(db)
        .await?;
    let ids: HashMap<Vec<u8>, LoginId> = ids.into_iter().collect();
    let mut access_rows = Vec::with_capacity(logins.len());
    for login in logins {
        let id = ids.get(login.refresh_hash.as_slice()).ok_or(diesel::result::Error::NotFound)?;
        access_rows.push(AccessRow {
            user_id: login.user,
            refresh_token_id: *id,
            token_hash: login.access_hash.to_vec(),
            expires_time: login.access_expires,
            create_time: now,
        });
    }
    super::insert_new_rows!(db, access::table, &access_rows)?;
    Ok(())
}

/// Adds an access token to a login.
pub async fn insert_access(
    db: &mut Db,
    login: LoginId,
    user: UserId,
    (hash, expires): (TokenHash, i64),
    now: i64,
) -> QueryResult<usize> {
    let row = AccessRow {
        user_id: user,
        refresh_token_id: login,
        token_hash: hash.to_vec(),
        expires_time: expires,
        create_time: now,
    };
    diesel::insert_into(access::table).values(row).execute(db).await
}

/// Removes the access tokens of a login.
pub async fn delete_access_of_login(db: &mut Db, login: LoginId) -> QueryResult<usize> {
    diesel::delete(access::table.filter(access::refresh_token_id.eq(login))).execute(db).await
}

/// Which of these logins exist.
pub async fn list_existing(db: &mut Db, logins: Vec<LoginId>) -> QueryResult<Vec<LoginId>> {
    if logins.is_empty() {
        return Ok(Vec::new());
    }
    refresh::table.filter(refresh::id.eq_any(logins)).select(refresh::id).load(db).await
}

/// Ends a login: its refresh token, every access token made from it, and what is known of its devices.
pub async fn delete_login(db: &mut Db, login: LoginId) -> QueryResult<usize> {
    delete_access_of_login(db, login).await?;
    device_positions::delete_of_logins(db, vec![login]).await?;
    diesel::delete(refresh::table.filter(refresh::id.eq(login))).execute(db).await
}

/// Ends every login of a user.
pub async fn delete_logins_of_user(db: &mut Db, user: UserId) -> QueryResult<usize> {
    diesel::delete(access::table.filter(access::user_id.eq(user))).execute(db).await?;
    device_positions::delete_of_user(db, user).await?;
    diesel::delete(refresh::table.filter(refresh::user_id.eq(user))).execute(db).await
}

/// Removes up to `limit` tokens of each kind that expired before `time`, with the devices of the logins; how many tokens went.
pub async fn delete_expired(db: &mut Db, time: i64, limit: i64) -> QueryResult<usize> {
    let old_access: Vec<i64> =
        access::table.filter(access::expires_time.lt(time)).select(access::id).limit(limit).load(db).await?;
    let old_refresh: Vec<LoginId> =
        refresh::table.filter(refresh::expires_time.lt(time)).select(refresh::id).limit(limit).load(db).await?;
    let mut count = 0;
    if !old_access.is_empty() {
        count += diesel::delete(access::table.filter(access::id.eq_any(old_access))).execute(db).await?;
    }
    if !old_refresh.is_empty() {
        device_positions::delete_of_logins(db, old_refresh.clone()).await?;
        count += diesel::delete(refresh::table.filter(refresh::id.eq_any(old_refresh))).execute(db).await?;
    }
    Ok(count)
}
