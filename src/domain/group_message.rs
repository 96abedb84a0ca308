//! Group messages: what one is, who sees it, and who has read it (`contract/02` section 4; `design.md` section 5).

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::refusal::Refusal;

/// `at_user_ids` entry that means everybody.
pub const EVERYBODY: i64 = -1;

/// A group message as readers see it: content of recalled ones is gone, receipts are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMessage {
    pub id: MessageId,
    pub client_message_id: String,
    pub sender_id: UserId,
    pub group_id: GroupId,
    pub content_type: i32,
    pub content: String,
    pub status: i32,
    pub receipt_status: i32,
    /// How many have read it; only where the reader may know.
    pub read_count: Option<usize>,
    pub send_time: i64,
    pub at_user_ids: Option<Vec<i64>>,
    /// `None` means all members at that time.
    pub receiver_user_ids: Option<Arc<[UserId]>>,
}

/// A stretch of message ids during which a user was a member: `from < id <= to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: MessageId,
    pub to: MessageId,
}

impl Span {
    pub fn covers(self, id: MessageId) -> bool {
        self.from < id && id <= self.to
    }
}

/// An active member's spans in one group and read position there: what receipts are computed from.
#[derive(Clone, Debug)]
pub struct Reader {
    pub user: UserId,
    pub spans: Vec<Span>,
    pub position: Option<MessageId>,
}

/// What a receipt says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Present members, the sender left out, who see the message and have read up to it.
    pub read: usize,
    /// Present members, the sender left out, who see the message.
    pub receivers: usize,
}

impl Receipt {
    /// Everybody concerned has read it, and there is somebody.
    pub fn is_done(self) -> bool {
        self.receivers > 0 && self.read >= self.receivers
    }
}

/// Computes receipts of many messages in O((n + k) log n): interval ends are sorted once, each message is then two
/// binary searches.
pub struct ReceiptCounter {
    by_user: HashMap<UserId, Reader>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    read_starts: Vec<i64>,
    read_ends: Vec<i64>,
}

impl ReceiptCounter {
    /// `readers` are the present members of the group; the spans of one do not overlap.
    pub fn new(readers: Vec<Reader>) -> ReceiptCounter {
        let (mut starts, mut ends, mut read_starts, mut read_ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for reader in &readers {
            for span in &reader.spans {
                starts.push(span.from.0);
                ends.push(span.to.0);
                if let Some(position) = reader.position.filter(|position| *position > span.from) {
                    read_starts.push(span.from.0);
                    read_ends.push(span.to.0.min(position.0));
                }
            }
        }
        for sorted in [&mut starts, &mut ends, &mut read_starts, &mut read_ends] {
            sorted.sort_unstable();
        }
        let by_user = readers.into_iter().map(|reader| (reader.user, reader)).collect();
        ReceiptCounter { by_user, starts, ends, read_starts, read_ends }
    }

    /// The receipt of one message.
    pub fn receipt(&self, message: MessageId, sender: UserId) -> Receipt {
        let mut receipt = Receipt {
            read: covering(&self.read_starts, &self.read_ends, message.0),
            receivers: covering(&self.starts, &self.ends, message.0),
        };
        if let Some(own) = self.by_user.get(&sender)
            && own.spans.iter().any(|span| span.covers(message))
        {
            receipt.receivers -= 1;
            if own.position.is_some_and(|position| position >= message) {
                receipt.read -= 1;
            }
        }
        receipt
    }
}

/// How many intervals `start < id <= end` hold the id: those begun before it, less those ended before it.
fn covering(starts: &[i64], ends: &[i64], id: i64) -> usize {
    let begun = starts.partition_point(|start| *start < id);
    let ended = ends.partition_point(|end| *end < id);
    begun - ended
}

/// What a recall needs to know.
#[derive(Clone, Copy, Debug)]
pub struct RecallFacts {
    /// The message exists and its type is one that users send.
    pub is_user_message: bool,
    /// The user who recalls sees it.
    pub is_visible: bool,
    pub is_active_member: bool,
    pub is_manager: bool,
    pub is_own: bool,
    pub is_recalled: bool,
    /// Milliseconds since it was sent.
    pub age: i64,
}

/// Whether a group message may be recalled (`contract/02` G6; a message that I cannot see does not exist for me).
pub fn check_recall(facts: RecallFacts, limit_minutes: i64) -> Result<(), Refusal> {
    if !facts.is_visible {
        return Err(Refusal::MessageNotFound);
    }
    if !facts.is_active_member {
        return Err(Refusal::NotGroupMember);
    }
    if !(facts.is_own || facts.is_manager) || !facts.is_user_message {
        return Err(Refusal::RecallDenied);
    }
    if facts.is_recalled {
        return Err(Refusal::AlreadyRecalled);
    }
    if facts.is_own && facts.age > limit_minutes.saturating_mul(60_000) {
        return Err(Refusal::RecallTimeout(limit_minutes));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain_receipt(readers: &[Reader], message: MessageId, sender: UserId) -> Receipt {
        let mut receipt = Receipt { read: 0, receivers: 0 };
        for reader in readers {
            if reader.user != sender && reader.spans.iter().any(|span| span.covers(message)) {
                receipt.receivers += 1;
                receipt.read += usize::from(reader.position.is_some_and(|position| position >= message));
            }
        }
        receipt
    }

    fn readers() -> impl Strategy<Value = Vec<Reader>> {
        let reader = (proptest::collection::vec(0_i64..60, 0..6), proptest::option::of(0_i64..60));
        proptest::collection::vec(reader, 0..8).prop_map(|raw| {
            let make = |(index, (mut ends, position)): (usize, (Vec<i64>, Option<i64>))| {
                ends.sort_unstable();
                let spans = ends
                    .chunks_exact(2)
                    .map(|pair| Span { from: MessageId(pair[0]), to: MessageId(pair[1]) })
                    .collect();
                Reader { user: UserId(index as i64), spans, position: position.map(MessageId) }
            };
            raw.into_iter().enumerate().map(make).collect()
        })
    }

    proptest! {
        #[test]
        fn the_counter_counts_as_one_would_by_hand(readers in readers(), message in 0_i64..62, sender in 0_i64..9) {
            let (message, sender) = (MessageId(message), UserId(sender));
            let counted = ReceiptCounter::new(readers.clone()).receipt(message, sender);
            prop_assert_eq!(counted, plain_receipt(&readers, message, sender));
        }
    }

    #[test]
    fn nobody_left_is_not_done() {
        assert!(!Receipt { read: 0, receivers: 0 }.is_done());
        assert!(Receipt { read: 2, receivers: 2 }.is_done());
        assert!(!Receipt { read: 1, receivers: 2 }.is_done());
    }
}
