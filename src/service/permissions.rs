//! What operators may do. It is read anew for every request, so a change counts at once.

use diesel::QueryResult;

use crate::db::{Db, permissions};
use crate::domain::ids::UserId;
pub use crate::domain::permission::Permissions;

/// What a user may do as an operator: for most, nothing.
pub async fn of_user(db: &mut Db, user: UserId) -> QueryResult<Permissions> {
    Ok(Permissions::new(permissions::list_of_user(db, user).await?))
}
