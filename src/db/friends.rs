//! `im_friend`: one directed row a side (`contract/03` section 8).

use std::collections::HashMap;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Integer};

use super::page::PageQuery;
use super::pairs::ByPairs;
use super::schema::im_friend::{self, table};
use super::schema::system_users as users;
use super::{Columns, Db, RunQueryDsl};
use crate::domain::friendship::{ACTIVE, DELETED, Side};
use crate::domain::ids::UserId;
use crate::domain::page::{Page, Paged, TimeRange};

/// A row as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = im_friend)]
pub struct FriendRow {
    pub id: i64,
    pub friend_user_id: UserId,
    pub silent: bool,
    pub display_name: String,
    pub add_source: Option<i32>,
    pub pinned: bool,
    pub blocked: bool,
    pub status: i32,
    pub add_time: Option<i64>,
    pub delete_time: Option<i64>,
    pub update_time: i64,
}

/// A row with what the friend's account says now.
#[derive(Clone, Debug, PartialEq, Eq, Queryable)]
pub struct Friend {
    pub row: FriendRow,
    /// `None` when the account is gone.
    pub nickname: Option<String>,
    pub avatar: Option<String>,
}

/// What the owner can change; `None` leaves a column as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, AsChangeset)]
#[diesel(table_name = im_friend)]
pub struct FriendChange {
    pub silent: Option<bool>,
    pub display_name: Option<String>,
    pub pinned: Option<bool>,
}

/// What a row becomes when its owner gains the friend (again): remark, source, and everything else reset.
#[derive(Clone, Debug)]
pub struct NewFriend<'a> {
    pub user: UserId,
    pub friend: UserId,
    pub display_name: &'a str,
    pub add_source: Option<i32>,
    pub stamp: i64,
}

/// The row of `user` about `friend`.
pub async fn get_side(db: &mut Db, user: UserId, friend: UserId) -> QueryResult<Option<Side>> {
    let row: Option<(i32, bool)> = table
        .filter(im_friend::user_id.eq(user))
        .filter(im_friend::friend_user_id.eq(friend))
        .select((im_friend::status, im_friend::blocked))
        .first(db)
        .await
        .optional()?;
    Ok(row.map(|(status, blocked)| Side { is_active: status == ACTIVE, has_blocked: blocked }))
}

/// Rows joined with the accounts that they are about: one statement, so one state of the database.
macro_rules! friends_of {
    ($user:expr) => {
        table
            .left_join(users::table.on(users::id.eq(im_friend::friend_user_id)))
            .filter(im_friend::user_id.eq($user))
            .select((FriendRow::columns(), users::nickname.nullable(), users::avatar.nullable()))
    };
}

/// The row of `user` about `friend`, in any status.
pub async fn get(db: &mut Db, user: UserId, friend: UserId) -> QueryResult<Option<Friend>> {
    friends_of!(user).filter(im_friend::friend_user_id.eq(friend)).first(db).await.optional()
}

/// The newest rows of `user`, deleted ones too, newest first.
pub async fn list_newest(db: &mut Db, user: UserId, limit: i64) -> QueryResult<Vec<Friend>> {
    friends_of!(user).order(im_friend::id.desc()).limit(limit).load(db).await
}

/// Rows of `user` after the cursor (stamp, id), ascending by it, deleted ones too.
pub async fn list_after(db: &mut Db, user: UserId, cursor: Option<(i64, i64)>, limit: i64) -> QueryResult<Vec<Friend>> {
    use im_friend::{id, update_time};
    let (time, last) = cursor.unwrap_or((i64::MIN, 0));
    friends_of!(user)
        .filter(update_time.ge(time))
        .filter(update_time.gt(time).or(id.gt(last)))
        .order((update_time.asc(), id.asc()))
        .limit(limit)
        .load(db)
        .await
}

/// Whom `user` has as active friends, ascending, above `after`.
pub async fn list_active_after(db: &mut Db, user: UserId, after: UserId, limit: i64) -> QueryResult<Vec<UserId>> {
    table
        .filter(im_friend::user_id.eq(user))
        .filter(im_friend::friend_user_id.gt(after))
        .filter(im_friend::status.eq(ACTIVE))
        .order(im_friend::friend_user_id.asc())
        .limit(limit)
        .select(im_friend::friend_user_id)
        .load(db)
        .await
}

/// Which of `owners` have `friend` as an active friend.
pub async fn list_owners_of(db: &mut Db, owners: &[UserId], friend: UserId) -> QueryResult<Vec<UserId>> {
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    table
        .filter(im_friend::user_id.eq_any(owners.to_vec()))
        .filter(im_friend::friend_user_id.eq(friend))
        .filter(im_friend::status.eq(ACTIVE))
        .select(im_friend::user_id)
        .load(db)
        .await
}

/// The rows of many (user, friend) pairs with one statement, an index look-up each.
pub async fn list_sides(db: &mut Db, pairs: &[(UserId, UserId)]) -> QueryResult<HashMap<(UserId, UserId), Side>> {
    if pairs.is_empty() {
        return Ok(HashMap::new());
    }
    let raw = pairs.iter().map(|(user, friend)| (user.0, friend.0)).collect();
    let query: ByPairs<(BigInt, BigInt, Integer, Bool)> = ByPairs::new(
        db.backend(),
        raw,
        "SELECT f.user_id, f.friend_user_id, f.status, f.blocked FROM pairs p \
         JOIN im_friend f ON f.user_id = p.a AND f.friend_user_id = p.b",
    );
    let rows: Vec<(UserId, UserId, i32, bool)> = query.load(db).await?;
    let side =
        |(user, friend, status, blocked)| ((user, friend), Side { is_active: status == ACTIVE, has_blocked: blocked });
    Ok(rows.into_iter().map(side).collect())
}

/// Makes `user`'s row about `friend` an active friend by the life cycle of `contract/03` section 1: a missing or
/// deleted row starts anew, an active one is left as it is. Whether something changed.
pub async fn become_friend(db: &mut Db, new: &NewFriend<'_>) -> QueryResult<bool> {
    let status: Option<i32> = table
        .filter(im_friend::user_id.eq(new.user))
        .filter(im_friend::friend_user_id.eq(new.friend))
        .select(im_friend::status)
        .first(db)
        .await
        .optional()?;
    match status {
        Some(ACTIVE) => Ok(false),
        Some(_) => revive(db, new).await,
        None => insert(db, new).await,
    }
}

async fn revive(db: &mut Db, new: &NewFriend<'_>) -> QueryResult<bool> {
    let row = table.filter(im_friend::user_id.eq(new.user)).filter(im_friend::friend_user_id.eq(new.friend));
    diesel::update(row)
        .set((
            im_friend::status.eq(ACTIVE),
            im_friend::silent.eq(false),
            im_friend::pinned.eq(false),
            im_friend::blocked.eq(false),
            im_friend::display_name.eq(new.display_name),
            im_friend::add_source.eq(new.add_source),
            im_friend::add_time.eq(Some(new.stamp)),
            im_friend::delete_time.eq(None::<i64>),
            im_friend::update_time.eq(new.stamp),
        ))
        .execute(db)
        .await?;
    Ok(true)
}

async fn insert(db: &mut Db, new: &NewFriend<'_>) -> QueryResult<bool> {
    diesel::insert_into(table)
        .values((
            im_friend::user_id.eq(new.user),
            im_friend::friend_user_id.eq(new.friend),
            im_friend::display_name.eq(new.display_name),
            im_friend::add_source.eq(new.add_source),
            im_friend::status.eq(ACTIVE),
            im_friend::add_time.eq(Some(new.stamp)),
            im_friend::create_time.eq(new.stamp),
            im_friend::update_time.eq(new.stamp),
        ))
        .execute(db)
        .await?;
    Ok(true)
}

/// Changes what the owner set.
pub async fn update(db: &mut Db, user: UserId, friend: UserId, change: &FriendChange, stamp: i64) -> QueryResult<()> {
    let row = table.filter(im_friend::user_id.eq(user)).filter(im_friend::friend_user_id.eq(friend));
    diesel::update(row).set((change, im_friend::update_time.eq(stamp))).execute(db).await?;
    Ok(())
}

/// Blocks the friend, or lifts the block.
pub async fn set_blocked(db: &mut Db, user: UserId, friend: UserId, blocked: bool, stamp: i64) -> QueryResult<()> {
    let row = table.filter(im_friend::user_id.eq(user)).filter(im_friend::friend_user_id.eq(friend));
    diesel::update(row).set((im_friend::blocked.eq(blocked), im_friend::update_time.eq(stamp))).execute(db).await?;
    Ok(())
}

/// Marks an active row as deleted and keeps all else; false when there is no active row.
pub async fn delete(db: &mut Db, user: UserId, friend: UserId, stamp: i64) -> QueryResult<bool> {
    let row = table.filter(im_friend::user_id.eq(user)).filter(im_friend::friend_user_id.eq(friend));
    let changed = diesel::update(row.filter(im_friend::status.eq(ACTIVE)))
        .set((im_friend::status.eq(DELETED), im_friend::delete_time.eq(Some(stamp)), im_friend::update_time.eq(stamp)))
        .execute(db)
        .await?;
    Ok(changed == 1)
}

/// A row as operators see it.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = im_friend)]
pub struct OwnedFriendRow {
    pub user_id: UserId,
    pub create_time: i64,
    #[diesel(embed)]
    pub row: FriendRow,
}

/// Which rows a management page shows; `None` is no filter.
#[derive(Clone, Debug, Default)]
pub struct FriendFilter {
    pub user_id: Option<i64>,
    pub friend_user_id: Option<i64>,
    pub status: Option<i64>,
    pub silent: Option<bool>,
    pub add_time: TimeRange,
}

/// A management page, newest first, and how many rows there are.
pub async fn list_page(db: &mut Db, filter: &FriendFilter, page: Page) -> QueryResult<Paged<OwnedFriendRow>> {
    let Paged { list, total } = PageQuery::of("im_friend")
        .equals("user_id", filter.user_id)
        .equals("friend_user_id", filter.friend_user_id)
        .equals("status", filter.status)
        .is("silent", filter.silent)
        .between("add_time", filter.add_time)
        .load(db, page)
        .await?;
    let rows = table.filter(im_friend::id.eq_any(list)).order(im_friend::id.desc());
    Ok(Paged { list: rows.select(OwnedFriendRow::columns()).load(db).await?, total })
}
