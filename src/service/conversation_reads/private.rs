//! Read reports of private conversations.

use std::collections::HashMap;

use diesel::QueryResult;

use super::{Conversation, PRIVATE, ReadReport, Rise};
use crate::db::private_messages;
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{MessageId, UserId};
use crate::protocol::frame::FrameClass;
use crate::protocol::payload::ReceiptPayload;
use crate::service::Tx;

/// The position that each private report means: what it says, clamped to the newest message of the conversation that it
/// could see. `None` where there is no message to have read, and for reports of other conversations.
pub(super) async fn positions(
    tx: &mut Tx<'_>,
    reports: &[(&ReadReport, MessageId)],
) -> QueryResult<Vec<Option<MessageId>>> {
    // A well-behaved client reports an id of the conversation: one query confirms all of these.
    let is_private = |report: &ReadReport| matches!(report.conversation, Conversation::With(_));
    let ids = reports.iter().filter(|(report, _)| is_private(report)).map(|(report, _)| report.message).collect();
    let parties: HashMap<MessageId, (UserId, UserId)> = private_messages::list_parties(tx.db, ids)
        .await?
        .into_iter()
        .map(|(id, sender, receiver)| (id, (sender, receiver)))
        .collect();
    let mut positions = Vec::with_capacity(reports.len());
    for (report, newest_visible) in reports {
        let Conversation::With(peer) = report.conversation else {
            positions.push(None);
            continue;
        };
        let me = report.reader;
        let is_of_conversation =
            parties.get(&report.message).is_some_and(|parties| *parties == (me, peer) || *parties == (peer, me));
        let position = if is_of_conversation && report.message <= *newest_visible {
            Some(report.message)
        } else {
            let newest = private_messages::newest_of_pair(tx.db, me, peer, *newest_visible).await?;
            newest.map(|newest| newest.min(report.message))
        };
        positions.push(position.filter(|position| position.0 > 0));
    }
    Ok(positions)
}

/// Tells each peer how far his messages are read.
pub(super) fn notify_peers(tx: &mut Tx<'_>, rises: &[Rise]) -> QueryResult<()> {
    for rise in rises.iter().filter(|rise| rise.advance.key.conversation_type == PRIVATE) {
        let (reader, peer) = (rise.advance.key.user, UserId(rise.advance.key.target));
        let payload = ReceiptPayload {
            id: rise.advance.message,
            sender_id: Some(reader),
            receiver_id: Some(peer),
            group_id: None,
            read_count: None,
            receipt_status: None,
        };
        tx.notify(vec![peer], FrameClass::State, ConversationType::Private, ContentType::Receipt, &payload)?;
    }
    Ok(())
}
