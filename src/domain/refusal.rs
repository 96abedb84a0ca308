//! Every "no" that a rule can say to a user: number and text in one table (`contract/01` section 14).

/// A rule said no. Owns its number; the wrapper in `http::response` only carries it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("wrong user name or password")]
    BadCredentials,
    #[error("this account is disabled")]
    AccountDisabled,
    #[error("this user name is taken")]
    UsernameTaken,
    #[error("registration is closed")]
    RegistrationClosed,
    #[error("user does not exist")]
    UserNotFound,
    #[error("user {0} is disabled")]
    UserDisabled(String),
    #[error("wrong old password")]
    WrongOldPassword,
    #[error("tenant does not exist")]
    TenantNotFound,
    #[error("file does not exist")]
    FileNotFound,
    #[error("file name or directory is not valid")]
    FileNameInvalid,
    #[error("message does not exist")]
    MessageNotFound,
    #[error("only your own messages can be recalled")]
    RecallDenied,
    #[error("message is recalled already")]
    AlreadyRecalled,
    #[error("the message contains a sensitive word")]
    SensitiveWord,
    #[error("at most {0} rows can be pulled at once")]
    PullSizeExceeded(i64),
    #[error("messages older than {0} minutes cannot be recalled")]
    RecallTimeout(i64),
    #[error("the quoted message cannot be used")]
    QuoteInvalid,
    #[error("read receipts of private messages are switched off")]
    PrivateReadDisabled,
    #[error("message content is not valid: {0}")]
    ContentInvalid(&'static str),
    #[error("this client message id was used for another message")]
    ClientMessageIdReused,
    #[error("message is not in this group, or cannot be used")]
    MessageNotInGroup,
    #[error("read receipts of group messages are switched off")]
    GroupReadDisabled,
    #[error("group does not exist")]
    GroupNotFound,
    #[error("group is banned")]
    GroupBanned,
    #[error("group is dissolved")]
    GroupDissolved,
    #[error("only the owner may do this")]
    NotGroupOwner,
    #[error("only the owner or an admin may do this")]
    NotGroupOwnerOrAdmin,
    #[error("you cannot transfer the group to yourself")]
    TransferToSelf,
    #[error("at most {0} messages can be pinned")]
    PinLimit(usize),
    #[error("message is pinned already")]
    AlreadyPinned,
    #[error("message is not pinned")]
    NotPinned,
    #[error("a message to some members only cannot be pinned")]
    DirectedCannotBePinned,
    #[error("not a member of this group")]
    NotGroupMember,
    #[error("the owner must transfer or dissolve the group first")]
    OwnerCannotQuit,
    #[error("you cannot remove yourself")]
    CannotKickSelf,
    #[error("a group has at most {0} members")]
    MemberLimit(usize),
    #[error("{0} are not your friends")]
    InviteesNotFriends(String),
    #[error("an admin must be a member of the group")]
    AdminTargetNotInGroup,
    #[error("the owner cannot be made or unmade admin")]
    AdminTargetIsOwner,
    #[error("a group has at most {0} admins")]
    AdminLimit(usize),
    #[error("the owner cannot be removed")]
    CannotKickOwner,
    #[error("an admin cannot remove admins")]
    AdminCannotKickAdmin,
    #[error("the group is muted")]
    GroupMuted,
    #[error("you are muted until {0}")]
    MemberMuted(String),
    #[error("you cannot mute yourself")]
    CannotMuteSelf,
    #[error("the owner cannot be muted")]
    CannotMuteOwner,
    #[error("an admin cannot mute admins")]
    AdminCannotMuteAdmin,
    #[error("join request does not exist")]
    GroupRequestNotFound,
    #[error("join request is handled already")]
    GroupRequestHandled,
    #[error("only the owner or an admin may handle join requests")]
    GroupRequestNotToMe,
    #[error("already a member of this group")]
    AlreadyGroupMember,
    #[error("sensitive word does not exist")]
    WordNotFound,
    #[error("sensitive word exists already: {0}")]
    WordExists(String),
    #[error("you are not friends")]
    NotFriend,
    #[error("you cannot add yourself")]
    AddSelf,
    #[error("you have not blocked the other side")]
    NotBlocked,
    #[error("the other side has blocked you")]
    BlockedByPeer,
    #[error("friend request does not exist")]
    FriendRequestNotFound,
    #[error("friend request is handled already")]
    FriendRequestHandled,
    #[error("friend request is not addressed to you")]
    FriendRequestNotToMe,
    #[error("you are friends already")]
    AlreadyFriend,
    #[error("the other side has blocked you, you cannot apply")]
    ApplyBlockedByPeer,
}

impl Refusal {
    /// The number that clients see. IM numbers are those of the contract; 1040300014 is ours.
    pub fn code(&self) -> i32 {
        match self {
            Refusal::BadCredentials => 1_002_000_000,
            Refusal::AccountDisabled => 1_002_000_001,
            Refusal::UsernameTaken => 1_002_003_000,
            Refusal::UserNotFound => 1_002_003_003,
            Refusal::FileNotFound => 1_001_003_001,
            Refusal::FileNameInvalid => 1_001_003_003,
            Refusal::WrongOldPassword => 1_002_003_005,
            Refusal::UserDisabled(_) => 1_002_003_006,
            Refusal::RegistrationClosed => 1_002_003_011,
            Refusal::TenantNotFound => 1_002_015_000,
            Refusal::MessageNotFound => 1_040_300_000,
            Refusal::RecallDenied => 1_040_300_002,
            Refusal::AlreadyRecalled => 1_040_300_003,
            Refusal::SensitiveWord => 1_040_300_004,
            Refusal::PullSizeExceeded(_) => 1_040_300_005,
            Refusal::RecallTimeout(_) => 1_040_300_007,
            Refusal::QuoteInvalid => 1_040_300_008,
            Refusal::PrivateReadDisabled => 1_040_300_010,
            Refusal::ContentInvalid(_) => 1_040_300_013,
            Refusal::ClientMessageIdReused => 1_040_300_014,
            Refusal::MessageNotInGroup => 1_040_300_009,
            Refusal::GroupReadDisabled => 1_040_300_011,
            Refusal::GroupNotFound => 1_040_400_000,
            Refusal::GroupBanned => 1_040_400_001,
            Refusal::GroupDissolved => 1_040_400_002,
            Refusal::NotGroupOwner => 1_040_400_003,
            Refusal::NotGroupOwnerOrAdmin => 1_040_400_004,
            Refusal::TransferToSelf => 1_040_400_005,
            Refusal::PinLimit(_) => 1_040_400_006,
            Refusal::AlreadyPinned => 1_040_400_007,
            Refusal::NotPinned => 1_040_400_008,
            Refusal::DirectedCannotBePinned => 1_040_400_009,
            Refusal::NotGroupMember => 1_040_500_001,
            Refusal::OwnerCannotQuit => 1_040_500_003,
            Refusal::CannotKickSelf => 1_040_500_004,
            Refusal::MemberLimit(_) => 1_040_500_005,
            Refusal::InviteesNotFriends(_) => 1_040_500_006,
            Refusal::AdminTargetNotInGroup => 1_040_500_007,
            Refusal::AdminTargetIsOwner => 1_040_500_008,
            Refusal::AdminLimit(_) => 1_040_500_009,
            Refusal::CannotKickOwner => 1_040_500_010,
            Refusal::AdminCannotKickAdmin => 1_040_500_011,
            Refusal::GroupMuted => 1_040_500_012,
            Refusal::MemberMuted(_) => 1_040_500_013,
            Refusal::CannotMuteSelf => 1_040_500_014,
            Refusal::CannotMuteOwner => 1_040_500_015,
            Refusal::AdminCannotMuteAdmin => 1_040_500_016,
            Refusal::GroupRequestNotFound => 1_040_510_001,
            Refusal::GroupRequestHandled => 1_040_510_002,
            Refusal::GroupRequestNotToMe => 1_040_510_003,
            Refusal::AlreadyGroupMember => 1_040_510_004,
            Refusal::WordNotFound => 1_040_700_000,
            Refusal::WordExists(_) => 1_040_700_001,
            Refusal::NotFriend => 1_040_600_001,
            Refusal::AddSelf => 1_040_600_002,
            Refusal::NotBlocked => 1_040_600_003,
            Refusal::BlockedByPeer => 1_040_600_004,
            Refusal::FriendRequestNotFound => 1_040_610_001,
            Refusal::FriendRequestHandled => 1_040_610_002,
            Refusal::FriendRequestNotToMe => 1_040_610_003,
            Refusal::AlreadyFriend => 1_040_610_005,
            Refusal::ApplyBlockedByPeer => 1_040_610_006,
        }
    }

    /// One of each, for documentation and tests.
    pub fn samples() -> Vec<Refusal> {
        vec![
            Refusal::BadCredentials,
            Refusal::AccountDisabled,
            Refusal::UsernameTaken,
            Refusal::RegistrationClosed,
            Refusal::UserNotFound,
            Refusal::UserDisabled(String::new()),
            Refusal::WrongOldPassword,
            Refusal::TenantNotFound,
            Refusal::FileNotFound,
            Refusal::FileNameInvalid,
            Refusal::MessageNotFound,
            Refusal::RecallDenied,
            Refusal::AlreadyRecalled,
            Refusal::SensitiveWord,
            Refusal::PullSizeExceeded(0),
            Refusal::RecallTimeout(0),
            Refusal::QuoteInvalid,
            Refusal::PrivateReadDisabled,
            Refusal::ContentInvalid(""),
            Refusal::ClientMessageIdReused,
            Refusal::MessageNotInGroup,
            Refusal::GroupReadDisabled,
            Refusal::GroupNotFound,
            Refusal::GroupBanned,
            Refusal::GroupDissolved,
            Refusal::NotGroupOwner,
            Refusal::NotGroupOwnerOrAdmin,
            Refusal::TransferToSelf,
            Refusal::PinLimit(0),
            Refusal::AlreadyPinned,
            Refusal::NotPinned,
            Refusal::DirectedCannotBePinned,
            Refusal::NotGroupMember,
            Refusal::OwnerCannotQuit,
            Refusal::CannotKickSelf,
            Refusal::MemberLimit(0),
            Refusal::InviteesNotFriends(String::new()),
            Refusal::AdminTargetNotInGroup,
            Refusal::AdminTargetIsOwner,
            Refusal::AdminLimit(0),
            Refusal::CannotKickOwner,
            Refusal::AdminCannotKickAdmin,
            Refusal::GroupMuted,
            Refusal::MemberMuted(String::new()),
            Refusal::CannotMuteSelf,
            Refusal::CannotMuteOwner,
            Refusal::AdminCannotMuteAdmin,
            Refusal::GroupRequestNotFound,
            Refusal::GroupRequestHandled,
            Refusal::GroupRequestNotToMe,
            Refusal::AlreadyGroupMember,
            Refusal::WordNotFound,
            Refusal::WordExists(String::new()),
            Refusal::NotFriend,
            Refusal::AddSelf,
            Refusal::NotBlocked,
            Refusal::BlockedByPeer,
            Refusal::FriendRequestNotFound,
            Refusal::FriendRequestHandled,
            Refusal::FriendRequestNotToMe,
            Refusal::AlreadyFriend,
            Refusal::ApplyBlockedByPeer,
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn numbers_are_unique_and_documented() {
        let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/protocol.md")).unwrap();
        let mut seen = HashSet::new();
        for refusal in Refusal::samples() {
            assert!(seen.insert(refusal.code()), "{refusal:?} shares its number");
            assert!(document.contains(&refusal.code().to_string()), "{refusal:?} is not in docs/protocol.md");
        }
    }
}
