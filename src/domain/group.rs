//! Groups: the gate, roles, and who may do what (`contract/04` sections 3, 4 and 7).

use crate::domain::calendar::time_text;
use crate::domain::ids::UserId;
use crate::domain::refusal::Refusal;

/// `status` of a group: alive.
pub const GROUP_NORMAL: i32 = 0;
/// `status` of a group: dissolved, for ever.
pub const GROUP_DISSOLVED: i32 = 1;
/// `status` of a member row: in the group.
pub const MEMBER_ACTIVE: i32 = 0;
/// `status` of a member row: quit, kicked, or the group is dissolved.
pub const MEMBER_LEFT: i32 = 1;
/// `mute_end_time` of a mute without end: a time in the year 9999 in every zone, milliseconds.
pub const MUTED_FOR_EVER: i64 = 253_402_214_400_000;

/// What a member may do; lower is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Owner = 1,
    Admin = 2,
    Normal = 3,
}

impl Role {
    pub fn from_number(number: i32) -> Role {
        match number {
            1 => Role::Owner,
            2 => Role::Admin,
            _ => Role::Normal,
        }
    }

    pub fn number(self) -> i32 {
        self as i32
    }

    /// Owner or admin.
    pub fn is_manager(self) -> bool {
        self != Role::Normal
    }
}

/// What the rules need to know of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupState {
    pub owner: UserId,
    pub is_banned: bool,
    pub is_dissolved: bool,
    pub is_muted: bool,
}

/// What the rules need to know of an active member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberState {
    pub role: Role,
    /// When a personal mute ends, milliseconds.
    pub mute_end_time: Option<i64>,
}

/// The check that most operations begin with, in this order: exists, not banned, not dissolved.
pub fn check_gate(group: Option<GroupState>) -> Result<GroupState, Refusal> {
    let group = group.ok_or(Refusal::GroupNotFound)?;
    if group.is_banned {
        return Err(Refusal::GroupBanned);
    }
    check_not_dissolved(group)
}

/// The gate of operations that a ban does not stop: dissolving and quitting.
pub fn check_exists(group: Option<GroupState>) -> Result<GroupState, Refusal> {
    check_not_dissolved(group.ok_or(Refusal::GroupNotFound)?)
}

fn check_not_dissolved(group: GroupState) -> Result<GroupState, Refusal> {
    if group.is_dissolved { Err(Refusal::GroupDissolved) } else { Ok(group) }
}

/// Only active members go on.
pub fn check_member(member: Option<MemberState>) -> Result<MemberState, Refusal> {
    member.ok_or(Refusal::NotGroupMember)
}

/// Only the owner goes on.
pub fn check_owner(group: GroupState, user: UserId) -> Result<(), Refusal> {
    if group.owner == user { Ok(()) } else { Err(Refusal::NotGroupOwner) }
}

/// Only the owner and admins go on.
pub fn check_manager(member: MemberState) -> Result<(), Refusal> {
    if member.role.is_manager() { Ok(()) } else { Err(Refusal::NotGroupOwnerOrAdmin) }
}

/// Whether a member may write now (`contract/02` section 2.1): the mute of the group spares owner and admins, a
/// personal mute spares nobody.
pub fn check_may_send(group: Option<GroupState>, member: Option<MemberState>, now: i64) -> Result<(), Refusal> {
    let group = check_gate(group)?;
    let member = check_member(member)?;
    if group.is_muted && !member.role.is_manager() {
        return Err(Refusal::GroupMuted);
    }
    match member.mute_end_time {
        Some(end) if end > now => Err(Refusal::MemberMuted(time_text(end))),
        _ => Ok(()),
    }
}

/// Whether `actor` may remove members with these roles.
pub fn check_kick(actor: MemberState, targets: &[Role]) -> Result<(), Refusal> {
    if targets.contains(&Role::Owner) {
        return Err(Refusal::CannotKickOwner);
    }
    if actor.role == Role::Admin && targets.contains(&Role::Admin) {
        return Err(Refusal::AdminCannotKickAdmin);
    }
    Ok(())
}

/// Whether `actor` may mute or unmute a member with this role.
pub fn check_mute(actor: MemberState, target: MemberState) -> Result<(), Refusal> {
    check_manager(actor)?;
    match target.role {
        Role::Owner => Err(Refusal::CannotMuteOwner),
        Role::Admin if actor.role != Role::Owner => Err(Refusal::AdminCannotMuteAdmin),
        _ => Ok(()),
    }
}

/// A group of `active` members takes `more`.
pub fn check_capacity(active: usize, more: usize, max: usize) -> Result<(), Refusal> {
    if active.saturating_add(more) > max { Err(Refusal::MemberLimit(max)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const GROUP: GroupState = GroupState { owner: UserId(1), is_banned: false, is_dissolved: false, is_muted: false };

    fn member(role: Role) -> MemberState {
        MemberState { role, mute_end_time: None }
    }

    #[rstest]
    #[case(None, Err(Refusal::GroupNotFound))]
    #[case(Some(GroupState { is_banned: true, is_dissolved: true, ..GROUP }), Err(Refusal::GroupBanned))]
    #[case(Some(GroupState { is_dissolved: true, ..GROUP }), Err(Refusal::GroupDissolved))]
    #[case(Some(GROUP), Ok(GROUP))]
    fn the_gate_says_the_first_reason(
        #[case] group: Option<GroupState>,
        #[case] expected: Result<GroupState, Refusal>,
    ) {
        assert_eq!(check_gate(group), expected);
    }

    #[test]
    fn a_muted_group_hears_only_its_managers() {
        let muted = Some(GroupState { is_muted: true, ..GROUP });
        assert_eq!(check_may_send(muted, Some(member(Role::Normal)), 0), Err(Refusal::GroupMuted));
        assert_eq!(check_may_send(muted, Some(member(Role::Admin)), 0), Ok(()));
        assert_eq!(check_may_send(muted, Some(member(Role::Owner)), 0), Ok(()));
    }

    #[test]
    fn a_personal_mute_spares_nobody_and_ends() {
        let owner = MemberState { role: Role::Owner, mute_end_time: Some(1_000) };
        assert!(matches!(check_may_send(Some(GROUP), Some(owner), 999), Err(Refusal::MemberMuted(_))));
        assert_eq!(check_may_send(Some(GROUP), Some(owner), 1_000), Ok(()));
    }

    #[test]
    fn admins_cannot_touch_admins_and_nobody_the_owner() {
        let (owner, admin) = (member(Role::Owner), member(Role::Admin));
        assert_eq!(check_kick(owner, &[Role::Admin, Role::Normal]), Ok(()));
        assert_eq!(check_kick(admin, &[Role::Normal, Role::Admin]), Err(Refusal::AdminCannotKickAdmin));
        assert_eq!(check_kick(admin, &[Role::Owner]), Err(Refusal::CannotKickOwner));
        assert_eq!(check_mute(admin, admin), Err(Refusal::AdminCannotMuteAdmin));
        assert_eq!(check_mute(owner, admin), Ok(()));
        assert_eq!(check_mute(member(Role::Normal), member(Role::Normal)), Err(Refusal::NotGroupOwnerOrAdmin));
        assert_eq!(check_mute(owner, owner), Err(Refusal::CannotMuteOwner));
    }
}
