//! Logins and their tokens (`contract/01` section 6). Tokens are opaque: 32 hex digits, stored as SHA-256. A refresh
//! token is accepted wherever an access token is, which the web client's socket relies on.

use rand::Rng;
use sha2::{Digest, Sha256};

use super::Tx;
use crate::config::AuthConfig;
use crate::db::tokens::{self as table, NewLogin, TokenHash, TokenRow};
use crate::db::users::STATUS_ENABLED;
use crate::db::{Db, users};
use crate::domain::ids::{LoginId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::payload::LoginBody;

/// Longest text that is looked up as a token; ours have 32 characters.
const MAX_TOKEN_LENGTH: usize = 128;

/// Who a token speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: UserId,
    pub login: LoginId,
    /// When the token ends; milliseconds since 1970.
    pub expires_time: i64,
}

/// A freshly made token and what is stored of it.
#[derive(Clone)]
pub struct FreshToken {
    pub text: String,
    pub hash: TokenHash,
}

impl FreshToken {
    pub fn generate() -> FreshToken {
        let text = format!("{:032x}", rand::rng().random::<u128>());
        FreshToken { hash: hash_token(&text), text }
    }
}

/// The tokens of a login that is about to be stored.
#[derive(Clone)]
pub struct FreshLogin {
    pub refresh: FreshToken,
    pub access: FreshToken,
}

impl FreshLogin {
    pub fn generate() -> FreshLogin {
        FreshLogin { refresh: FreshToken::generate(), access: FreshToken::generate() }
    }

    fn row(&self, user: UserId, now: i64, config: &AuthConfig) -> NewLogin {
        NewLogin {
            user,
            refresh_hash: self.refresh.hash,
            refresh_expires: now.saturating_add(config.refresh_token_ttl_s.saturating_mul(1_000)),
            access_hash: self.access.hash,
            access_expires: now.saturating_add(config.access_token_ttl_s.saturating_mul(1_000)),
        }
    }
}

pub fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// The hash of what somebody presents as a token.
///
/// # Errors
/// `Unauthenticated` when its length alone says that it is none.
pub fn hash_presented(token: &str) -> Result<TokenHash, AppError> {
    if token.is_empty() || token.len() > MAX_TOKEN_LENGTH {
        return Err(AppError::Unauthenticated);
    }
    Ok(hash_token(token))
}

/// Who the token speaks for: an access token or a refresh token, unexpired, of an enabled account.
///
/// # Errors
/// `Unauthenticated` for anything else.
pub async fn authenticate(db: &mut Db, hash: &TokenHash, now: i64) -> Result<Identity, AppError> {
    let is_valid = |row: &TokenRow| row.expires_time > now && row.user_status == STATUS_ENABLED;
    let mut row = table::get_access(db, hash).await?.filter(is_valid);
    if row.is_none() {
        row = table::get_refresh(db, hash).await?.filter(is_valid);
    }
    let row = row.ok_or(AppError::Unauthenticated)?;
    Ok(Identity { user: row.user, login: row.login, expires_time: row.expires_time })
}

/// Stores logins for users, one each; the answers in their order.
pub async fn create_logins(tx: &mut Tx<'_>, logins: &[(UserId, FreshLogin)]) -> Result<Vec<LoginBody>, AppError> {
    let now = tx.now;
    let auth = &tx.config.auth;
    let rows: Vec<NewLogin> = logins.iter().map(|(user, fresh)| fresh.row(*user, now, auth)).collect();
    table::insert_logins(tx.db, &rows, now).await?;
    let bodies = logins.iter().zip(rows).map(|((user, fresh), row)| LoginBody {
        user_id: *user,
        access_token: fresh.access.text.clone(),
        refresh_token: fresh.refresh.text.clone(),
        expires_time: row.access_expires,
    });
    Ok(bodies.collect())
}

/// A new access token for a refresh token, in place of the earlier ones (`contract/01` section 6.5).
pub async fn refresh_login(tx: &mut Tx<'_>, refresh_token: &str, access: &FreshToken) -> Result<LoginBody, AppError> {
    let now = tx.now;
    let row = table::get_refresh(tx.db, &hash_token(refresh_token)).await?.ok_or(AppError::RefreshTokenInvalid)?;
    if row.expires_time <= now {
        return Err(AppError::RefreshTokenExpired);
    }
    if row.user_status != STATUS_ENABLED {
        return Err(Refusal::AccountDisabled.into());
    }
    table::delete_access_of_login(tx.db, row.login).await?;
    tx.replace_tokens(row.user);
    let expires = now.saturating_add(tx.config.auth.access_token_ttl_s.saturating_mul(1_000));
    table::insert_access(tx.db, row.login, row.user, (access.hash, expires), now).await?;
    Ok(LoginBody {
        user_id: row.user,
        access_token: access.text.clone(),
        refresh_token: refresh_token.to_owned(),
        expires_time: expires,
    })
}

/// Ends the login of an access token and closes its sockets. Anything else, a refresh token too, changes nothing
/// (`contract/01` section 6.4).
pub async fn logout(tx: &mut Tx<'_>, token: &str) -> Result<(), AppError> {
    if let Some(row) = table::get_access(tx.db, &hash_token(token)).await? {
        table::delete_login(tx.db, row.login).await?;
        tx.end_login(row.user, Some(row.login));
    }
    Ok(())
}

/// Ends every login of a user and closes all his sockets.
pub async fn end_all_logins(tx: &mut Tx<'_>, user: UserId) -> Result<(), AppError> {
    table::delete_logins_of_user(tx.db, user).await?;
    tx.end_login(user, None);
    Ok(())
}

/// Enables or disables an account; disabling ends its logins.
pub async fn set_enabled(tx: &mut Tx<'_>, user: UserId, enabled: bool) -> Result<(), AppError> {
    let status = if enabled { STATUS_ENABLED } else { users::STATUS_DISABLED };
    users::update_status(tx.db, user, status, tx.now).await?;
    if !enabled {
        end_all_logins(tx, user).await?;
    }
    Ok(())
}
