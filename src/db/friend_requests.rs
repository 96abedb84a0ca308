//! `im_friend_request`: one row for each ordered pair, reused by later applications (`contract/03` section 8).

use diesel::prelude::*;

use super::schema::im_friend_request::{self, table};
use super::{Columns, Db, RunQueryDsl};
use crate::domain::ids::{RequestId, UserId};

/// `handle_result`: waiting.
pub const UNHANDLED: i32 = 0;
/// `handle_result`: agreed.
pub const AGREED: i32 = 1;

/// A friend request.
#[derive(Clone, Debug, Queryable, Selectable)]
#[diesel(table_name = im_friend_request)]
pub struct FriendRequest {
    pub id: RequestId,
    pub from_user_id: UserId,
    pub to_user_id: UserId,
    pub handle_result: i32,
    pub display_name: Option<String>,
    pub add_source: Option<i32>,
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
