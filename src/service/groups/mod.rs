//! Groups (`contract/04`): making, changing and ending them, who is in them, and how they look. Every verb needs the
//! `clock` and `group` counters: it is then alone with the state it checks, and its events get their ids in commit
//! order. An event that a leaver still sees is stored before he goes; a joiner's own event after he has come.

mod admins;
mod bans;
mod info;
mod members;
mod mutes;
mod pins;
mod views;

pub use admins::{add_admins, remove_admins, transfer_owner};
pub use bans::{ban, dissolve_as_operator, unban};
pub use info::{GroupUpdate, create, dissolve, update};
pub use members::{MemberUpdate, invite, kick, quit, update_member};
pub use mutes::{cancel_mute_member, mute_all, mute_member};
pub use pins::{pin_message, unpin_message};
pub use views::{get_group, get_member, get_member_by_id, group_list_time, list_groups, list_members};

pub(super) use members::join_members;

use super::{Locks, Tx};
use crate::db::groups::{self as table, Group};
use crate::db::{Db, group_members};
use crate::domain::group::{MemberState, check_gate, check_manager, check_member};
use crate::domain::ids::{GroupId, UserId};
use crate::error::AppError;

/// What every verb of this module locks.
pub const LOCKS: Locks = Locks::CLOCK.and(Locks::GROUP);

/// The group, past the gate.
async fn open_group(tx: &mut Tx<'_>, id: GroupId) -> Result<Group, AppError> {
    let group = table::get(tx.db, id).await?;
    check_gate(group.as_ref().map(Group::state))?;
    group.ok_or_else(|| AppError::Internal("a group passed its gate and is not there".into()))
}

/// What the rules need to know of an active member; refused when he is none.
async fn active_member(db: &mut Db, group: GroupId, user: UserId) -> Result<MemberState, AppError> {
    Ok(check_member(group_members::get_state(db, group, user).await?)?)
}

/// The group past the gate, and its member `user`, who is owner or admin.
async fn open_as_manager(tx: &mut Tx<'_>, id: GroupId, user: UserId) -> Result<(Group, MemberState), AppError> {
    let group = open_group(tx, id).await?;
    let member = active_member(tx.db, id, user).await?;
    check_manager(member)?;
    Ok((group, member))
}

/// Sorted, each once.
fn distinct(mut users: Vec<UserId>) -> Vec<UserId> {
    users.sort_unstable();
    users.dedup();
    users
}
