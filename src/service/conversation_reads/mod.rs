//! Read positions: reporting them (many at once) and pulling them (`contract/02` P4, G4, R1; `design.md` I6).

mod group;
mod private;

use std::collections::HashMap;

use diesel::QueryResult;

use super::Tx;
use crate::config::MessageConfig;
use crate::db::Db;
pub use crate::db::conversation_reads::ConversationRead;
use crate::db::conversation_reads::{self as table, Advance, PositionKey};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{GroupId, MAX_ID, MessageId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::frame::FrameClass;
use crate::protocol::payload::ReadPayload;

/// `conversation_type` of private conversations in `im_conversation_read`.
pub const PRIVATE: i32 = ConversationType::Private as i32;
/// `conversation_type` of group conversations in `im_conversation_read`.
pub const GROUP: i32 = ConversationType::Group as i32;

/// A conversation that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversation {
    With(UserId),
    In(GroupId),
}

/// "I have read this conversation up to `message`."
#[derive(Clone, Copy, Debug)]
pub struct ReadReport {
    pub reader: UserId,
    pub conversation: Conversation,
    pub message: MessageId,
}

impl ReadReport {
    fn key(&self) -> PositionKey {
        let (conversation_type, target) = match self.conversation {
            Conversation::With(peer) => (PRIVATE, peer.0),
            Conversation::In(group) => (GROUP, group.0),
        };
        PositionKey { user: self.reader, conversation_type, target }
    }
}

/// Refuses reports where the feature is off (1040300010, 1040300011).
pub fn check_enabled(conversation: Conversation, rules: &MessageConfig) -> Result<(), Refusal> {
    match conversation {
        Conversation::With(_) if !rules.private_read_enabled => Err(Refusal::PrivateReadDisabled),
        Conversation::In(_) if !rules.group_read_enabled => Err(Refusal::GroupReadDisabled),
        _ => Ok(()),
    }
}

/// A position that rises, and where it stood.
#[derive(Clone, Copy, Debug)]
struct Rise {
    advance: Advance,
    before: Option<MessageId>,
}

/// Raises positions to what was reported. Each report comes with the newest id of its table that it could see. Needs the
/// clock, under which the positions read are the ones in force. One answer for each report, in order.
///
/// The reader's devices are told by READ; the peer, or the senders of receipt messages in a group, by RECEIPT: once for
/// each position that rose and each message concerned, however many reports came together.
pub async fn report_all(
    tx: &mut Tx<'_>,
    reports: &[(&ReadReport, MessageId)],
) -> QueryResult<Vec<Result<(), Refusal>>> {
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let private = private::positions(tx, reports).await?;
    let group = group::positions(tx, reports).await?;
    let mut highest: HashMap<PositionKey, MessageId> = HashMap::new();
    let mut answers = Vec::with_capacity(reports.len());
    for ((report, _), (private, group)) in reports.iter().zip(private.into_iter().zip(group)) {
        let position = match report.conversation {
            Conversation::With(_) => Ok(private),
            Conversation::In(_) => group.map(Some),
        };
        if let Ok(Some(position)) = &position {
            let entry = highest.entry(report.key()).or_insert(*position);
            *entry = (*entry).max(*position);
        }
        answers.push(position.map(|_| ()));
    }
    let rises = find_rises(tx, highest).await?;
    if rises.is_empty() {
        return Ok(answers);
    }
    let stamp = tx.stamp()?;
    let advances: Vec<Advance> = rises.iter().map(|rise| rise.advance).collect();
    table::raise_all(tx.db, &advances, stamp).await?;
    for rise in &rises {
        notify_reader(tx, rise.advance)?;
    }
    private::notify_peers(tx, &rises)?;
    group::notify_senders(tx, &rises).await?;
    Ok(answers)
}

/// Those that are above the present positions, in the order of their keys.
async fn find_rises(tx: &mut Tx<'_>, highest: HashMap<PositionKey, MessageId>) -> QueryResult<Vec<Rise>> {
    let mut present = HashMap::new();
    for conversation_type in [PRIVATE, GROUP] {
        let keys = || highest.keys().filter(|key| key.conversation_type == conversation_type);
        let (users, targets) = (keys().map(|key| key.user).collect(), keys().map(|key| key.target).collect());
        present.extend(table::list_positions(tx.db, conversation_type, users, targets).await?);
    }
    let mut rises: Vec<Rise> = highest
        .into_iter()
        .map(|(key, message)| Rise { advance: Advance { key, message }, before: present.get(&key).copied() })
        .filter(|rise| rise.before.is_none_or(|before| before < rise.advance.message))
        .collect();
    rises.sort_unstable_by_key(|rise| rise.advance.key);
    Ok(rises)
}

fn notify_reader(tx: &mut Tx<'_>, advance: Advance) -> QueryResult<()> {
    let is_private = advance.key.conversation_type == PRIVATE;
    let target = advance.key.target;
    let payload = ReadPayload {
        id: advance.message,
        sender_id: Some(advance.key.user),
        receiver_id: is_private.then_some(UserId(target)),
        group_id: (!is_private).then_some(GroupId(target)),
        channel_id: None,
        read_id: advance.message,
    };
    let conversation = if is_private { ConversationType::Private } else { ConversationType::Group };
    tx.notify(vec![advance.key.user], FrameClass::State, conversation, ContentType::Read, &payload)
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
