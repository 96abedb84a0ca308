//! What operators look through (`contract/05` part E): pages of everybody's rows. What operators change is with the
//! nouns: `groups`.

pub mod friends;
pub mod groups;
pub mod messages;
pub mod statistics;
pub mod words;

use std::collections::HashMap;

use diesel::QueryResult;

use crate::db::Db;
use crate::db::users::{self, User};
use crate::domain::ids::UserId;

/// Ids in one statement: databases take no more than some ten thousand parameters, and a page of messages can mention
/// more people.
const MAX_IDS: usize = 5_000;

/// Accounts whose names a page shows.
struct Accounts(HashMap<UserId, User>);

impl Accounts {
    async fn load(db: &mut Db, ids: impl IntoIterator<Item = UserId>) -> QueryResult<Accounts> {
        let mut ids: Vec<UserId> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let mut accounts = HashMap::new();
        for some in ids.chunks(MAX_IDS) {
            accounts.extend(users::list_by_ids(db, some).await?.into_iter().map(|user| (user.id, user)));
        }
        Ok(Accounts(accounts))
    }

    /// `None` when the account is gone.
    fn nickname(&self, id: UserId) -> Option<String> {
        self.0.get(&id).map(|user| user.nickname.clone())
    }

    fn avatar(&self, id: UserId) -> Option<String> {
        self.0.get(&id).and_then(|user| user.avatar.clone())
    }
}
