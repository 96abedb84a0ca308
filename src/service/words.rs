//! Reading the sensitive words that texts are checked for. Servers keep them in memory and look at the version.

use diesel::QueryResult;

use crate::db::{Db, sensitive_words as table};
pub use crate::domain::words::WordList;

/// Words read in one statement.
const PAGE: i64 = 5_000;

/// Tells one state of the words from every other.
pub type Version = (i64, i64);

pub async fn version(db: &mut Db) -> QueryResult<Version> {
    table::version(db).await
}

/// All enabled words, and a version that is at most as new: whatever changes while they are read shows as another one.
pub async fn load(db: &mut Db) -> QueryResult<(Version, Vec<String>)> {
    let version = table::version(db).await?;
    let (mut words, mut after) = (Vec::new(), 0);
    loop {
        let page = table::list_enabled_after(db, after, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok((version, words)) };
        after = *last;
        words.extend(page.into_iter().map(|(_, word)| word));
    }
}
