//! `im_group_member_span`: between which group-message ids a user was a member (`design.md` section 5). Spans are
//! opened and closed under the `group` counter, never rewritten: who saw a message stays fixed for ever.

use std::collections::HashMap;

use diesel::prelude::*;

use super::schema::im_group_member_span::{self, table};
use super::{Db, RunQueryDsl};
use crate::domain::group_message::Span;
use crate::domain::ids::{GroupId, MAX_ID, MessageId, UserId};

/// End of the span of a present member.
const OPEN: MessageId = MessageId(MAX_ID);

#[derive(Clone, Insertable)]
#[diesel(table_name = im_group_member_span, treat_none_as_default_value = false)]
struct NewSpan {
    user_id: UserId,
    group_id: GroupId,
    from_id: MessageId,
    to_id: MessageId,
}

/// Users become members after the message `from`.
pub async fn open(db: &mut Db, group: GroupId, users: &[UserId], from: MessageId) -> QueryResult<()> {
    let rows: Vec<NewSpan> =
        users.iter().map(|user| NewSpan { user_id: *user, group_id: group, from_id: from, to_id: OPEN }).collect();
    if !rows.is_empty() {
        super::insert_new_rows!(db, table, &rows)?;
    }
    Ok(())
}

/// Shows one message of a group, which is just being stored, to somebody who is no member.
pub async fn show_one(db: &mut Db, group: GroupId, user: UserId, message: MessageId) -> QueryResult<usize> {
    let span = NewSpan { user_id: user, group_id: group, from_id: MessageId(message.0 - 1), to_id: message };
    diesel::insert_into(table).values(&span).execute(db).await
}

/// Users stop being members after the message `to`, which they still see.
pub async fn close(db: &mut Db, group: GroupId, users: Vec<UserId>, to: MessageId) -> QueryResult<usize> {
    let rows = table
        .filter(im_group_member_span::group_id.eq(group))
        .filter(im_group_member_span::user_id.eq_any(users))
        .filter(im_group_member_span::to_id.eq(OPEN));
    diesel::update(rows).set(im_group_member_span::to_id.eq(to)).execute(db).await
}

/// Spans of a user that end after `after`, with their group, at most `limit`; the latest first.
pub async fn list_of_user(
    db: &mut Db,
    user: UserId,
    after: MessageId,
    limit: i64,
) -> QueryResult<Vec<(GroupId, Span)>> {
    let rows: Vec<(GroupId, MessageId, MessageId)> = table
        .filter(im_group_member_span::user_id.eq(user))
        .filter(im_group_member_span::to_id.gt(after))
        .order(im_group_member_span::to_id.desc())
        .limit(limit)
        .select((im_group_member_span::group_id, im_group_member_span::from_id, im_group_member_span::to_id))
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|(group, from, to)| (group, Span { from, to })).collect())
}

/// Spans of a user in one group, the latest first.
pub async fn list_in_group(db: &mut Db, user: UserId, group: GroupId) -> QueryResult<Vec<Span>> {
    let rows: Vec<(MessageId, MessageId)> = table
        .filter(im_group_member_span::user_id.eq(user))
        .filter(im_group_member_span::group_id.eq(group))
        .order(im_group_member_span::from_id.desc())
        .select((im_group_member_span::from_id, im_group_member_span::to_id))
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|(from, to)| Span { from, to }).collect())
}

/// Spans of some users in some groups (any combination of them).
pub async fn list_for(
    db: &mut Db,
    groups: Vec<GroupId>,
    users: Vec<UserId>,
) -> QueryResult<HashMap<(GroupId, UserId), Vec<Span>>> {
    if groups.is_empty() || users.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(GroupId, UserId, MessageId, MessageId)> = table
        .filter(im_group_member_span::group_id.eq_any(groups))
        .filter(im_group_member_span::user_id.eq_any(users))
        .select((
            im_group_member_span::group_id,
            im_group_member_span::user_id,
            im_group_member_span::from_id,
            im_group_member_span::to_id,
        ))
        .load(db)
        .await?;
    let mut spans: HashMap<(GroupId, UserId), Vec<Span>> = HashMap::new();
    for (group, user, from, to) in rows {
        spans.entry((group, user)).or_default().push(Span { from, to });
    }
    Ok(spans)
}

/// All spans of a group.
pub async fn list_of_group(db: &mut Db, group: GroupId) -> QueryResult<Vec<(UserId, Span)>> {
    let rows: Vec<(UserId, MessageId, MessageId)> = table
        .filter(im_group_member_span::group_id.eq(group))
        .select((im_group_member_span::user_id, im_group_member_span::from_id, im_group_member_span::to_id))
        .load(db)
        .await?;
    Ok(rows.into_iter().map(|(user, from, to)| (user, Span { from, to })).collect())
}

/// Who was a member when a message was sent, ascending.
pub async fn list_members_at(db: &mut Db, group: GroupId, message: MessageId) -> QueryResult<Vec<UserId>> {
    table
        .filter(im_group_member_span::group_id.eq(group))
        .filter(im_group_member_span::from_id.lt(message))
        .filter(im_group_member_span::to_id.ge(message))
        .order(im_group_member_span::user_id)
        .select(im_group_member_span::user_id)
        .load(db)
        .await
}
