//! Message contents: the one table of all content types, and the rules for what users send.
//!
//! A content is a JSON object in a string (`contract/02` section 2.3). [`parse_content`] checks it and gives a
//! [`Content`], which knows its quote ([`Quote`]) and has a hash that tells a repeated send from another one under
//! the same client id ([`content_hash`], `design.md` I2).
//!
//! To add a type: one line in the table, its rule in `rules.rs`, a row in docs/protocol.md.

mod body;
mod client_id;
mod hash;
mod quote;
mod rules;

pub use body::{Content, MAX_CONTENT_BYTES, parse_content};
pub use client_id::{MAX_CLIENT_MESSAGE_ID_LENGTH, check_client_message_id};
pub use hash::content_hash;
pub use quote::{MAX_STORED_CONTENT_BYTES, Quote, strip_quote};

use crate::domain::conversation::ConversationType::{self, Channel, Group, Private};

/// Why a content is refused (`MESSAGE_CONTENT_INVALID`, 1040300013). The text is for logs, not for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("content is invalid: {0}")]
pub struct ContentInvalid(pub &'static str);

/// What one line of the table says.
struct Row {
    name: &'static str,
    persistent: bool,
    normal: bool,
    conversations: &'static [ConversationType],
}

/// Lines: `Variant = number, "NAME", kind, conversations;`. The kinds:
/// `normal` (sent by users, stored), `stored` (made by the server, stored), `signal` (not stored).
macro_rules! content_types {
    ($($variant:ident = $number:literal, $name:literal, $kind:ident, [$($conversation:ident),*];)*) => {
        /// What a message or notification is (`contract/01` section 12; `Typing` is our own).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ContentType {
            $($variant = $number,)*
        }

        impl ContentType {
            /// Every type, by rising number.
            pub const ALL: &'static [ContentType] = &[$(ContentType::$variant),*];

            fn row(self) -> Row {
                match self {
                    $(ContentType::$variant => Row {
                        name: $name,
                        persistent: !matches!(Kind::$kind, Kind::signal),
                        normal: matches!(Kind::$kind, Kind::normal),
                        conversations: &[$($conversation),*],
                    },)*
                }
            }

            fn from_i64(number: i64) -> Option<ContentType> {
                match number {
                    $($number => Some(ContentType::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

#[expect(non_camel_case_types, reason = "these are words of the table below")]
enum Kind {
    normal,
    stored,
    signal,
}

content_types! {
    Text = 101, "TEXT", normal, [Private, Group];
    Image = 102, "IMAGE", normal, [Private, Group];
    Voice = 103, "VOICE", normal, [Private, Group];
    Video = 104, "VIDEO", normal, [Private, Group];
    File = 105, "FILE", normal, [Private, Group];
    Merge = 107, "MERGE", normal, [Private, Group];
    Card = 108, "CARD", normal, [Private, Group];
    Face = 115, "FACE", normal, [Private, Group];
    Material = 125, "MATERIAL", normal, [Private, Group, Channel];

    FriendRequestApproved = 1201, "FRIEND_REQUEST_APPROVED", signal, [];
    FriendRequestRejected = 1202, "FRIEND_REQUEST_REJECTED", signal, [];
    FriendRequestReceived = 1203, "FRIEND_REQUEST_RECEIVED", signal, [];
    FriendAdd = 1204, "FRIEND_ADD", stored, [Private];
    FriendDelete = 1205, "FRIEND_DELETE", signal, [Private];
    FriendBlock = 1207, "FRIEND_BLOCK", signal, [];
    FriendUnblock = 1208, "FRIEND_UNBLOCK", signal, [];
    FriendInfoUpdated = 1209, "FRIEND_INFO_UPDATED", signal, [];
    FriendUpdate = 1210, "FRIEND_UPDATE", signal, [];

    GroupCreate = 1501, "GROUP_CREATE", stored, [Group];
    GroupInfoUpdate = 1502, "GROUP_INFO_UPDATE", stored, [Group];
    GroupRequestReceived = 1503, "GROUP_REQUEST_RECEIVED", signal, [];
    GroupMemberQuit = 1504, "GROUP_MEMBER_QUIT", stored, [Group];
    GroupRequestApproved = 1505, "GROUP_REQUEST_APPROVED", signal, [];
    GroupRequestRejected = 1506, "GROUP_REQUEST_REJECTED", signal, [];
    GroupOwnerTransfer = 1507, "GROUP_OWNER_TRANSFER", stored, [Group];
    GroupMemberKick = 1508, "GROUP_MEMBER_KICK", stored, [Group];
    GroupMemberInvite = 1509, "GROUP_MEMBER_INVITE", stored, [Group];
    GroupMemberEnter = 1510, "GROUP_MEMBER_ENTER", stored, [Group];
    GroupDissolve = 1511, "GROUP_DISSOLVE", stored, [Group];
    GroupMemberMuted = 1512, "GROUP_MEMBER_MUTED", stored, [Group];
    GroupMemberCancelMuted = 1513, "GROUP_MEMBER_CANCEL_MUTED", stored, [Group];
    GroupMuted = 1514, "GROUP_MUTED", stored, [Group];
    GroupCancelMuted = 1515, "GROUP_CANCEL_MUTED", stored, [Group];
    GroupMemberNicknameUpdate = 1516, "GROUP_MEMBER_NICKNAME_UPDATE", signal, [Group];
    GroupAdminAdd = 1517, "GROUP_ADMIN_ADD", stored, [Group];
    GroupAdminRemove = 1518, "GROUP_ADMIN_REMOVE", stored, [Group];
    GroupNoticeUpdate = 1519, "GROUP_NOTICE_UPDATE", stored, [Group];
    GroupNameUpdate = 1520, "GROUP_NAME_UPDATE", stored, [Group];
    GroupMemberSettingUpdate = 1530, "GROUP_MEMBER_SETTING_UPDATE", signal, [Group];
    GroupMessagePin = 1531, "GROUP_MESSAGE_PIN", stored, [Group];
    GroupMessageUnpin = 1532, "GROUP_MESSAGE_UNPIN", stored, [Group];
    GroupBanned = 1533, "GROUP_BANNED", stored, [Group];

    RtcCall = 1601, "RTC_CALL", signal, [];
    RtcParticipantConnected = 1602, "RTC_PARTICIPANT_CONNECTED", signal, [];
    RtcParticipantDisconnected = 1603, "RTC_PARTICIPANT_DISCONNECTED", signal, [];
    RtcCallStart = 1610, "RTC_CALL_START", stored, [Private, Group];
    RtcCallEnd = 1611, "RTC_CALL_END", stored, [Private, Group];

    Recall = 2101, "RECALL", stored, [Private, Group];
    Receipt = 2200, "RECEIPT", signal, [Private, Group];
    Read = 2201, "READ", signal, [Private, Group, Channel];
    Typing = 2301, "TYPING", signal, [];
}

impl ContentType {
    /// The type with this number, if there is one.
    pub fn from_number(number: impl Into<i64>) -> Option<ContentType> {
        ContentType::from_i64(number.into())
    }

    /// The number on the wire and in the tables.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The contract's name, for logs, metrics and documentation.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is a row of a message table, so that pulls and lists return it. Of [`FriendAdd`](Self::FriendAdd)
    /// the one-sided, silent form is the exception: it is pushed without a row.
    pub fn is_persistent(self) -> bool {
        self.row().persistent
    }

    /// Whether users may send it. Such messages can be forwarded and pinned, too.
    pub fn is_normal(self) -> bool {
        self.row().normal
    }

    /// Whether a message of this type counts as unread for its receivers.
    pub fn counts_as_unread(self) -> bool {
        self.is_normal()
    }

    /// The conversations in which it appears; empty for notifications outside of any conversation
    /// (envelope `conversationType` 0).
    pub fn conversations(self) -> &'static [ConversationType] {
        self.row().conversations
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_contract_has_fifty_types_and_we_add_typing() {
        assert_eq!(ContentType::ALL.len(), 51);
    }

    #[test]
    fn numbers_rise_and_lead_back_to_their_type() {
        assert!(ContentType::ALL.is_sorted_by(|left, right| left.number() < right.number()));
        for content_type in ContentType::ALL {
            assert_eq!(ContentType::from_number(content_type.number()), Some(*content_type));
        }
    }

    #[test]
    fn users_send_nine_types() {
        let normal: Vec<_> =
            ContentType::ALL.iter().filter(|kind| kind.is_normal()).map(|kind| kind.number()).collect();
        assert_eq!(normal, [101, 102, 103, 104, 105, 107, 108, 115, 125]);
        assert!(ContentType::ALL.iter().all(|kind| !kind.is_normal() || kind.is_persistent()));
    }

    #[test]
    fn what_is_stored_belongs_to_a_conversation() {
        for content_type in ContentType::ALL.iter().filter(|kind| kind.is_persistent()) {
            assert!(!content_type.conversations().is_empty(), "{}", content_type.name());
        }
        let unstored: Vec<_> = ContentType::ALL
            .iter()
            .filter(|kind| !kind.is_persistent() && !kind.conversations().is_empty())
            .map(|kind| kind.number())
            .collect();
        assert_eq!(unstored, [1205, 1516, 1530, 2200, 2201]);
    }

    proptest! {
        #[test]
        fn any_number_can_be_asked_for(number in any::<i64>()) {
            prop_assert!(ContentType::from_number(number).is_none_or(|kind| i64::from(kind.number()) == number));
        }
    }
}
