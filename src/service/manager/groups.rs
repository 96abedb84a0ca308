//! Groups, their members, and requests to join them, as operators see them (`contract/05` E2).

use std::collections::HashMap;

use diesel::QueryResult;

use super::Accounts;
pub use crate::db::group_requests::GroupRequestFilter;
pub use crate::db::groups::GroupFilter;
use crate::db::groups::{self as table, Group};
use crate::db::{Db, group_members, group_requests};
use crate::domain::ids::{GroupId, UserId};
use crate::domain::page::{Page, Paged};
use crate::protocol::manager_payload::{ManagedGroupBody, ManagedGroupRequestBody, ManagedMemberBody};

/// Member rows in one answer.
const MAX_MEMBER_ROWS: i64 = 10_000;

pub async fn list_groups(db: &mut Db, filter: &GroupFilter, page: Page) -> QueryResult<Paged<ManagedGroupBody>> {
    let Paged { list, total } = table::list_page(db, filter, page).await?;
    let ids: Vec<GroupId> = list.into_iter().map(GroupId).collect();
    let mut groups = table::list_by_ids(db, ids.clone()).await?;
    groups.sort_unstable_by_key(|group| std::cmp::Reverse(group.id));
    let owners = Accounts::load(db, groups.iter().map(|group| group.owner_user_id)).await?;
    let counts = group_members::count_active_of(db, ids).await?;
    let show = |group: Group| ManagedGroupBody {
        owner_nickname: owners.nickname(group.owner_user_id),
        member_count: Some(counts.get(&group.id).copied().unwrap_or(0)),
        ..group_body(group)
    };
    Ok(Paged { list: groups.into_iter().map(show).collect(), total })
}

/// One group, without its owner's name and the number of its members.
pub async fn get_group(db: &mut Db, id: GroupId) -> QueryResult<Option<ManagedGroupBody>> {
    Ok(table::get(db, id).await?.map(group_body))
}

fn group_body(group: Group) -> ManagedGroupBody {
    ManagedGroupBody {
        id: group.id,
        name: group.name,
        avatar: group.avatar,
        notice: group.notice,
        owner_user_id: group.owner_user_id,
        owner_nickname: None,
        member_count: None,
        status: group.status,
        dissolved_time: group.dissolved_time,
        banned: group.banned,
        muted_all: group.muted_all,
        banned_reason: group.banned_reason,
        banned_time: group.banned_time,
        create_time: group.create_time,
    }
}

/// Members of a group, former ones too, the newest row first; of a group that does not exist, none.
pub async fn list_members(db: &mut Db, group: GroupId) -> QueryResult<Vec<ManagedMemberBody>> {
    let members = group_members::list_newest(db, group, MAX_MEMBER_ROWS).await?;
    let accounts = Accounts::load(db, members.iter().map(|member| member.user_id)).await?;
    let show = |member: group_members::Member| ManagedMemberBody {
        user_id: member.user_id,
        nickname: accounts.nickname(member.user_id),
        avatar: accounts.avatar(member.user_id),
        display_user_name: member.display_user_name,
        group_remark: member.group_remark,
        silent: member.silent,
        status: member.status,
        role: member.role,
        join_time: member.join_time,
        quit_time: member.quit_time,
        mute_end_time: member.mute_end_time,
    };
    Ok(members.into_iter().map(show).collect())
}

pub async fn list_requests(
    db: &mut Db,
    filter: &GroupRequestFilter,
    page: Page,
) -> QueryResult<Paged<ManagedGroupRequestBody>> {
    let Paged { list, total } = group_requests::list_page(db, filter, page).await?;
    let people = list.iter().flat_map(|row| [Some(row.user_id), row.inviter_user_id, row.handle_user_id]);
    let accounts = Accounts::load(db, people.flatten()).await?;
    let groups = table::list_by_ids(db, list.iter().map(|row| row.group_id).collect()).await?;
    let names: HashMap<GroupId, String> = groups.into_iter().map(|group| (group.id, group.name)).collect();
    let nickname = |user: Option<UserId>| user.and_then(|user| accounts.nickname(user));
    let show = |row: group_requests::GroupRequest| ManagedGroupRequestBody {
        id: row.id,
        group_id: row.group_id,
        group_name: names.get(&row.group_id).cloned(),
        user_id: row.user_id,
        user_nickname: accounts.nickname(row.user_id),
        inviter_user_id: row.inviter_user_id,
        inviter_nickname: nickname(row.inviter_user_id),
        apply_content: row.apply_content,
        add_source: row.add_source,
        handle_result: row.handle_result,
        handle_user_id: row.handle_user_id,
        handle_nickname: nickname(row.handle_user_id),
        handle_content: row.handle_content,
        handle_time: row.handle_time,
        create_time: row.create_time,
    };
    Ok(Paged { list: list.into_iter().map(show).collect(), total })
}
