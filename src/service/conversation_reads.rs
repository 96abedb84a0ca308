//! Read positions: reporting them (many at once) and pulling them (`contract/02` P4, R1; `design.md` I6).

use std::collections::HashMap;

use diesel::QueryResult;

use super::Tx;
use crate::config::MessageConfig;
pub use crate::db::conversation_reads::ConversationRead;
use crate::db::conversation_reads::{self as table, Advance, PositionKey};
use crate::db::{Db, private_messages};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{MAX_ID, MessageId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::frame::FrameClass;
use crate::protocol::payload::{ReadPayload, ReceiptPayload};

/// `conversation_type` of private conversations in `im_conversation_read`.
pub const PRIVATE: i32 = ConversationType::Private as i32;

/// "I have read the conversation with `peer` up to `message`."
#[derive(Clone, Copy, Debug)]
pub struct ReadReport {
    pub reader: UserId,
    pub peer: UserId,
    pub message: MessageId,
}

impl ReadReport {
    fn key(&self) -> PositionKey {
        PositionKey { user: self.reader, conversation_type: PRIVATE, target: self.peer.0 }
    }
}

/// Refuses reports of private conversations where the feature is off (1040300010).
pub fn check_private_enabled(rules: &MessageConfig) -> Result<(), Refusal> {
    if rules.private_read_enabled { Ok(()) } else { Err(Refusal::PrivateReadDisabled) }
}

/// Raises positions to what was reported, each clamped to the newest message of its conversation that the report
/// could see (the id that comes with it). Needs the clock, under which the positions read are the ones in force.
///
/// The reader's devices are told by READ, the peer by RECEIPT, once for each position that rose.
pub async fn report_all(tx: &mut Tx<'_>, reports: &[(&ReadReport, MessageId)]) -> QueryResult<()> {
    if reports.is_empty() {
        return Ok(());
    }
    let highest = clamp_all(tx, reports).await?;
    let present = positions(tx, &highest).await?;
    let is_higher = |(key, message): &(PositionKey, MessageId)| present.get(key).is_none_or(|old| old < message);
    let mut advances: Vec<Advance> =
        highest.into_iter().filter(is_higher).map(|(key, message)| Advance { key, message }).collect();
    if advances.is_empty() {
        return Ok(());
    }
    advances.sort_unstable_by_key(|advance| advance.key);
    let stamp = tx.stamp()?;
    table::raise_all(tx.db, &advances, stamp).await?;
    for advance in advances {
        notify_advance(tx, advance)?;
    }
    Ok(())
}

/// The highest valid position of each conversation that the reports speak of.
async fn clamp_all(
    tx: &mut Tx<'_>,
    reports: &[(&ReadReport, MessageId)],
) -> QueryResult<HashMap<PositionKey, MessageId>> {
    // A well-behaved client reports an id of the conversation: one query confirms all of these.
    let ids = reports.iter().map(|(report, _)| report.message).collect();
    let parties: HashMap<MessageId, (UserId, UserId)> = private_messages::list_parties(tx.db, ids)
        .await?
        .into_iter()
        .map(|(id, sender, receiver)| (id, (sender, receiver)))
        .collect();
    let mut highest = HashMap::new();
    for (report, newest_visible) in reports {
        let (me, peer) = (report.reader, report.peer);
        let is_of_conversation =
            parties.get(&report.message).is_some_and(|parties| *parties == (me, peer) || *parties == (peer, me));
        let position = if is_of_conversation && report.message <= *newest_visible {
            Some(report.message)
        } else {
            let newest = private_messages::newest_of_pair(tx.db, me, peer, *newest_visible).await?;
            newest.map(|newest| newest.min(report.message))
        };
        if let Some(position) = position.filter(|position| position.0 > 0) {
            let entry = highest.entry(report.key()).or_insert(position);
            *entry = position.max(*entry);
        }
    }
    Ok(highest)
}

async fn positions(
    tx: &mut Tx<'_>,
    highest: &HashMap<PositionKey, MessageId>,
) -> QueryResult<HashMap<PositionKey, MessageId>> {
    let users = highest.keys().map(|key| key.user).collect();
    let targets = highest.keys().map(|key| key.target).collect();
    table::list_positions(tx.db, PRIVATE, users, targets).await
}

fn notify_advance(tx: &mut Tx<'_>, advance: Advance) -> QueryResult<()> {
    let (reader, peer) = (advance.key.user, UserId(advance.key.target));
    let read = ReadPayload {
        id: advance.message,
        sender_id: Some(reader),
        receiver_id: Some(peer),
        group_id: None,
        channel_id: None,
        read_id: advance.message,
    };
    tx.notify(vec![reader], FrameClass::State, ConversationType::Private, ContentType::Read, &read)?;
    let receipt = ReceiptPayload {
        id: advance.message,
        sender_id: Some(reader),
        receiver_id: Some(peer),
        group_id: None,
        read_count: None,
        receipt_status: None,
    };
    tx.notify(vec![peer], FrameClass::State, ConversationType::Private, ContentType::Receipt, &receipt)
}

/// My positions after the cursor (update time, id), ascending (`contract/02` R1).
pub async fn pull(
    db: &mut Db,
    user: UserId,
    cursor: Option<(i64, i64)>,
    limit: i64,
) -> Result<Vec<ConversationRead>, AppError> {
    if !(1..=200).contains(&limit) {
        return Err(AppError::Malformed("limit must be 1 to 200".into()));
    }
    let cursor = cursor.map(|(time, id)| (time.min(MAX_ID), id));
    Ok(table::list_after(db, user, cursor, limit).await?)
}
