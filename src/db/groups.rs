//! `im_group` (`contract/04` section 2). `member_version` rises with every join and leave.

use diesel::prelude::*;

use super::page::PageQuery;
use super::schema::im_group::{self, table};
use super::{Columns, Db, RunQueryDsl};
use crate::domain::group::{GROUP_DISSOLVED, GROUP_NORMAL, GroupState};
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::page::{Page, Paged, TimeRange};

/// A group.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = im_group)]
pub struct Group {
    pub id: GroupId,
    pub name: String,
    pub owner_user_id: UserId,
    pub avatar: Option<String>,
    pub notice: Option<String>,
    pub banned: bool,
    /// Why it is, or last was; for operators.
    pub banned_reason: Option<String>,
    pub banned_time: Option<i64>,
    pub status: i32,
    pub dissolved_time: Option<i64>,
    pub muted_all: bool,
    pub join_approval: bool,
    pub pinned_message_ids: String,
    pub member_version: i64,
    pub create_time: i64,
    pub update_time: i64,
}

impl Group {
    /// What the rules need to know.
    pub fn state(&self) -> GroupState {
        GroupState {
            owner: self.owner_user_id,
            is_banned: self.banned,
            is_dissolved: self.status == GROUP_DISSOLVED,
            is_muted: self.muted_all,
        }
    }

    /// Pinned messages, oldest pin first.
    pub fn pinned(&self) -> Vec<MessageId> {
        self.pinned_message_ids.split(',').filter_map(|id| id.parse().ok()).map(MessageId).collect()
    }
}

/// Fields to change; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, AsChangeset)]
#[diesel(table_name = im_group)]
pub struct GroupChange {
    pub name: Option<String>,
    pub avatar: Option<String>,
    pub notice: Option<String>,
    pub join_approval: Option<bool>,
    pub owner_user_id: Option<UserId>,
    pub muted_all: Option<bool>,
    pub pinned_message_ids: Option<String>,
    pub banned: Option<bool>,
    pub banned_reason: Option<String>,
    pub banned_time: Option<i64>,
    pub status: Option<i32>,
    pub dissolved_time: Option<i64>,
    pub update_time: Option<i64>,
}

pub async fn get(db: &mut Db, id: GroupId) -> QueryResult<Option<Group>> {
    table.filter(im_group::id.eq(id)).select(Group::columns()).first(db).await.optional()
}

/// Groups by id, in no particular order; unknown ids are left out.
pub async fn list_by_ids(db: &mut Db, ids: Vec<GroupId>) -> QueryResult<Vec<Group>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    table.filter(im_group::id.eq_any(ids)).select(Group::columns()).load(db).await
}

/// Which groups a management page shows; `None` is no filter.
#[derive(Clone, Debug, Default)]
pub struct GroupFilter {
    /// Part of the name, in whatever case.
    pub name: Option<String>,
    pub owner_user_id: Option<i64>,
    pub status: Option<i64>,
    pub banned: Option<bool>,
    pub create_time: TimeRange,
}

/// The ids of a management page, newest first, and how many groups there are.
pub async fn list_page(db: &mut Db, filter: &GroupFilter, page: Page) -> QueryResult<Paged<i64>> {
    PageQuery::of("im_group")
        .equals("owner_user_id", filter.owner_user_id)
        .equals("status", filter.status)
        .is("banned", filter.banned)
        .between("create_time", filter.create_time)
        .contains("name", filter.name.as_deref())
        .load(db, page)
        .await
}

/// Makes a group; the owner becomes a member separately.
pub async fn insert(db: &mut Db, owner: UserId, name: &str, join_approval: bool, stamp: i64) -> QueryResult<Group> {
    diesel::insert_into(table)
        .values((
            im_group::name.eq(name),
            im_group::owner_user_id.eq(owner),
            im_group::status.eq(GROUP_NORMAL),
            im_group::join_approval.eq(join_approval),
            im_group::create_time.eq(stamp),
            im_group::update_time.eq(stamp),
        ))
        .execute(db)
        .await?;
    // Stamps are unique to a command, and a command makes one group.
    table
        .filter(im_group::update_time.eq(stamp))
        .filter(im_group::owner_user_id.eq(owner))
        .order(im_group::id.desc())
        .select(Group::columns())
        .first(db)
        .await
}

pub async fn update(db: &mut Db, id: GroupId, change: &GroupChange) -> QueryResult<usize> {
    diesel::update(table.filter(im_group::id.eq(id))).set(change).execute(db).await
}

/// Notes that somebody joined or left.
pub async fn raise_member_version(db: &mut Db, id: GroupId, stamp: i64) -> QueryResult<usize> {
    diesel::update(table.filter(im_group::id.eq(id)))
        .set((im_group::member_version.eq(im_group::member_version + 1), im_group::update_time.eq(stamp)))
        .execute(db)
        .await
}
