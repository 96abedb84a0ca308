//! Friendships and friend requests as operators see them (`contract/05` E1).

use diesel::QueryResult;

use super::Accounts;
use crate::db::Db;
pub use crate::db::friend_requests::FriendRequestFilter;
use crate::db::friend_requests::{self, FriendRequest};
pub use crate::db::friends::FriendFilter;
use crate::db::friends::{self as table, OwnedFriendRow};
use crate::domain::page::{Page, Paged};
use crate::protocol::manager_payload::{ManagedFriendBody, ManagedFriendRequestBody};

/// Rows of friendships: each has two, one a side.
pub async fn list_friends(db: &mut Db, filter: &FriendFilter, page: Page) -> QueryResult<Paged<ManagedFriendBody>> {
    let Paged { list, total } = table::list_page(db, filter, page).await?;
    let people = list.iter().flat_map(|owned| [owned.user_id, owned.row.friend_user_id]);
    let accounts = Accounts::load(db, people).await?;
    let show = |OwnedFriendRow { user_id, create_time, row }| ManagedFriendBody {
        id: row.id,
        user_id,
        user_nickname: accounts.nickname(user_id),
        friend_user_id: row.friend_user_id,
        friend_nickname: accounts.nickname(row.friend_user_id),
        display_name: row.display_name,
        add_source: row.add_source,
        silent: row.silent,
        pinned: row.pinned,
        blocked: row.blocked,
        status: row.status,
        add_time: row.add_time,
        delete_time: row.delete_time,
        create_time,
    };
    Ok(Paged { list: list.into_iter().map(show).collect(), total })
}

pub async fn list_requests(
    db: &mut Db,
    filter: &FriendRequestFilter,
    page: Page,
) -> QueryResult<Paged<ManagedFriendRequestBody>> {
    let Paged { list, total } = friend_requests::list_page(db, filter, page).await?;
    let people = list.iter().flat_map(|row| [row.from_user_id, row.to_user_id]);
    let accounts = Accounts::load(db, people).await?;
    let show = |row: FriendRequest| ManagedFriendRequestBody {
        id: row.id,
        from_user_id: row.from_user_id,
        from_nickname: accounts.nickname(row.from_user_id),
        to_user_id: row.to_user_id,
        to_nickname: accounts.nickname(row.to_user_id),
        apply_content: row.apply_content,
        display_name: row.display_name,
        add_source: row.add_source,
        handle_result: row.handle_result,
        handle_content: row.handle_content,
        handle_time: row.handle_time,
        create_time: row.create_time,
    };
    Ok(Paged { list: list.into_iter().map(show).collect(), total })
}
