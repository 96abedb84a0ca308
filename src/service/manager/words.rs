//! Sensitive words in the hands of operators (`contract/05` E7). Every change gets a stamp of its own, so that other
//! servers see that there was one; it needs the `clock`, under which no word can be made twice.

use diesel::QueryResult;

use super::Accounts;
use crate::db::Db;
pub use crate::db::sensitive_words::WordFilter;
use crate::db::sensitive_words::{self as table, SensitiveWord};
use crate::domain::ids::UserId;
use crate::domain::page::{Page, Paged};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::manager_payload::SensitiveWordBody;
use crate::service::Tx;

/// Words that are looked for together. More are not taken, because each server holds them in memory.
pub const MAX_WORDS: i64 = 100_000;

/// Makes a word; its id.
pub async fn create(tx: &mut Tx<'_>, operator: UserId, word: &str, status: i32) -> Result<i64, AppError> {
    if table::find(tx.db, word).await?.is_some() {
        return Err(Refusal::WordExists(word.to_owned()).into());
    }
    let (_, count) = table::version(tx.db).await?;
    if count >= MAX_WORDS {
        return Err(AppError::Malformed(format!("there are {MAX_WORDS} words already")));
    }
    let stamp = tx.stamp()?;
    table::insert(tx.db, word, status, operator, stamp).await?;
    table::find(tx.db, word).await?.ok_or_else(|| AppError::Internal("a new word was not found".into()))
}

/// Changes a word.
pub async fn update(tx: &mut Tx<'_>, id: i64, word: &str, status: i32) -> Result<(), AppError> {
    if table::find(tx.db, word).await?.is_some_and(|found| found != id) {
        // A word that is not there cannot be renamed to one that is.
        table::get(tx.db, id).await?.ok_or(Refusal::WordNotFound)?;
        return Err(Refusal::WordExists(word.to_owned()).into());
    }
    let stamp = tx.stamp()?;
    if table::update(tx.db, id, word, status, stamp).await? { Ok(()) } else { Err(Refusal::WordNotFound.into()) }
}

/// Removes a word.
pub async fn delete(tx: &mut Tx<'_>, id: i64) -> Result<(), AppError> {
    if table::delete(tx.db, vec![id]).await? == 1 { Ok(()) } else { Err(Refusal::WordNotFound.into()) }
}

/// Removes words; those that are not there are passed over.
pub async fn delete_all(tx: &mut Tx<'_>, ids: Vec<i64>) -> Result<(), AppError> {
    table::delete(tx.db, ids).await?;
    Ok(())
}

pub async fn list(db: &mut Db, filter: &WordFilter, page: Page) -> QueryResult<Paged<SensitiveWordBody>> {
    let Paged { list, total } = table::list_page(db, filter, page).await?;
    let accounts = Accounts::load(db, list.iter().map(|word| word.creator)).await?;
    let show = |word: SensitiveWord| SensitiveWordBody { creator_name: accounts.nickname(word.creator), ..body(word) };
    Ok(Paged { list: list.into_iter().map(show).collect(), total })
}

/// One word, without its maker's name.
pub async fn get(db: &mut Db, id: i64) -> QueryResult<Option<SensitiveWordBody>> {
    Ok(table::get(db, id).await?.map(body))
}

fn body(word: SensitiveWord) -> SensitiveWordBody {
    SensitiveWordBody {
        id: word.id,
        word: word.word,
        status: word.status,
        creator: word.creator.to_string(),
        creator_name: None,
        create_time: word.create_time,
    }
}
