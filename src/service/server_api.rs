//! What a business system does with the API key: keep its own accounts here, sign them in, disable them. An account
//! that people registered themselves has no external id, so none of these can touch it.

use std::collections::HashMap;

use super::Tx;
use super::tokens::{self, FreshLogin};
use crate::db::users::{self, NewUser, ProfileChange, STATUS_ENABLED, User};
use crate::domain::ids::UserId;
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::payload::LoginBody;

/// Users in one upsert, logins in one call: what one command may touch (`design.md` section 4).
pub const MAX_USERS: usize = 1_000;

/// An account of the business system.
#[derive(Clone, Debug)]
pub struct ExternalUser {
    pub external_id: String,
    pub nickname: String,
    pub avatar: Option<String>,
}

/// What became of an upsert.
#[derive(Clone, Debug)]
pub struct Upserted {
    /// External id and id, in the order of the request.
    pub users: Vec<(String, UserId)>,
    /// Accounts that existed and have another nickname or avatar now.
    pub changed: Vec<UserId>,
}

/// Makes accounts or updates nickname and avatar of those that exist. Needs the clock, under which no other change
/// can come between the look at the old profiles and the new ones.
pub async fn upsert_users(tx: &mut Tx<'_>, wanted: &[ExternalUser]) -> Result<Upserted, AppError> {
    let ids: Vec<String> = wanted.iter().map(|user| user.external_id.clone()).collect();
    let known = by_external_id(users::list_by_external_ids(tx.db, &ids).await?);
    let mut new = HashMap::new();
    let mut changed = Vec::new();
    for user in wanted {
        match known.get(&user.external_id) {
            Some(account)
                if account.nickname == user.nickname && (user.avatar.is_none() || account.avatar == user.avatar) => {}
            Some(account) => {
                update(tx, account.id, user).await?;
                changed.push(account.id);
            }
            None => {
                new.insert(user.external_id.clone(), new_user(user, tx.now));
            }
        }
    }
    if !new.is_empty() {
        let new: Vec<NewUser> = new.into_values().collect();
        users::insert_all_if_new(tx.db, &new).await?;
    }
    let accounts = by_external_id(users::list_by_external_ids(tx.db, &ids).await?);
    let find = |id: String| accounts.get(&id).map(|account| (id, account.id));
    let users: Option<Vec<_>> = ids.into_iter().map(find).collect();
    let users = users.ok_or_else(|| AppError::Internal("a new account is missing".into()))?;
    Ok(Upserted { users, changed })
}

async fn update(tx: &mut Tx<'_>, id: UserId, user: &ExternalUser) -> Result<(), AppError> {
    let change = ProfileChange {
        nickname: Some(user.nickname.clone()),
        avatar: user.avatar.clone(),
        update_time: Some(tx.now),
        ..ProfileChange::default()
    };
    users::update_profile(tx.db, id, &change).await?;
    Ok(())
}

fn new_user(user: &ExternalUser, now: i64) -> NewUser {
    NewUser {
        username: None,
        external_id: Some(user.external_id.clone()),
        password: None,
        nickname: user.nickname.clone(),
        avatar: user.avatar.clone(),
        sex: 0,
        status: STATUS_ENABLED,
        create_time: now,
        update_time: now,
    }
}

fn by_external_id(accounts: Vec<User>) -> HashMap<String, User> {
    accounts.into_iter().filter_map(|account| account.external_id.clone().map(|id| (id, account))).collect()
}

/// Signs accounts in; the answers in the order of the request. One unknown or disabled account refuses all.
pub async fn issue_tokens(
    tx: &mut Tx<'_>,
    wanted: &[(String, FreshLogin)],
) -> Result<Vec<(String, LoginBody)>, AppError> {
    let ids: Vec<String> = wanted.iter().map(|(id, _)| id.clone()).collect();
    let accounts = by_external_id(users::list_by_external_ids(tx.db, &ids).await?);
    let mut logins = Vec::with_capacity(wanted.len());
    for (id, fresh) in wanted {
        let account = accounts.get(id).ok_or(Refusal::UserNotFound)?;
        if account.status != STATUS_ENABLED {
            return Err(Refusal::UserDisabled(account.nickname.clone()).into());
        }
        logins.push((account.id, fresh.clone()));
    }
    let bodies = tokens::create_logins(tx, &logins).await?;
    Ok(ids.into_iter().zip(bodies).collect())
}

/// Enables or disables an account; disabling ends its logins and closes its sockets.
pub async fn set_enabled(tx: &mut Tx<'_>, external_id: &str, enabled: bool) -> Result<(), AppError> {
    let found = users::list_by_external_ids(tx.db, &[external_id.to_owned()]).await?;
    let account = found.first().ok_or(Refusal::UserNotFound)?;
    tokens::set_enabled(tx, account.id, enabled).await
}
