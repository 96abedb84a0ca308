//! Why the server ends a socket: one table of number, text, metric label and whether the client should come back.

/// The reason for which the server ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The server stops; come back, spread over a few seconds.
    Shutdown,
    /// The client broke the WebSocket protocol.
    ProtocolError,
    /// A text frame was not UTF-8.
    InvalidUtf8,
    /// A frame, or the fragments of one message, were over the limit.
    TooLarge,
    /// The client did not read what was sent to it; come back and pull.
    SlowConsumer,
    /// No sign of life for two heartbeat intervals.
    HeartbeatTimeout,
    /// The same user closed this session from another device.
    ClosedByUser,
    /// The sign-in that this session belongs to has ended: sign in again.
    SignedOut,
    /// The server may have missed frames for this session; come back and pull.
    Resync,
}

impl CloseReason {
    /// Every reason, for documentation and tests.
    pub const ALL: [CloseReason; 9] = [
        CloseReason::Shutdown,
        CloseReason::ProtocolError,
        CloseReason::InvalidUtf8,
        CloseReason::TooLarge,
        CloseReason::SlowConsumer,
        CloseReason::HeartbeatTimeout,
        CloseReason::ClosedByUser,
        CloseReason::SignedOut,
        CloseReason::Resync,
    ];

    /// The number in the close frame (RFC 6455 section 7.4; 4000–4999 are ours).
    pub fn code(self) -> u16 {
        match self {
            CloseReason::Shutdown => 1001,
            CloseReason::ProtocolError => 1002,
            CloseReason::InvalidUtf8 => 1007,
            CloseReason::TooLarge => 1009,
            CloseReason::SlowConsumer => 1013,
            CloseReason::HeartbeatTimeout => 4000,
            CloseReason::ClosedByUser => 4001,
            CloseReason::SignedOut => 4002,
            CloseReason::Resync => 4010,
        }
    }

    /// The text in the close frame.
    pub fn text(self) -> &'static str {
        match self {
            CloseReason::Shutdown => "server is stopping",
            CloseReason::ProtocolError => "protocol error",
            CloseReason::InvalidUtf8 => "text is not valid UTF-8",
            CloseReason::TooLarge => "frame is too large",
            CloseReason::SlowConsumer => "client reads too slowly",
            CloseReason::HeartbeatTimeout => "no sign of life",
            CloseReason::ClosedByUser => "closed from another device",
            CloseReason::SignedOut => "signed out",
            CloseReason::Resync => "reconnect and pull",
        }
    }

    /// The value of the `reason` label of `nudge_closes_total`.
    pub fn label(self) -> &'static str {
        match self {
            CloseReason::Shutdown => "shutdown",
            CloseReason::ProtocolError => "protocol_error",
            CloseReason::InvalidUtf8 => "invalid_utf8",
            CloseReason::TooLarge => "too_large",
            CloseReason::SlowConsumer => "slow_consumer",
            CloseReason::HeartbeatTimeout => "heartbeat_timeout",
            CloseReason::ClosedByUser => "closed_by_user",
            CloseReason::SignedOut => "signed_out",
            CloseReason::Resync => "resync",
        }
    }

    /// Whether the client should connect again by itself, and pull.
    pub fn should_reconnect(self) -> bool {
        !matches!(self, CloseReason::ClosedByUser | CloseReason::SignedOut)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn numbers_and_labels_are_unique() {
        let codes: HashSet<_> = CloseReason::ALL.iter().map(|reason| reason.code()).collect();
        let labels: HashSet<_> = CloseReason::ALL.iter().map(|reason| reason.label()).collect();
        assert_eq!((codes.len(), labels.len()), (CloseReason::ALL.len(), CloseReason::ALL.len()));
    }
}
