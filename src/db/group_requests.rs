//! `im_group_request`: one row for a user and group, reused by later applications and invitations.

use diesel::prelude::*;

use super::page::PageQuery;
use super::schema::im_group_request::{self, table};
use super::{Columns, Db, RunQueryDsl};
use crate::domain::ids::{GroupId, RequestId, UserId};
use crate::domain::page::{Page, Paged, TimeRange};

/// `handle_result`: waiting.
pub const UNHANDLED: i32 = 0;
/// `handle_result`: agreed.
pub const AGREED: i32 = 1;
/// `handle_result`: refused.
pub const REFUSED: i32 = 2;

/// A request to join.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = im_group_request)]
pub struct GroupRequest {
    pub id: RequestId,
    pub group_id: GroupId,
    pub user_id: UserId,
    pub inviter_user_id: Option<UserId>,
    pub apply_content: Option<String>,
    pub add_source: Option<i32>,
    pub handle_result: i32,
    pub handle_user_id: Option<UserId>,
    pub handle_content: Option<String>,
    pub handle_time: Option<i64>,
    pub create_time: i64,
    pub update_time: i64,
}

/// What is asked for. An invitation keeps the text of an earlier application.
#[derive(Clone, Debug)]
pub struct NewRequest {
    pub group: GroupId,
    pub user: UserId,
    pub inviter: Option<UserId>,
    pub apply_content: Option<String>,
    pub add_source: Option<i32>,
}

pub async fn get(db: &mut Db, id: RequestId) -> QueryResult<Option<GroupRequest>> {
    table.filter(im_group_request::id.eq(id)).select(GroupRequest::columns()).first(db).await.optional()
}

/// Makes the request of a user and group, or makes it anew from whatever state it was in; its id.
pub async fn apply(db: &mut Db, new: &NewRequest, stamp: i64) -> QueryResult<RequestId> {
    let row = || table.filter(im_group_request::group_id.eq(new.group)).filter(im_group_request::user_id.eq(new.user));
    let fresh = (
        im_group_request::inviter_user_id.eq(new.inviter),
        im_group_request::add_source.eq(new.add_source),
        im_group_request::handle_result.eq(UNHANDLED),
        im_group_request::handle_user_id.eq(None::<UserId>),
        im_group_request::handle_content.eq(None::<String>),
        im_group_request::handle_time.eq(None::<i64>),
        im_group_request::update_time.eq(stamp),
    );
    let known: Option<RequestId> = row().select(im_group_request::id).first(db).await.optional()?;
    if let Some(id) = known {
        diesel::update(table.filter(im_group_request::id.eq(id))).set(fresh).execute(db).await?;
        if new.inviter.is_none() {
            diesel::update(table.filter(im_group_request::id.eq(id)))
                .set(im_group_request::apply_content.eq(&new.apply_content))
                .execute(db)
                .await?;
        }
        return Ok(id);
    }
    diesel::insert_into(table)
        .values((
            im_group_request::group_id.eq(new.group),
            im_group_request::user_id.eq(new.user),
            im_group_request::apply_content.eq(&new.apply_content),
            im_group_request::create_time.eq(stamp),
            fresh,
        ))
        .execute(db)
        .await?;
    row().select(im_group_request::id).first(db).await
}

/// Marks an unhandled request as handled; false when somebody was faster.
pub async fn handle(
    db: &mut Db,
    id: RequestId,
    result: i32,
    handler: UserId,
    content: Option<&str>,
    stamp: i64,
) -> QueryResult<bool> {
    let row = table.filter(im_group_request::id.eq(id)).filter(im_group_request::handle_result.eq(UNHANDLED));
    let changed = diesel::update(row)
        .set((
            im_group_request::handle_result.eq(result),
            im_group_request::handle_user_id.eq(Some(handler)),
            im_group_request::handle_content.eq(content),
            im_group_request::handle_time.eq(Some(stamp)),
            im_group_request::update_time.eq(stamp),
        ))
        .execute(db)
        .await?;
    Ok(changed == 1)
}

/// Gives a group's unhandled requests a new stamp, so that a new manager's incremental pull brings them.
pub async fn touch_unhandled(db: &mut Db, group: GroupId, stamp: i64) -> QueryResult<usize> {
    let rows = table.filter(im_group_request::group_id.eq(group)).filter(im_group_request::handle_result.eq(UNHANDLED));
    diesel::update(rows).set(im_group_request::update_time.eq(stamp)).execute(db).await
}

/// Requests of some groups, newest first, at most `limit`; only unhandled ones where asked.
pub async fn list_newest(
    db: &mut Db,
    groups: Vec<GroupId>,
    only_unhandled: bool,
    limit: i64,
) -> QueryResult<Vec<GroupRequest>> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let highest = if only_unhandled { UNHANDLED } else { REFUSED };
    table
        .filter(im_group_request::group_id.eq_any(groups))
        .filter(im_group_request::handle_result.le(highest))
        .order((im_group_request::update_time.desc(), im_group_request::id.desc()))
        .limit(limit)
        .select(GroupRequest::columns())
        .load(db)
        .await
}

/// Requests of some groups after the cursor (stamp, id), ascending by it.
pub async fn list_after(
    db: &mut Db,
    groups: Vec<GroupId>,
    cursor: Option<(i64, i64)>,
    horizon: i64,
    limit: i64,
) -> QueryResult<Vec<GroupRequest>> {
    use im_group_request::{id, update_time};
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let (time, last) = cursor.unwrap_or((i64::MIN, 0));
    table
        .filter(im_group_request::group_id.eq_any(groups))
        .filter(update_time.ge(time))
        .filter(update_time.le(horizon))
        .filter(update_time.gt(time).or(id.gt(RequestId(last))))
        .order((update_time.asc(), id.asc()))
        .limit(limit)
        .select(GroupRequest::columns())
        .load(db)
        .await
}

/// Which requests a management page shows; `None` is no filter.
#[derive(Clone, Debug, Default)]
pub struct GroupRequestFilter {
    pub group_id: Option<i64>,
    pub user_id: Option<i64>,
    pub inviter_user_id: Option<i64>,
    pub handle_result: Option<i64>,
    pub add_source: Option<i64>,
    pub create_time: TimeRange,
}

/// A management page, newest first, and how many requests there are.
pub async fn list_page(db: &mut Db, filter: &GroupRequestFilter, page: Page) -> QueryResult<Paged<GroupRequest>> {
    let Paged { list, total } = PageQuery::of("im_group_request")
        .equals("group_id", filter.group_id)
        .equals("user_id", filter.user_id)
        .equals("inviter_user_id", filter.inviter_user_id)
        .equals("handle_result", filter.handle_result)
        .equals("add_source", filter.add_source)
        .between("create_time", filter.create_time)
        .load(db, page)
        .await?;
    let ids = list.into_iter().map(RequestId).collect::<Vec<_>>();
    let rows = table.filter(im_group_request::id.eq_any(ids)).order(im_group_request::id.desc());
    Ok(Paged { list: rows.select(GroupRequest::columns()).load(db).await?, total })
}
