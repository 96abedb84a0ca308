//! Accounts: registering, signing in, profile (`contract/01` sections 6 and 7).

use super::Tx;
use super::tokens::{self, FreshLogin};
use crate::db::Db;
use crate::db::users::{self, NewUser, STATUS_ENABLED};
pub use crate::db::users::{ProfileChange, User};
use crate::domain::ids::UserId;
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::payload::LoginBody;

/// A checked registration. The password is hashed already.
#[derive(Clone)]
pub struct Registration {
    pub username: String,
    pub nickname: String,
    pub password_hash: String,
}

/// Makes an account and signs it in.
pub async fn register(
    tx: &mut Tx<'_>,
    registration: &Registration,
    login: &FreshLogin,
    address: &str,
) -> Result<LoginBody, AppError> {
    if users::get_by_username(tx.db, &registration.username).await?.is_some() {
        return Err(Refusal::UsernameTaken.into());
    }
    let user = NewUser {
        username: Some(registration.username.clone()),
        external_id: None,
        password: Some(registration.password_hash.clone()),
        nickname: registration.nickname.clone(),
        avatar: None,
        sex: 0,
        status: STATUS_ENABLED,
        create_time: tx.now,
        update_time: tx.now,
    };
    match users::insert(tx.db, &user).await {
        // Another node was faster.
        Err(error) if crate::db::is_unique_violation(&error) => return Err(Refusal::UsernameTaken.into()),
        other => other?,
    };
    let user = users::get_by_username(tx.db, &registration.username).await?;
    let user = user.ok_or_else(|| AppError::Internal("a new account was not found".into()))?;
    sign_in_as(tx, user.id, login, address).await
}

/// The account of a user name and its password hash. `None` for accounts without a password.
pub async fn find_credentials(db: &mut Db, username: &str) -> Result<Option<(UserId, String)>, AppError> {
    let Some(user) = users::get_by_username(db, username).await? else { return Ok(None) };
    Ok(users::get_password(db, user.id).await?.map(|hash| (user.id, hash)))
}

/// Signs in an account whose password was found right against `password_hash`. Refused when it has changed since.
pub async fn login(
    tx: &mut Tx<'_>,
    user: UserId,
    password_hash: &str,
    login: &FreshLogin,
    address: &str,
) -> Result<LoginBody, AppError> {
    let account = users::get_by_id(tx.db, user).await?.ok_or(Refusal::BadCredentials)?;
    if users::get_password(tx.db, user).await?.as_deref() != Some(password_hash) {
        return Err(Refusal::BadCredentials.into());
    }
    if account.status != STATUS_ENABLED {
        return Err(Refusal::AccountDisabled.into());
    }
    sign_in_as(tx, user, login, address).await
}

async fn sign_in_as(tx: &mut Tx<'_>, user: UserId, login: &FreshLogin, address: &str) -> Result<LoginBody, AppError> {
    users::update_login(tx.db, user, address, tx.now).await?;
    let bodies = tokens::create_logins(tx, &[(user, login.clone())]).await?;
    bodies.into_iter().next().ok_or_else(|| AppError::Internal("a new login has no answer".into()))
}

/// Replaces the password and ends every login of the account, also the one that asks.
pub async fn change_password(tx: &mut Tx<'_>, user: UserId, old_hash: &str, new_hash: &str) -> Result<(), AppError> {
    if users::get_password(tx.db, user).await?.as_deref() != Some(old_hash) {
        return Err(Refusal::WrongOldPassword.into());
    }
    users::update_password(tx.db, user, new_hash, tx.now).await?;
    tokens::end_all_logins(tx, user).await
}

/// Changes profile fields of my own account. Whether that changed what my friends see of me. Needs the clock, under
/// which no other change can come between the look at the old profile and the new one.
pub async fn update_profile(tx: &mut Tx<'_>, user: UserId, change: &ProfileChange) -> Result<bool, AppError> {
    let old = users::get_by_id(tx.db, user).await?;
    let change = ProfileChange { update_time: Some(tx.now), ..change.clone() };
    users::update_profile(tx.db, user, &change).await?;
    Ok(old.is_some_and(|old| is_visible_change(&old, &change)))
}

/// Whether others see the difference: another nickname or another avatar.
fn is_visible_change(old: &User, change: &ProfileChange) -> bool {
    let is_renamed = change.nickname.as_ref().is_some_and(|nickname| *nickname != old.nickname);
    let has_new_avatar = change.avatar.is_some() && change.avatar != old.avatar;
    is_renamed || has_new_avatar
}

/// The password hash of an account; `None` for accounts without a password.
pub async fn get_password_hash(db: &mut Db, user: UserId) -> Result<Option<String>, AppError> {
    Ok(users::get_password(db, user).await?)
}

/// Enabled accounts among the first `limit` whose nickname contains `part`.
pub async fn find_by_nickname(db: &mut Db, part: &str, limit: i64) -> Result<Vec<User>, AppError> {
    let mut found = users::list_by_nickname(db, part, limit).await?;
    found.retain(|user| user.status == STATUS_ENABLED);
    Ok(found)
}

/// An account, for its owner or for others: the caller decides what to show.
pub async fn get_user(db: &mut Db, id: UserId) -> Result<Option<User>, AppError> {
    Ok(users::get_by_id(db, id).await?)
}
