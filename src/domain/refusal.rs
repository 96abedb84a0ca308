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
    #[error("message does not exist")]
    MessageNotFound,
    #[error("only your own messages can be recalled")]
    RecallDenied,
    #[error("message is recalled already")]
    AlreadyRecalled,
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
            Refusal::WrongOldPassword => 1_002_003_005,
            Refusal::UserDisabled(_) => 1_002_003_006,
            Refusal::RegistrationClosed => 1_002_003_011,
            Refusal::TenantNotFound => 1_002_015_000,
            Refusal::MessageNotFound => 1_040_300_000,
            Refusal::RecallDenied => 1_040_300_002,
            Refusal::AlreadyRecalled => 1_040_300_003,
            Refusal::PullSizeExceeded(_) => 1_040_300_005,
            Refusal::RecallTimeout(_) => 1_040_300_007,
            Refusal::QuoteInvalid => 1_040_300_008,
            Refusal::PrivateReadDisabled => 1_040_300_010,
            Refusal::ContentInvalid(_) => 1_040_300_013,
            Refusal::ClientMessageIdReused => 1_040_300_014,
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
            Refusal::MessageNotFound,
            Refusal::RecallDenied,
            Refusal::AlreadyRecalled,
            Refusal::PullSizeExceeded(0),
            Refusal::RecallTimeout(0),
            Refusal::QuoteInvalid,
            Refusal::PrivateReadDisabled,
            Refusal::ContentInvalid(""),
            Refusal::ClientMessageIdReused,
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
