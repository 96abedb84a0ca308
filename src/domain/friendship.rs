//! The relation between two users (`contract/03` section 1): one directed row a side.

use crate::domain::ids::UserId;
use crate::domain::refusal::Refusal;

/// `status` of a friend row: an active friend.
pub const ACTIVE: i32 = 0;
/// `status` of a friend row: deleted by its owner; the row is kept and reused.
pub const DELETED: i32 = 1;

/// What one side's row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    pub is_active: bool,
    pub has_blocked: bool,
}

/// How X stands towards Y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FriendState {
    /// One of the two rows is missing or deleted.
    None,
    Friend,
    /// Friends, but Y has blocked X. X's own block does not limit X.
    BlockedByPeer,
}

/// The state of X towards Y from X's row and Y's row.
pub fn friend_state(mine: Option<Side>, theirs: Option<Side>) -> FriendState {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) if mine.is_active && theirs.is_active => {
            if theirs.has_blocked {
                FriendState::BlockedByPeer
            } else {
                FriendState::Friend
            }
        }
        _ => FriendState::None,
    }
}

/// Who may write to whom (`contract/02` section 2.1).
pub fn check_may_write(state: FriendState) -> Result<(), Refusal> {
    match state {
        FriendState::Friend => Ok(()),
        FriendState::None => Err(Refusal::NotFriend),
        FriendState::BlockedByPeer => Err(Refusal::BlockedByPeer),
    }
}

/// What a friend application leads to (`contract/03` R1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// The target still has the applicant as a friend: the applicant's row comes back, silently.
    ReAdd,
    /// A request is made, or made anew.
    Request,
}

/// Decides an application from the applicant's row and the target's row.
pub fn check_apply(
    applicant: UserId,
    target: UserId,
    mine: Option<Side>,
    theirs: Option<Side>,
) -> Result<Application, Refusal> {
    if applicant == target {
        return Err(Refusal::AddSelf);
    }
    match friend_state(mine, theirs) {
        FriendState::Friend => return Err(Refusal::AlreadyFriend),
        FriendState::BlockedByPeer => return Err(Refusal::ApplyBlockedByPeer),
        FriendState::None => {}
    }
    match theirs {
        Some(side) if side.is_active && side.has_blocked => Err(Refusal::ApplyBlockedByPeer),
        Some(side) if side.is_active => Ok(Application::ReAdd),
        _ => Ok(Application::Request),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NO: Option<Side> = None;
    const ON: Option<Side> = Some(Side { is_active: true, has_blocked: false });
    const BLOCKING: Option<Side> = Some(Side { is_active: true, has_blocked: true });
    const GONE: Option<Side> = Some(Side { is_active: false, has_blocked: false });
    const GONE_BLOCKING: Option<Side> = Some(Side { is_active: false, has_blocked: true });

    #[rstest]
    #[case(NO, NO, Err(Refusal::NotFriend))]
    #[case(ON, NO, Err(Refusal::NotFriend))]
    #[case(ON, GONE, Err(Refusal::NotFriend))]
    #[case(GONE, ON, Err(Refusal::NotFriend))]
    #[case(ON, ON, Ok(()))]
    #[case(BLOCKING, ON, Ok(()))]
    #[case(ON, BLOCKING, Err(Refusal::BlockedByPeer))]
    fn only_mutual_friends_that_are_not_blocked_may_write(
        #[case] mine: Option<Side>,
        #[case] theirs: Option<Side>,
        #[case] expected: Result<(), Refusal>,
    ) {
        assert_eq!(check_may_write(friend_state(mine, theirs)), expected);
    }

    #[rstest]
    #[case(ON, ON, Err(Refusal::AlreadyFriend))]
    #[case(ON, BLOCKING, Err(Refusal::ApplyBlockedByPeer))]
    #[case(GONE, BLOCKING, Err(Refusal::ApplyBlockedByPeer))]
    #[case(GONE, ON, Ok(Application::ReAdd))]
    #[case(NO, ON, Ok(Application::ReAdd))]
    #[case(ON, GONE, Ok(Application::Request))]
    #[case(NO, GONE_BLOCKING, Ok(Application::Request))]
    #[case(NO, NO, Ok(Application::Request))]
    fn an_application_is_decided_by_both_rows(
        #[case] mine: Option<Side>,
        #[case] theirs: Option<Side>,
        #[case] expected: Result<Application, Refusal>,
    ) {
        assert_eq!(check_apply(UserId(1), UserId(2), mine, theirs), expected);
    }

    #[test]
    fn nobody_adds_himself() {
        assert_eq!(check_apply(UserId(1), UserId(1), NO, NO), Err(Refusal::AddSelf));
    }
}
