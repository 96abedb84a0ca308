//! `im_friend_request`: one row for each ordered pair, reused by later applications (`contract/03` section 8).

use diesel::prelude::*;

use super::page::PageQuery;
use super::schema::im_friend_request::{self, table};
use super::{Columns, Db, RunQueryDsl};
use crate::domain::ids::{RequestId, UserId};
use crate::domain::page::{Page, Paged, TimeRange};

/// `handle_result`: waiting.
pub const UNHANDLED: i32 = 0;
/// `handle_result`: agreed.
pub const AGREED: i32 = 1;
/// `handle_result`: refused.
pub const REFUSED: i32 = 2;

/// A friend request.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = im_friend_request)]
pub struct FriendRequest {
    pub id: RequestId,
    pub from_user_id: UserId,
    pub to_user_id: UserId,
    pub handle_result: i32,
    pub apply_content: Option<String>,
    pub handle_content: Option<String>,
    /// The applicant's remark, which only the applicant may see.
    pub display_name: Option<String>,
    pub add_source: Option<i32>,
    pub handle_time: Option<i64>,
    pub create_time: i64,
    pub update_time: i64,
}

/// What an application says.
#[derive(Clone, Debug)]
pub struct Application {
    pub from: UserId,
    pub to: UserId,
    pub apply_content: Option<String>,
    pub display_name: Option<String>,
    pub add_source: Option<i32>,
}

pub async fn get_by_id(db: &mut Db, id: RequestId) -> QueryResult<Option<FriendRequest>> {
    table.filter(im_friend_request::id.eq(id)).select(FriendRequest::columns()).first(db).await.optional()
}

/// Requests that `user` made or got, after the cursor (stamp, id) and up to the stamp `horizon`, ascending by the
/// cursor: two index reads of at most `limit` rows each.
pub async fn list_after(
    db: &mut Db,
    user: UserId,
    cursor: Option<(i64, i64)>,
    horizon: i64,
    limit: i64,
) -> QueryResult<Vec<FriendRequest>> {
    use im_friend_request::{from_user_id, id, to_user_id, update_time};
    let (time, last) = cursor.unwrap_or((i64::MIN, 0));
    let window = || {
        table
            .filter(update_time.ge(time))
            .filter(update_time.le(horizon))
            .filter(update_time.gt(time).or(id.gt(RequestId(last))))
            .order((update_time.asc(), id.asc()))
            .limit(limit)
            .select(FriendRequest::columns())
    };
    let mut page: Vec<FriendRequest> = window().filter(from_user_id.eq(user)).load(db).await?;
    let received: Vec<FriendRequest> = window().filter(to_user_id.eq(user)).load(db).await?;
    page.extend(received);
    page.sort_unstable_by_key(|request| (request.update_time, request.id));
    page.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(page)
}

/// Requests that `user` made or got, before the position (stamp, id), descending by it: two index reads of at most
/// `limit` rows each.
pub async fn list_before(
    db: &mut Db,
    user: UserId,
    (time, last): (i64, RequestId),
    limit: i64,
) -> QueryResult<Vec<FriendRequest>> {
    use im_friend_request::{from_user_id, id, to_user_id, update_time};
    let window = || {
        table
            .filter(update_time.le(time))
            .filter(update_time.lt(time).or(id.lt(last)))
            .order((update_time.desc(), id.desc()))
            .limit(limit)
            .select(FriendRequest::columns())
    };
    let mut page: Vec<FriendRequest> = window().filter(from_user_id.eq(user)).load(db).await?;
    let received: Vec<FriendRequest> = window().filter(to_user_id.eq(user)).load(db).await?;
    page.extend(received);
    page.sort_unstable_by_key(|request| std::cmp::Reverse((request.update_time, request.id)));
    page.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(page)
}

/// Makes the request of an ordered pair, or makes it anew from whatever state it was in; its id.
pub async fn apply(db: &mut Db, application: &Application, stamp: i64) -> QueryResult<RequestId> {
    let pair = || {
        table
            .filter(im_friend_request::from_user_id.eq(application.from))
            .filter(im_friend_request::to_user_id.eq(application.to))
    };
    let known: Option<RequestId> = pair().select(im_friend_request::id).first(db).await.optional()?;
    let content = (
        im_friend_request::apply_content.eq(&application.apply_content),
        im_friend_request::display_name.eq(&application.display_name),
        im_friend_request::add_source.eq(application.add_source),
        im_friend_request::handle_result.eq(UNHANDLED),
        im_friend_request::handle_content.eq(None::<String>),
        im_friend_request::handle_time.eq(None::<i64>),
        im_friend_request::update_time.eq(stamp),
    );
    if let Some(id) = known {
        diesel::update(table.filter(im_friend_request::id.eq(id))).set(content).execute(db).await?;
        return Ok(id);
    }
    diesel::insert_into(table)
        .values((
            im_friend_request::from_user_id.eq(application.from),
            im_friend_request::to_user_id.eq(application.to),
            im_friend_request::create_time.eq(stamp),
            content,
        ))
        .execute(db)
        .await?;
    pair().select(im_friend_request::id).first(db).await
}

/// Marks an unhandled request as handled; false when somebody was faster.
pub async fn handle(db: &mut Db, id: RequestId, result: i32, content: Option<&str>, stamp: i64) -> QueryResult<bool> {
    let unhandled = table.filter(im_friend_request::id.eq(id)).filter(im_friend_request::handle_result.eq(UNHANDLED));
    let changed = diesel::update(unhandled)
        .set((
            im_friend_request::handle_result.eq(result),
            im_friend_request::handle_content.eq(content),
            im_friend_request::handle_time.eq(Some(stamp)),
            im_friend_request::update_time.eq(stamp),
        ))
        .execute(db)
        .await?;
    Ok(changed == 1)
}

/// Which requests a management page shows; `None` is no filter.
#[derive(Clone, Debug, Default)]
pub struct FriendRequestFilter {
    pub from_user_id: Option<i64>,
    pub to_user_id: Option<i64>,
    pub handle_result: Option<i64>,
    pub add_source: Option<i64>,
    pub create_time: TimeRange,
}

/// A management page, newest first, and how many requests there are.
pub async fn list_page(db: &mut Db, filter: &FriendRequestFilter, page: Page) -> QueryResult<Paged<FriendRequest>> {
    let Paged { list, total } = PageQuery::of("im_friend_request")
        .equals("from_user_id", filter.from_user_id)
        .equals("to_user_id", filter.to_user_id)
        .equals("handle_result", filter.handle_result)
        .equals("add_source", filter.add_source)
        .between("create_time", filter.create_time)
        .load(db, page)
        .await?;
    let ids = list.into_iter().map(RequestId).collect::<Vec<_>>();
    let rows = table.filter(im_friend_request::id.eq_any(ids)).order(im_friend_request::id.desc());
    Ok(Paged { list: rows.select(FriendRequest::columns()).load(db).await?, total })
}
