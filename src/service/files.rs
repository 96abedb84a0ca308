//! Uploaded files: the record of who stored what (`contract/01` section 7). Their bytes are not the database's matter.

use super::Tx;
use crate::db::files;
pub use crate::db::files::NewFile;
use crate::error::AppError;

/// The one store (`configId` on the wire).
pub const CONFIG_ID: i64 = 1;

/// Notes a stored file; its id. Repeating it gives the same id.
pub async fn record(tx: &mut Tx<'_>, file: &NewFile) -> Result<i64, AppError> {
    if let Some(id) = files::get_id_by_path(tx.db, &file.path, file.creator).await? {
        return Ok(id);
    }
    files::insert(tx.db, file).await?;
    let id = files::get_id_by_path(tx.db, &file.path, file.creator).await?;
    id.ok_or_else(|| AppError::Internal("a file that was just noted is gone".into()))
}
