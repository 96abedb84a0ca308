//! Sensitive words in the hands of operators (`contract/05` E7).

use actix_web::{HttpRequest, web};
use serde::Deserialize;

use super::page::{PageParams, ids, time_range};
use crate::domain::ids::{UserId, deserialize_integer};
use crate::error::AppError;
use crate::http::AppState;
use crate::http::caller::Caller;
use crate::http::input::{Body, Params, check_length, check_text, optional_integer};
use crate::http::response::{Answer, Reply};
use crate::protocol::manager_payload::{PageBody, SensitiveWordBody};
use crate::service::manager::words::{self as service, WordFilter};
use crate::service::{Locks, Tx};

/// Longest word.
const MAX_LENGTH: usize = 64;

#[derive(Deserialize)]
pub struct CreateRequest {
    word: String,
    #[serde(deserialize_with = "deserialize_integer")]
    status: i64,
}

/// A word without the blanks around it, and a status.
fn check_word(word: &str, status: i64) -> Result<(String, i32), AppError> {
    check_text("word", word, MAX_LENGTH)?;
    let status = i32::try_from(status).ok().filter(|status| (0..=1).contains(status));
    let status = status.ok_or_else(|| AppError::Malformed("parameter incorrect: status must be 0 or 1".into()))?;
    Ok((word.trim().to_owned(), status))
}

/// Runs a change of the words, which counts from then on.
async fn change<T, F>(state: &AppState, operator: UserId, kind: &'static str, verb: F) -> Result<T, AppError>
where
    T: Send + 'static,
    F: AsyncFn(&mut Tx<'_>) -> Result<T, AppError> + Send + 'static,
{
    let outcome = state.writer.run(Some(operator), kind, Locks::CLOCK, verb).await;
    // Whatever the answer says: it may be that it was done.
    state.words.forget();
    outcome
}

/// POST `/im/manager/sensitive-word/create`.
pub async fn create(state: web::Data<AppState>, caller: Caller, Body(body): Body<CreateRequest>) -> Answer<i64> {
    let (word, status) = check_word(&body.word, body.status)?;
    let operator = caller.user;
    let id = change(&state, operator, "sensitive_word.create", async move |tx| {
        service::create(tx, operator, &word, status).await
    });
    Ok(Reply(id.await?))
}

#[derive(Deserialize)]
pub struct UpdateRequest {
    #[serde(deserialize_with = "deserialize_integer")]
    id: i64,
    word: String,
    #[serde(deserialize_with = "deserialize_integer")]
    status: i64,
}

/// PUT `/im/manager/sensitive-word/update`.
pub async fn update(state: web::Data<AppState>, caller: Caller, Body(body): Body<UpdateRequest>) -> Answer<bool> {
    let (word, status) = check_word(&body.word, body.status)?;
    change(&state, caller.user, "sensitive_word.update", async move |tx| {
        service::update(tx, body.id, &word, status).await
    })
    .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
pub struct IdParams {
    #[serde(deserialize_with = "deserialize_integer")]
    id: i64,
}

/// DELETE `/im/manager/sensitive-word/delete?id=`.
pub async fn delete_one(state: web::Data<AppState>, caller: Caller, Params(params): Params<IdParams>) -> Answer<bool> {
    change(&state, caller.user, "sensitive_word.delete", async move |tx| service::delete(tx, params.id).await).await?;
    Ok(Reply(true))
}

/// DELETE `/im/manager/sensitive-word/delete-list?ids=`.
pub async fn delete_list(state: web::Data<AppState>, caller: Caller, request: HttpRequest) -> Answer<bool> {
    let ids = ids(request.query_string())?;
    change(&state, caller.user, "sensitive_word.delete", async move |tx| service::delete_all(tx, ids.clone()).await)
        .await?;
    Ok(Reply(true))
}

#[derive(Deserialize)]
pub struct WordParams {
    word: Option<String>,
    #[serde(default, deserialize_with = "optional_integer")]
    status: Option<i64>,
}

/// GET `/im/manager/sensitive-word/page`.
pub async fn page(
    state: web::Data<AppState>,
    request: HttpRequest,
    Params(page): Params<PageParams>,
    Params(params): Params<WordParams>,
) -> Answer<PageBody<SensitiveWordBody>> {
    let page = page.page()?;
    let create_time = time_range(request.query_string(), "createTime", state.utc_offset())?;
    check_length("word", params.word.as_deref().unwrap_or_default(), MAX_LENGTH)?;
    let filter = WordFilter { word: params.word, status: params.status, create_time };
    let paged = state.manager_readers.run(async move |db| Ok(service::list(db, &filter, page).await?)).await?;
    Ok(Reply(paged.into()))
}

/// GET `/im/manager/sensitive-word/get?id=`.
pub async fn get_one(
    state: web::Data<AppState>,
    Params(params): Params<IdParams>,
) -> Answer<Option<SensitiveWordBody>> {
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::get(db, params.id).await?)).await?))
}
