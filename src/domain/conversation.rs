//! The kinds of conversation, with their numbers on the wire (`contract/01` section 11).

/// Value of `conversationType` in envelopes and read positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConversationType {
    /// A notification that belongs to no conversation.
    None = 0,
    Private = 1,
    Group = 2,
    Channel = 3,
}

impl ConversationType {
    /// The number on the wire.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The type with this number, if there is one.
    pub fn from_number(number: i32) -> Option<ConversationType> {
        match number {
            0 => Some(ConversationType::None),
            1 => Some(ConversationType::Private),
            2 => Some(ConversationType::Group),
            3 => Some(ConversationType::Channel),
            _ => None,
        }
    }
}
