//! Private messages: what one is, and the rules of recalling and of showing it (`contract/02` section 3).

use crate::domain::ids::{MessageId, UserId};
use crate::domain::message::STATUS_RECALLED;
use crate::domain::refusal::Refusal;

/// A private message as readers see it: content of recalled ones is gone, the receipt is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateMessage {
    pub id: MessageId,
    pub client_message_id: String,
    pub sender_id: UserId,
    pub receiver_id: UserId,
    pub content_type: i32,
    pub content: String,
    pub status: i32,
    pub receipt_status: i32,
    pub send_time: i64,
}

/// Whether `reader` may recall the message (`contract/02` P6, and `design.md` section 10: a stranger's message does
/// not exist for the reader). `now` and the limit are milliseconds and minutes.
pub fn check_recall(
    message: Option<&PrivateMessage>,
    is_user_message: bool,
    reader: UserId,
    now: i64,
    limit_minutes: i64,
) -> Result<(), Refusal> {
    let Some(message) = message else { return Err(Refusal::MessageNotFound) };
    if message.sender_id != reader && message.receiver_id != reader {
        return Err(Refusal::MessageNotFound);
    }
    // Server-made rows (friend added, a recall itself) cannot be recalled: pulls could not tell what is left of them.
    if message.sender_id != reader || !is_user_message {
        return Err(Refusal::RecallDenied);
    }
    if message.status == STATUS_RECALLED {
        return Err(Refusal::AlreadyRecalled);
    }
    if message.send_time.saturating_add(limit_minutes.saturating_mul(60_000)) < now {
        return Err(Refusal::RecallTimeout(limit_minutes));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn message(sender: i64, status: i32) -> PrivateMessage {
        PrivateMessage {
            id: MessageId(1),
            client_message_id: "a".into(),
            sender_id: UserId(sender),
            receiver_id: UserId(9),
            content_type: 101,
            content: "{}".into(),
            status,
            receipt_status: 0,
            send_time: 1_000,
        }
    }

    #[rstest]
    #[case(None, true, 1, 1_000, Err(Refusal::MessageNotFound))]
    #[case(Some(message(2, 0)), true, 1, 1_000, Err(Refusal::MessageNotFound))]
    #[case(Some(message(1, 0)), true, 9, 1_000, Err(Refusal::RecallDenied))]
    #[case(Some(message(1, 0)), false, 1, 1_000, Err(Refusal::RecallDenied))]
    #[case(Some(message(1, 2)), true, 1, 1_000, Err(Refusal::AlreadyRecalled))]
    #[case(Some(message(1, 0)), true, 1, 301_001, Err(Refusal::RecallTimeout(5)))]
    #[case(Some(message(1, 0)), true, 1, 301_000, Ok(()))]
    fn only_ones_own_recent_message_can_be_recalled(
        #[case] message: Option<PrivateMessage>,
        #[case] is_user_message: bool,
        #[case] reader: i64,
        #[case] now: i64,
        #[case] expected: Result<(), Refusal>,
    ) {
        assert_eq!(check_recall(message.as_ref(), is_user_message, UserId(reader), now, 5), expected);
    }
}
