//! Registering, signing in and out (`contract/01` section 6).

use actix_web::{HttpRequest, web};
use serde::{Deserialize, Serialize};

use super::AppState;
use super::caller::{Caller, Visitor, presented_token};
use super::input::{Body, Params, check_text};
use super::manager::{Menu, menus};
use super::response::{Answer, Reply};
use crate::domain::ids::UserId;
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::payload::LoginBody;
use crate::service::Locks;
use crate::service::accounts::{self, Registration};
use crate::service::passwords::{hash_password, verify_password};
use crate::service::permissions;
use crate::service::tokens::{self, FreshLogin, FreshToken};

#[derive(Deserialize)]
pub struct LoginRequest {
    username: String,
    password: String,
}

#[derive(Deserialize)]
pub struct RegisterRequest {
    username: String,
    nickname: String,
    password: String,
}

fn check_username(name: &str) -> Result<(), AppError> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_plain || !(4..=30).contains(&name.len()) {
        return Err(AppError::Malformed("parameter incorrect: username must be 4 to 30 letters and digits".into()));
    }
    Ok(())
}

/// Passwords have 4 to 16 characters (`contract/01` section 6.3).
pub fn check_password(password: &str) -> Result<(), AppError> {
    if !(4..=16).contains(&password.encode_utf16().count()) {
        return Err(AppError::Malformed("parameter incorrect: password must have 4 to 16 characters".into()));
    }
    Ok(())
}

/// POST `/system/auth/register`.
pub async fn register(
    state: web::Data<AppState>,
    visitor: Visitor,
    Body(body): Body<RegisterRequest>,
) -> Answer<LoginBody> {
    if !state.config.registration_open() {
        return Err(Refusal::RegistrationClosed.into());
    }
    check_username(&body.username)?;
    check_password(&body.password)?;
    check_text("nickname", &body.nickname, 30)?;
    let now = state.clock.now();
    let is_limited = !state.config.listen.ip().is_loopback();
    if is_limited && state.registrations.add(visitor.address, now) > state.config.auth.max_registrations {
        return Err(AppError::TooManyRequests);
    }
    let RegisterRequest { username, nickname, password } = body;
    let password_hash = state.passwords.run(move || hash_password(&password)).await??;
    let registration = Registration { username, nickname, password_hash };
    let (login, address) = (FreshLogin::generate(), visitor.address.to_string());
    let answer = state
        .writer
        .run(None, "account.register", Locks::NONE, async move |tx| {
            accounts::register(tx, &registration, &login, &address).await
        })
        .await?;
    Ok(Reply(answer))
}

/// POST `/system/auth/login`. Only failures count towards the limit of an account and address.
pub async fn login(state: web::Data<AppState>, visitor: Visitor, Body(body): Body<LoginRequest>) -> Answer<LoginBody> {
    check_username(&body.username)?;
    check_password(&body.password)?;
    let key = (body.username.clone(), visitor.address);
    let now = state.clock.now();
    if state.failed_logins.count(&key, now) >= state.config.auth.max_failures {
        return Err(AppError::TooManyRequests);
    }
    let username = body.username;
    let found = state.readers.run(async move |db| accounts::find_credentials(db, &username).await).await?;
    // An unknown name takes as long as a wrong password, so that time does not tell which names exist.
    let (user, hash) = found.map_or_else(|| (None, DUMMY_HASH.to_owned()), |(user, hash)| (Some(user), hash));
    let (password, stored) = (body.password, hash.clone());
    let is_right = state.passwords.run(move || verify_password(&password, &stored)).await?;
    let Some(user) = user.filter(|_| is_right) else {
        state.failed_logins.add(key, now);
        return Err(Refusal::BadCredentials.into());
    };
    let (fresh, address) = (FreshLogin::generate(), visitor.address.to_string());
    let answer = state
        .writer
        .run(Some(user), "account.login", Locks::NONE, async move |tx| {
            accounts::login(tx, user, &hash, &fresh, &address).await
        })
        .await?;
    state.failed_logins.forget(&key);
    Ok(Reply(answer))
}

/// The hash of a password that nobody has.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bnVkZ2VudWRnZW51ZGdl$8sHKDjmKDkqHfHKbZMTjBLDnkLh0tuRKPJwhRJGjuQE";

/// POST `/system/auth/logout`. Succeeds whatever the token is.
pub async fn logout(state: web::Data<AppState>, _: Visitor, request: HttpRequest) -> Answer<bool> {
    if let Some(token) = presented_token(&request) {
        state.writer.run(None, "account.logout", Locks::NONE, async move |tx| tokens::logout(tx, &token).await).await?;
    }
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefreshParams {
    refresh_token: String,
}

/// POST `/system/auth/refresh-token?refreshToken=`.
pub async fn refresh(
    state: web::Data<AppState>,
    _: Visitor,
    Params(params): Params<RefreshParams>,
) -> Answer<LoginBody> {
    let access = FreshToken::generate();
    let answer = state
        .writer
        .run(None, "account.refresh", Locks::NONE, async move |tx| {
            tokens::refresh_login(tx, &params.refresh_token, &access).await
        })
        .await?;
    Ok(Reply(answer))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionUser {
    id: UserId,
    nickname: String,
    avatar: Option<String>,
    dept_id: Option<i64>,
    username: String,
    email: Option<String>,
}

#[derive(Serialize)]
pub struct PermissionInfo {
    user: PermissionUser,
    roles: Vec<&'static str>,
    permissions: Vec<&'static str>,
    menus: Vec<Menu>,
}

/// GET `/system/auth/get-permission-info`. Roles, permissions and menus are those of operators; the chat needs none.
pub async fn permission_info(state: web::Data<AppState>, caller: Caller) -> Answer<Option<PermissionInfo>> {
    let id = caller.user;
    let read =
        state.readers.run(async move |db| Ok((accounts::get_user(db, id).await?, permissions::of_user(db, id).await?)));
    let (user, held) = read.await?;
    Ok(Reply(user.map(|user| PermissionInfo {
        user: PermissionUser {
            id: user.id,
            nickname: user.nickname,
            avatar: user.avatar,
            dept_id: None,
            username: user.username.unwrap_or_default(),
            email: user.email,
        },
        roles: held.roles(),
        permissions: held.keys(),
        menus: menus(&held),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dummy_hash_is_a_hash() {
        assert!(argon2::password_hash::PasswordHash::new(DUMMY_HASH).is_ok());
        assert!(!verify_password("nudge", DUMMY_HASH));
    }
}
