//! One call for everything that a returning device asks (`design.md` section 12, `POST /im/sync`): the next page of each
//! stream, its new cursor, and whether more is there. Where the pull window cut rows off, the stream says so: never a
//! silent hole.

use super::group_messages;
use super::private_messages;
use super::pull_window::PullWindow;
use super::unread::Windows;
use super::{conversation_reads, friend_requests, friends, group_requests, groups};
use crate::config::MessageConfig;
use crate::db::conversation_reads::ConversationRead;
use crate::db::friends::Friend;
use crate::db::{Db, private_messages as private_table};
use crate::domain::group_message::GroupMessage;
use crate::domain::ids::{MessageId, UserId};
use crate::domain::private_message::PrivateMessage;
use crate::error::AppError;
use crate::protocol::group_payload::{GroupBody, GroupRequestBody};
use crate::service::friend_requests::FriendRequestView;

/// A state cursor: stamp and id of the last row that the client has.
pub type StateCursor = (i64, i64);

/// What a device has already.
#[derive(Clone, Debug)]
pub struct Cursors {
    pub private: MessageId,
    pub group: MessageId,
    pub channel: MessageId,
    pub friends: Option<StateCursor>,
    pub friend_requests: Option<StateCursor>,
    pub group_requests: Option<StateCursor>,
    pub reads: Option<StateCursor>,
    pub group_list_time: i64,
    /// Rows of each page, 1 to 200.
    pub size: i64,
}

/// A page of messages.
#[derive(Debug)]
pub struct MessagePage<T> {
    pub rows: Vec<T>,
    /// The cursor for the next page.
    pub cursor: MessageId,
    pub more: bool,
    /// Rows between the client's cursor and the pull window exist and are not in any page.
    pub truncated: bool,
}

/// A page of changing rows.
#[derive(Debug)]
pub struct StatePage<T> {
    pub rows: Vec<T>,
    /// The cursor for the next page; `None` while there are no rows at all.
    pub cursor: Option<StateCursor>,
    pub more: bool,
}

/// Everything that is new for a device.
#[derive(Debug)]
pub struct News {
    pub private: MessagePage<PrivateMessage>,
    pub group: MessagePage<GroupMessage>,
    pub friends: StatePage<Friend>,
    pub friend_requests: StatePage<FriendRequestView>,
    pub group_requests: StatePage<GroupRequestBody>,
    pub reads: StatePage<ConversationRead>,
    /// My groups and their stamp, unless the client has these already.
    pub groups: Option<(Vec<GroupBody>, i64)>,
}

/// The next page of every stream. Messages come before state: what a message brings about is then in the state too.
pub async fn news(
    db: &mut Db,
    user: UserId,
    cursors: &Cursors,
    rules: &MessageConfig,
    windows: &Windows<'_>,
) -> Result<News, AppError> {
    let size = cursors.size;
    let (now, private, group) = (windows.now, windows.private, windows.group);
    let private_rows = private_messages::pull(db, user, cursors.private, size, now, rules, private).await?;
    let group_rows = group_messages::pull(db, user, cursors.group, size, now, rules, group).await?;
    let private_cut = is_private_cut(db, user, cursors.private, now, rules, private).await?;
    let group_cut = is_group_cut(db, user, cursors.group, now, rules, group).await?;
    let friend_rows = friends::pull(db, user, cursors.friends, size).await?;
    let friend_request_rows = friend_requests::pull(db, user, cursors.friend_requests, size).await?;
    let group_request_rows = group_requests::pull(db, user, cursors.group_requests, size).await?;
    let read_rows = conversation_reads::pull(db, user, cursors.reads, size).await?;
    let time = groups::group_list_time(db, user).await?;
    let list = if time > cursors.group_list_time { Some((groups::list_groups(db, user).await?, time)) } else { None };
    Ok(News {
        private: message_page(private_rows, |row| row.id, cursors.private, size, private_cut),
        group: message_page(group_rows, |row| row.id, cursors.group, size, group_cut),
        friends: state_page(friend_rows, |friend| (friend.row.update_time, friend.row.id), cursors.friends, size),
        friend_requests: state_page(
            friend_request_rows,
            |view| (view.request.update_time, view.request.id.0),
            cursors.friend_requests,
            size,
        ),
        group_requests: state_page(
            group_request_rows,
            |request| (request.update_time, request.id.0),
            cursors.group_requests,
            size,
        ),
        reads: state_page(read_rows, |row| (row.update_time, row.id), cursors.reads, size),
        groups: list,
    })
}

fn message_page<T>(
    rows: Vec<T>,
    id: impl Fn(&T) -> MessageId,
    cursor: MessageId,
    size: i64,
    truncated: bool,
) -> MessagePage<T> {
    let more = is_full(&rows, size);
    let cursor = rows.last().map_or(cursor, id);
    MessagePage { rows, cursor, more, truncated }
}

fn state_page<T>(
    rows: Vec<T>,
    key: impl Fn(&T) -> StateCursor,
    cursor: Option<StateCursor>,
    size: i64,
) -> StatePage<T> {
    let more = is_full(&rows, size);
    let cursor = rows.last().map(key).or(cursor);
    StatePage { rows, cursor, more }
}

fn is_full<T>(rows: &[T], size: i64) -> bool {
    usize::try_from(size).is_ok_and(|size| rows.len() >= size)
}

/// Whether private messages above the cursor lie before the window.
async fn is_private_cut(
    db: &mut Db,
    user: UserId,
    cursor: MessageId,
    now: i64,
    rules: &MessageConfig,
    window: &PullWindow,
) -> Result<bool, AppError> {
    let floor = window.look(db, now, rules).await?.floor;
    if cursor >= floor {
        return Ok(false);
    }
    Ok(!private_table::list_after(db, user, cursor, floor, 1).await?.is_empty())
}

/// Whether group messages above the cursor lie before the window.
async fn is_group_cut(
    db: &mut Db,
    user: UserId,
    cursor: MessageId,
    now: i64,
    rules: &MessageConfig,
    window: &PullWindow,
) -> Result<bool, AppError> {
    let floor = window.look(db, now, rules).await?.floor;
    if cursor >= floor {
        return Ok(false);
    }
    Ok(group_messages::sees_any_between(db, user, cursor, floor).await?)
}
