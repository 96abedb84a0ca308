//! The API of business systems, under `/api/v1`, opened by the configured key in header `X-Api-Key`. Without a
//! configured key these paths do not exist.

use std::collections::HashSet;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::AppState;
use super::friends::announce_profiles;
use super::input::{Body, check_length, check_text};
use super::response::{Answer, Reply};
use crate::domain::ids::UserId;
use crate::error::AppError;
use crate::service::Locks;
use crate::service::server_api::{self as service, ExternalUser, MAX_USERS};
use crate::service::tokens::FreshLogin;

/// Longest external id, bytes.
const MAX_EXTERNAL_ID_BYTES: usize = 256;

/// Proof that the request bears the API key.
pub struct ApiKey(());

impl FromRequest for ApiKey {
    type Error = AppError;
    type Future = Ready<Result<Self, AppError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(check_key(request))
    }
}

fn check_key(request: &HttpRequest) -> Result<ApiKey, AppError> {
    let state = request.app_data::<web::Data<AppState>>();
    let key = state.and_then(|state| state.config.api_key.as_ref()).ok_or(AppError::NoSuchPath)?;
    let given = request.headers().get("x-api-key").ok_or(AppError::Unauthenticated)?;
    // Hashes have one length, so that comparing them tells nothing about the key's.
    let expected = Sha256::digest(key.expose_secret().as_bytes());
    if bool::from(Sha256::digest(given.as_bytes()).ct_eq(&expected)) {
        Ok(ApiKey(()))
    } else {
        Err(AppError::Unauthenticated)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserEntry {
    external_id: String,
    nickname: String,
    avatar: Option<String>,
}

#[derive(Deserialize)]
pub struct UpsertRequest {
    users: Vec<UserEntry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpsertedUser {
    external_id: String,
    user_id: UserId,
}

fn check_count(count: usize) -> Result<(), AppError> {
    if (1..=MAX_USERS).contains(&count) {
        return Ok(());
    }
    Err(AppError::Malformed(format!("parameter incorrect: 1 to {MAX_USERS} entries are taken at once")))
}

fn check_external_id(id: &str) -> Result<(), AppError> {
    check_text("externalId", id, MAX_EXTERNAL_ID_BYTES)?;
    if id.len() > MAX_EXTERNAL_ID_BYTES {
        return Err(AppError::Malformed("parameter incorrect: externalId has more than 256 bytes".into()));
    }
    Ok(())
}

/// POST `/api/v1/users`: makes accounts or updates them, by external id.
pub async fn upsert_users(
    state: web::Data<AppState>,
    _: ApiKey,
    Body(body): Body<UpsertRequest>,
) -> Answer<Vec<UpsertedUser>> {
    check_count(body.users.len())?;
    let mut wanted = Vec::with_capacity(body.users.len());
    let mut seen = HashSet::new();
    for UserEntry { external_id, nickname, avatar } in body.users {
        check_external_id(&external_id)?;
        check_text("nickname", &nickname, 30)?;
        check_length("avatar", avatar.as_deref().unwrap_or_default(), 512)?;
        if !seen.insert(external_id.clone()) {
            return Err(AppError::Malformed("parameter incorrect: an externalId appears twice".into()));
        }
        wanted.push(ExternalUser { external_id, nickname, avatar });
    }
    let upserted = state
        .writer
        .run(None, "server_api.upsert_users", Locks::CLOCK, async move |tx| service::upsert_users(tx, &wanted).await)
        .await?;
    announce_profiles(state, upserted.changed).await;
    Ok(Reply(upserted.users.into_iter().map(|(external_id, user_id)| UpsertedUser { external_id, user_id }).collect()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokensRequest {
    external_ids: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuedTokens {
    external_id: String,
    user_id: UserId,
    access_token: String,
    refresh_token: String,
    expires_time: i64,
}

/// POST `/api/v1/tokens`: signs accounts in, one login each.
pub async fn issue_tokens(
    state: web::Data<AppState>,
    _: ApiKey,
    Body(body): Body<TokensRequest>,
) -> Answer<Vec<IssuedTokens>> {
    check_count(body.external_ids.len())?;
    for id in &body.external_ids {
        check_external_id(id)?;
    }
    let wanted: Vec<_> = body.external_ids.into_iter().map(|id| (id, FreshLogin::generate())).collect();
    let issued = state
        .writer
        .run(None, "server_api.issue_tokens", Locks::NONE, async move |tx| service::issue_tokens(tx, &wanted).await)
        .await?;
    let bodies = issued.into_iter().map(|(external_id, login)| IssuedTokens {
        external_id,
        user_id: login.user_id,
        access_token: login.access_token,
        refresh_token: login.refresh_token,
        expires_time: login.expires_time,
    });
    Ok(Reply(bodies.collect()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusRequest {
    external_id: String,
    enabled: bool,
}

/// PUT `/api/v1/users/status`: disables an account, which ends its logins and closes its sockets, or enables it.
pub async fn set_status(state: web::Data<AppState>, _: ApiKey, Body(body): Body<StatusRequest>) -> Answer<bool> {
    check_external_id(&body.external_id)?;
    state
        .writer
        .run(None, "server_api.set_status", Locks::NONE, async move |tx| {
            service::set_enabled(tx, &body.external_id, body.enabled).await
        })
        .await?;
    Ok(Reply(true))
}
