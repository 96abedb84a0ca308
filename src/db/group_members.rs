//! `im_group_member`: one row for a user and group for ever; leaving and coming back reuse it.

use std::collections::HashMap;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Nullable};

use super::pairs::ByPairs;
use super::schema::im_group_member::{self, table};
use super::{Columns, Db, RunQueryDsl};
use crate::domain::group::{MEMBER_ACTIVE, MEMBER_LEFT, MemberState, Role};
use crate::domain::ids::{GroupId, UserId};

/// A member row, of a present or former member.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = im_group_member)]
pub struct Member {
    pub id: i64,
    pub group_id: GroupId,
    pub user_id: UserId,
    pub display_user_name: Option<String>,
    pub group_remark: Option<String>,
    pub silent: bool,
    pub status: i32,
    pub role: i32,
    pub join_time: Option<i64>,
    pub quit_time: Option<i64>,
    pub mute_end_time: Option<i64>,
    pub create_time: i64,
    pub update_time: i64,
}

impl Member {
    pub fn is_active(&self) -> bool {
        self.status == MEMBER_ACTIVE
    }

    /// What the rules need to know, if the member is in the group.
    pub fn state(&self) -> Option<MemberState> {
        let state = MemberState { role: Role::from_number(self.role), mute_end_time: self.mute_end_time };
        self.is_active().then_some(state)
    }
}

/// How somebody joins.
#[derive(Clone, Copy, Debug)]
pub struct Joining {
    pub group: GroupId,
    pub role: Role,
    pub add_source: Option<i32>,
    pub inviter: Option<UserId>,
}

/// Fields of a member row to change; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, AsChangeset)]
#[diesel(table_name = im_group_member)]
pub struct MemberChange {
    pub display_user_name: Option<String>,
    pub group_remark: Option<String>,
    pub silent: Option<bool>,
    pub role: Option<i32>,
    pub mute_end_time: Option<Option<i64>>,
    pub update_time: Option<i64>,
}

pub async fn get(db: &mut Db, group: GroupId, user: UserId) -> QueryResult<Option<Member>> {
    table
        .filter(im_group_member::group_id.eq(group))
        .filter(im_group_member::user_id.eq(user))
        .select(Member::columns())
        .first(db)
        .await
        .optional()
}

pub async fn get_by_id(db: &mut Db, id: i64) -> QueryResult<Option<Member>> {
    table.filter(im_group_member::id.eq(id)).select(Member::columns()).first(db).await.optional()
}

/// What the rules need to know of an active member.
pub async fn get_state(db: &mut Db, group: GroupId, user: UserId) -> QueryResult<Option<MemberState>> {
    Ok(get(db, group, user).await?.and_then(|member| member.state()))
}

/// All rows of a group, left members included, by user.
pub async fn list(db: &mut Db, group: GroupId) -> QueryResult<Vec<Member>> {
    table
        .filter(im_group_member::group_id.eq(group))
        .order(im_group_member::user_id)
        .select(Member::columns())
        .load(db)
        .await
}

/// The rows of a group, left members included, the last joined first, at most `limit`.
pub async fn list_newest(db: &mut Db, group: GroupId, limit: i64) -> QueryResult<Vec<Member>> {
    table
        .filter(im_group_member::group_id.eq(group))
        .order(im_group_member::id.desc())
        .limit(limit)
        .select(Member::columns())
        .load(db)
        .await
}

/// How many active members some groups have; groups without any are left out.
pub async fn count_active_of(db: &mut Db, groups: Vec<GroupId>) -> QueryResult<HashMap<GroupId, i64>> {
    let counts: Vec<(GroupId, i64)> = table
        .filter(im_group_member::group_id.eq_any(groups))
        .filter(im_group_member::status.eq(MEMBER_ACTIVE))
        .group_by(im_group_member::group_id)
        .select((im_group_member::group_id, diesel::dsl::count_star()))
        .load(db)
        .await?;
    Ok(counts.into_iter().collect())
}

/// The rows of some users in a group.
pub async fn list_of(db: &mut Db, group: GroupId, users: Vec<UserId>) -> QueryResult<Vec<Member>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    table
        .filter(im_group_member::group_id.eq(group))
        .filter(im_group_member::user_id.eq_any(users))
        .order(im_group_member::user_id)
        .select(Member::columns())
        .load(db)
        .await
}

/// All rows of a user, by group: every group he is or was in.
pub async fn list_of_user(db: &mut Db, user: UserId) -> QueryResult<Vec<Member>> {
    table
        .filter(im_group_member::user_id.eq(user))
        .order(im_group_member::group_id)
        .select(Member::columns())
        .load(db)
        .await
}

/// Active members, ascending.
pub async fn list_active_ids(db: &mut Db, group: GroupId) -> QueryResult<Vec<UserId>> {
    table
        .filter(im_group_member::group_id.eq(group))
        .filter(im_group_member::status.eq(MEMBER_ACTIVE))
        .order(im_group_member::user_id)
        .select(im_group_member::user_id)
        .load(db)
        .await
}

/// Active owner and admins, ascending.
pub async fn list_manager_ids(db: &mut Db, group: GroupId) -> QueryResult<Vec<UserId>> {
    table
        .filter(im_group_member::group_id.eq(group))
        .filter(im_group_member::status.eq(MEMBER_ACTIVE))
        .filter(im_group_member::role.ne(Role::Normal.number()))
        .order(im_group_member::user_id)
        .select(im_group_member::user_id)
        .load(db)
        .await
}

/// Groups where the user is an active owner or admin.
pub async fn list_managed_groups(db: &mut Db, user: UserId) -> QueryResult<Vec<GroupId>> {
    table
        .filter(im_group_member::user_id.eq(user))
        .filter(im_group_member::status.eq(MEMBER_ACTIVE))
        .filter(im_group_member::role.ne(Role::Normal.number()))
        .select(im_group_member::group_id)
        .load(db)
        .await
}

pub async fn count_active(db: &mut Db, group: GroupId) -> QueryResult<usize> {
    let count: i64 = table
        .filter(im_group_member::group_id.eq(group))
        .filter(im_group_member::status.eq(MEMBER_ACTIVE))
        .count()
        .get_result(db)
        .await?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The states of many (group, user) pairs of active members, with one statement.
pub async fn list_states(
    db: &mut Db,
    pairs: &[(GroupId, UserId)],
) -> QueryResult<HashMap<(GroupId, UserId), MemberState>> {
    if pairs.is_empty() {
        return Ok(HashMap::new());
    }
    let raw = pairs.iter().map(|(group, user)| (group.0, user.0)).collect();
    let query: ByPairs<(BigInt, BigInt, Integer, Nullable<BigInt>)> = ByPairs::new(
        db.backend(),
        raw,
        format!(
            "SELECT m.group_id, m.user_id, m.role, m.mute_end_time FROM pairs p \
             JOIN im_group_member m ON m.group_id = p.a AND m.user_id = p.b AND m.status = {MEMBER_ACTIVE}"
        ),
    );
    let rows: Vec<(GroupId, UserId, i32, Option<i64>)> = query.load(db).await?;
    let state = |(group, user, role, mute_end_time)| {
        ((group, user), MemberState { role: Role::from_number(role), mute_end_time })
    };
    Ok(rows.into_iter().map(state).collect())
}

#[derive(Clone, Insertable)]
#[diesel(table_name = im_group_member, treat_none_as_default_value = false)]
struct NewMember {
    group_id: GroupId,
    user_id: UserId,
    status: i32,
    role: i32,
    join_time: Option<i64>,
    add_source: Option<i32>,
    inviter_user_id: Option<UserId>,
    create_time: i64,
    update_time: i64,
}

/// Makes users members, with two statements however many. Rows of former members come back with their names and
/// settings; mute and role are new.
pub async fn join_all(db: &mut Db, joining: &Joining, users: &[UserId], stamp: i64) -> QueryResult<()> {
    let rows = table
        .filter(im_group_member::group_id.eq(joining.group))
        .filter(im_group_member::user_id.eq_any(users.to_vec()));
    let returned = diesel::update(rows)
        .set((
            im_group_member::status.eq(MEMBER_ACTIVE),
            im_group_member::role.eq(joining.role.number()),
            im_group_member::join_time.eq(Some(stamp)),
            im_group_member::add_source.eq(joining.add_source),
            im_group_member::inviter_user_id.eq(joining.inviter),
            im_group_member::quit_time.eq(None::<i64>),
            im_group_member::mute_end_time.eq(None::<i64>),
            im_group_member::update_time.eq(stamp),
        ))
        .execute(db)
        .await?;
    if returned == users.len() {
        return Ok(());
    }
    let rows: Vec<NewMember> = users
        .iter()
        .map(|user| NewMember {
            group_id: joining.group,
            user_id: *user,
            status: MEMBER_ACTIVE,
            role: joining.role.number(),
            join_time: Some(stamp),
            add_source: joining.add_source,
            inviter_user_id: joining.inviter,
            create_time: stamp,
            update_time: stamp,
        })
        .collect();
    super::insert_new_rows!(db, table, &rows)?;
    Ok(())
}

/// Marks active members as gone; everything else of their rows stays.
pub async fn leave(db: &mut Db, group: GroupId, users: Vec<UserId>, stamp: i64) -> QueryResult<usize> {
    let rows = table
        .filter(im_group_member::group_id.eq(group))
        .filter(im_group_member::user_id.eq_any(users))
        .filter(im_group_member::status.eq(MEMBER_ACTIVE));
    diesel::update(rows)
        .set((
            im_group_member::status.eq(MEMBER_LEFT),
            im_group_member::quit_time.eq(Some(stamp)),
            im_group_member::update_time.eq(stamp),
        ))
        .execute(db)
        .await
}

pub async fn update(db: &mut Db, group: GroupId, users: Vec<UserId>, change: &MemberChange) -> QueryResult<usize> {
    let rows = table.filter(im_group_member::group_id.eq(group)).filter(im_group_member::user_id.eq_any(users));
    diesel::update(rows).set(change).execute(db).await
}
