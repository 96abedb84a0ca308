//! How far a device has confirmed what was pushed to it: one message id for each message table (`design.md` section 7,
//! "resume replay"). Everything that its user sees up to these ids has reached the device.

use crate::domain::ids::MessageId;

/// A position in every stream of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePosition {
    pub private: MessageId,
    pub group: MessageId,
    /// Channels are not replayed yet: always 0.
    pub channel: MessageId,
}

impl DevicePosition {
    /// Before every message.
    pub const START: DevicePosition =
        DevicePosition { private: MessageId(0), group: MessageId(0), channel: MessageId(0) };

    /// The lower of both in every stream: the only one of which both are sure.
    pub fn lowest(self, other: DevicePosition) -> DevicePosition {
        DevicePosition {
            private: self.private.min(other.private),
            group: self.group.min(other.group),
            channel: self.channel.min(other.channel),
        }
    }

    /// The higher of both in every stream.
    pub fn highest(self, other: DevicePosition) -> DevicePosition {
        DevicePosition {
            private: self.private.max(other.private),
            group: self.group.max(other.group),
            channel: self.channel.max(other.channel),
        }
    }
}
