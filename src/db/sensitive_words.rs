//! `im_sensitive_word`: words whose texts are refused (`contract/05` part D). A deleted word is gone, so it can be made
//! again.

use diesel::dsl::{count_star, max};
use diesel::prelude::*;

use super::page::PageQuery;
use super::schema::im_sensitive_word::{self, table};
use super::{Columns, Db, RunQueryDsl};
use crate::domain::ids::UserId;
use crate::domain::page::{Page, Paged, TimeRange};

/// `status`: looked for.
pub const ENABLED: i32 = 0;

/// A word.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = im_sensitive_word)]
pub struct SensitiveWord {
    pub id: i64,
    pub word: String,
    pub status: i32,
    /// The operator who made it.
    pub creator: UserId,
    pub create_time: i64,
}

/// What tells one state of the table from every other: the newest stamp, and the number of words.
pub async fn version(db: &mut Db) -> QueryResult<(i64, i64)> {
    let row: (Option<i64>, i64) =
        table.select((max(im_sensitive_word::update_time), count_star())).get_result(db).await?;
    Ok((row.0.unwrap_or(0), row.1))
}

/// Enabled words above an id, ascending, at most `limit`.
pub async fn list_enabled_after(db: &mut Db, after: i64, limit: i64) -> QueryResult<Vec<(i64, String)>> {
    table
        .filter(im_sensitive_word::id.gt(after))
        .filter(im_sensitive_word::status.eq(ENABLED))
        .order(im_sensitive_word::id)
        .limit(limit)
        .select((im_sensitive_word::id, im_sensitive_word::word))
        .load(db)
        .await
}

pub async fn get(db: &mut Db, id: i64) -> QueryResult<Option<SensitiveWord>> {
    table.filter(im_sensitive_word::id.eq(id)).select(SensitiveWord::columns()).first(db).await.optional()
}

/// The id of a word, enabled or not.
pub async fn find(db: &mut Db, word: &str) -> QueryResult<Option<i64>> {
    table.filter(im_sensitive_word::word.eq(word)).select(im_sensitive_word::id).first(db).await.optional()
}

/// Makes a word. One that exists is a unique violation.
pub async fn insert(db: &mut Db, word: &str, status: i32, creator: UserId, stamp: i64) -> QueryResult<usize> {
    diesel::insert_into(table)
        .values((
            im_sensitive_word::word.eq(word),
            im_sensitive_word::status.eq(status),
            im_sensitive_word::creator.eq(creator),
            im_sensitive_word::create_time.eq(stamp),
            im_sensitive_word::update_time.eq(stamp),
        ))
        .execute(db)
        .await
}

/// Changes a word; false when there is none.
pub async fn update(db: &mut Db, id: i64, word: &str, status: i32, stamp: i64) -> QueryResult<bool> {
    let changed = diesel::update(table.filter(im_sensitive_word::id.eq(id)))
        .set((
            im_sensitive_word::word.eq(word),
            im_sensitive_word::status.eq(status),
            im_sensitive_word::update_time.eq(stamp),
        ))
        .execute(db)
        .await?;
    Ok(changed == 1)
}

/// Removes words; how many there were.
pub async fn delete(db: &mut Db, ids: Vec<i64>) -> QueryResult<usize> {
    diesel::delete(table).filter(im_sensitive_word::id.eq_any(ids)).execute(db).await
}

/// Which words a management page shows; `None` is no filter.
#[derive(Clone, Debug, Default)]
pub struct WordFilter {
    /// Part of the word, in whatever case.
    pub word: Option<String>,
    pub status: Option<i64>,
    pub create_time: TimeRange,
}

/// A management page, newest first, and how many words there are.
pub async fn list_page(db: &mut Db, filter: &WordFilter, page: Page) -> QueryResult<Paged<SensitiveWord>> {
    let Paged { list, total } = PageQuery::of("im_sensitive_word")
        .equals("status", filter.status)
        .between("create_time", filter.create_time)
        .contains("word", filter.word.as_deref())
        .load(db, page)
        .await?;
    let rows = table.filter(im_sensitive_word::id.eq_any(list)).order(im_sensitive_word::id.desc());
    Ok(Paged { list: rows.select(SensitiveWord::columns()).load(db).await?, total })
}
