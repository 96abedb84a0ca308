//! `infra_file`: who uploaded what. The bytes are in the file store; nothing is served by these rows.

use diesel::prelude::*;

use super::schema::infra_file::{self, table};
use super::{Db, RunQueryDsl};
use crate::domain::ids::UserId;

/// A stored file.
#[derive(Clone, Debug, Insertable)]
#[diesel(table_name = infra_file, treat_none_as_default_value = false)]
pub struct NewFile {
    /// Which store holds it; there is one, number 1.
    pub config_id: i64,
    /// The path in its URL, unique.
    pub path: String,
    /// The name that the user gave it, at most 255 characters.
    pub name: String,
    pub url: String,
    /// The media type that it is served with.
    pub content_type: Option<String>,
    /// Bytes.
    pub size: i64,
    pub creator: UserId,
    /// Epoch milliseconds.
    pub create_time: i64,
}

/// Notes a file. A path that is there already is a unique violation.
pub async fn insert(db: &mut Db, file: &NewFile) -> QueryResult<usize> {
    diesel::insert_into(table).values(file).execute(db).await
}

/// The row of a path, if its owner is `creator`.
pub async fn get_id_by_path(db: &mut Db, path: &str, creator: UserId) -> QueryResult<Option<i64>> {
    table
        .filter(infra_file::path.eq(path).and(infra_file::creator.eq(creator)))
        .select(infra_file::id)
        .first(db)
        .await
        .optional()
}
