//! Sending private messages, many at once (`contract/02` sections 2 and P1).

use std::collections::HashMap;

use diesel::QueryResult;

use super::{PrivateMessageRow, friends, notify_stored, present, present_row, table};
use crate::domain::content::{Content, Quote, strip_quote};
use crate::domain::friendship::{Side, check_may_write, friend_state};
use crate::domain::ids::{MessageId, UserId};
use crate::domain::message::{RECEIPT_NONE, RECEIPT_PENDING, STATUS_NORMAL, STATUS_RECALLED};
use crate::domain::private_message::PrivateMessage;
use crate::domain::refusal::Refusal;
use crate::service::Tx;
use crate::service::store::{Placed, Wanted, store_all};

/// A message that somebody wants to send. Its form is checked already: see `http::private_messages`.
pub struct PrivateDraft {
    pub sender: UserId,
    pub receiver: UserId,
    /// 1–64 printable ASCII characters; unique for this sender.
    pub client_message_id: String,
    pub content_type: i32,
    pub content: Content,
    /// What a repeat is compared by (`design.md` I2).
    pub content_hash: [u8; 16],
    pub receipt: Option<bool>,
}

/// What became of a run's drafts: one outcome for each, and the newest id that existed before.
pub struct SentRun {
    pub outcomes: Vec<(Option<MessageId>, Result<PrivateMessage, Refusal>)>,
    pub newest_before: MessageId,
}

/// What is known before anything is written.
struct Facts {
    sides: HashMap<(UserId, UserId), Side>,
    quoted: HashMap<MessageId, PrivateMessageRow>,
}

/// Sends drafts in their order. Locks the `private` counter last, after the checks: nothing that they read is
/// protected by it, and a commit follows at once.
pub async fn send_all(tx: &mut Tx<'_>, drafts: &[&PrivateDraft]) -> QueryResult<SentRun> {
    if drafts.is_empty() {
        return Ok(SentRun { outcomes: Vec::new(), newest_before: MessageId(i64::MAX) });
    }
    let facts = gather(tx, drafts).await?;
    let wanted = drafts.iter().map(|draft| Wanted {
        key: (draft.sender, draft.client_message_id.as_str()),
        content_hash: &draft.content_hash,
        row: check(draft, &facts).map(|content| new_row(tx, draft, content)),
    });
    let wanted = wanted.collect();
    let stored = store_all(tx, wanted).await?;
    for row in stored.new {
        notify_stored(tx, present_row(row, &HashMap::new()))?;
    }
    Ok(SentRun { outcomes: show(tx, stored.placed).await?, newest_before: stored.newest_before })
}

/// The stored rows as their sender sees them now.
async fn show(
    tx: &mut Tx<'_>,
    placed: Vec<Placed<PrivateMessageRow>>,
) -> QueryResult<Vec<(Option<MessageId>, Result<PrivateMessage, Refusal>)>> {
    let repeats = placed.iter().filter(|placed| placed.is_repeat).filter_map(|placed| placed.outcome.clone().ok());
    let shown = present(tx.db, repeats.collect()).await?;
    let mut shown: HashMap<MessageId, PrivateMessage> =
        shown.into_iter().map(|message| (message.id, message)).collect();
    let show = |row: PrivateMessageRow| shown.remove(&row.id).unwrap_or_else(|| present_row(row, &HashMap::new()));
    let mut show = show;
    Ok(placed.into_iter().map(|placed| (placed.id, placed.outcome.map(&mut show))).collect())
}

async fn gather(tx: &mut Tx<'_>, drafts: &[&PrivateDraft]) -> QueryResult<Facts> {
    let mut pairs = Vec::with_capacity(drafts.len() * 2);
    let mut quotes = Vec::new();
    for draft in drafts {
        pairs.push((draft.sender, draft.receiver));
        pairs.push((draft.receiver, draft.sender));
        quotes.extend(draft.content.quoted_message_id().map(MessageId));
    }
    let sides = friends::list_sides(tx.db, &pairs).await?;
    let quoted = table::list_by_ids(tx.db, quotes).await?.into_iter().map(|row| (row.id, row)).collect();
    Ok(Facts { sides, quoted })
}

/// The rules of `contract/02` sections 2.1 and 2.2; the content to store.
fn check(draft: &PrivateDraft, facts: &Facts) -> Result<String, Refusal> {
    let mine = facts.sides.get(&(draft.sender, draft.receiver)).copied();
    let theirs = facts.sides.get(&(draft.receiver, draft.sender)).copied();
    check_may_write(friend_state(mine, theirs))?;
    if draft.content.has_sensitive_word() {
        return Err(Refusal::SensitiveWord);
    }
    let Some(id) = draft.content.quoted_message_id() else { return Ok(draft.content.without_quote()) };
    let original = facts.quoted.get(&MessageId(id)).ok_or(Refusal::QuoteInvalid)?;
    let parties = (original.sender_id, original.receiver_id);
    let is_same_conversation = parties == (draft.sender, draft.receiver) || parties == (draft.receiver, draft.sender);
    if original.status == STATUS_RECALLED || !is_same_conversation {
        return Err(Refusal::QuoteInvalid);
    }
    let quote = Quote {
        message_id: original.id,
        sender_id: original.sender_id,
        r#type: original.type_,
        content: strip_quote(&original.content),
    };
    draft.content.with_quote(&quote).map_err(|invalid| Refusal::ContentInvalid(invalid.0))
}

fn new_row(tx: &Tx<'_>, draft: &PrivateDraft, content: String) -> PrivateMessageRow {
    let is_asked_for = tx.config.message.private_read_enabled && draft.receipt.unwrap_or(true);
    PrivateMessageRow {
        id: MessageId(0),
        client_message_id: draft.client_message_id.clone(),
        sender_id: draft.sender,
        receiver_id: draft.receiver,
        type_: draft.content_type,
        content,
        content_hash: draft.content_hash.to_vec(),
        status: STATUS_NORMAL,
        receipt_status: if is_asked_for { RECEIPT_PENDING } else { RECEIPT_NONE },
        send_time: 0,
    }
}
