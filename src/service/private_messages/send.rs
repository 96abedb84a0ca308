//! Sending private messages, many at once. A draft's way: its checks, or its key where a check says no; then one
//! multi-row insert that skips repeated keys; then the rows that a repeat meant.

use std::collections::{HashMap, HashSet};

use diesel::QueryResult;
use diesel::result::Error;

use super::{PrivateMessageRow, friends, notify_stored, present, table};
use crate::db::sequence::Counter;
use crate::domain::content::{Content, Quote, strip_quote};
use crate::domain::friendship::{Side, check_may_write, friend_state};
use crate::domain::ids::{MessageId, UserId};
use crate::domain::private_message::{PrivateMessage, RECEIPT_NONE, RECEIPT_PENDING, STATUS_NORMAL, STATUS_RECALLED};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::service::{Locks, Tx};

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

/// What became of one draft.
#[derive(Debug)]
pub struct SendOutcome {
    /// The id taken for it, which the stored row bears unless the draft was a repeat.
    pub id: Option<MessageId>,
    pub answer: Result<PrivateMessage, AppError>,
}

/// What became of a run's drafts.
pub struct SentRun {
    /// One for each draft, in order.
    pub outcomes: Vec<SendOutcome>,
    /// The newest id that existed before the run (as far as the run knows: at least every visible one).
    pub newest_before: MessageId,
}

/// What is known before anything is written.
struct Facts {
    sides: HashMap<(UserId, UserId), Side>,
    quoted: HashMap<MessageId, PrivateMessageRow>,
}

/// A draft after its checks.
enum Checked {
    /// To be inserted with this content.
    New(String),
    /// Equal key as an earlier draft of the run that is to be inserted.
    Repeat,
    /// A check says no; a repeat of a stored message is answered all the same.
    Refused(Refusal),
}

/// Sends drafts in their order. Locks the `private` counter last, after the checks: nothing that they read is
/// protected by it, and a commit follows at once.
pub async fn send_all(tx: &mut Tx<'_>, drafts: &[&PrivateDraft]) -> QueryResult<SentRun> {
    let mut run = SentRun { outcomes: Vec::new(), newest_before: MessageId(i64::MAX) };
    if drafts.is_empty() {
        return Ok(run);
    }
    let facts = gather(tx, drafts).await?;
    let checked = check_all(drafts, &facts);
    let count = checked.iter().filter(|check| matches!(check, Checked::New(_))).count();
    let mut rows = Vec::with_capacity(count);
    let mut ids = vec![None; drafts.len()];
    if count > 0 {
        tx.lock(Locks::PRIVATE).await?;
        let range = tx.take_ids(Counter::Private, count)?;
        run.newest_before = MessageId(range.first.0 - 1);
        let news = drafts.iter().zip(&checked).zip(ids.iter_mut());
        for ((draft, check), id) in news {
            if let Checked::New(content) = check {
                let row_id = MessageId(range.first.0 + i64::try_from(rows.len()).unwrap_or(0));
                *id = Some(row_id);
                rows.push(new_row(tx, draft, row_id, content, range.send_time));
            }
        }
    }
    let inserted = insert(tx, &rows).await?;
    let stored = find_stored(tx, drafts, &checked, &rows, &inserted).await?;
    for row in rows.into_iter().filter(|row| inserted.contains(&row.id)) {
        let message = super::present_row(row, &HashMap::new());
        notify_stored(tx, message)?;
    }
    for ((draft, check), id) in drafts.iter().zip(checked).zip(ids) {
        let answer = answer(draft, check, &stored);
        run.outcomes.push(SendOutcome { id, answer });
    }
    Ok(run)
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

fn check_all(drafts: &[&PrivateDraft], facts: &Facts) -> Vec<Checked> {
    let mut taken = HashSet::new();
    let mut checked = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let key = (draft.sender, draft.client_message_id.as_str());
        let check = match check(draft, facts) {
            Err(refusal) => Checked::Refused(refusal),
            Ok(_) if taken.contains(&key) => Checked::Repeat,
            Ok(content) => {
                taken.insert(key);
                Checked::New(content)
            }
        };
        checked.push(check);
    }
    checked
}

/// The rules of `contract/02` sections 2.1 and 2.2; the content to store.
fn check(draft: &PrivateDraft, facts: &Facts) -> Result<String, Refusal> {
    let mine = facts.sides.get(&(draft.sender, draft.receiver)).copied();
    let theirs = facts.sides.get(&(draft.receiver, draft.sender)).copied();
    check_may_write(friend_state(mine, theirs))?;
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

fn new_row(tx: &Tx<'_>, draft: &PrivateDraft, id: MessageId, content: &str, send_time: i64) -> PrivateMessageRow {
    let is_asked_for = tx.config.message.private_read_enabled && draft.receipt.unwrap_or(true);
    PrivateMessageRow {
        id,
        client_message_id: draft.client_message_id.clone(),
        sender_id: draft.sender,
        receiver_id: draft.receiver,
        type_: draft.content_type,
        content: content.to_owned(),
        content_hash: draft.content_hash.to_vec(),
        status: STATUS_NORMAL,
        receipt_status: if is_asked_for { RECEIPT_PENDING } else { RECEIPT_NONE },
        send_time,
    }
}

/// Inserts rows; the ids of those that were new.
async fn insert(tx: &mut Tx<'_>, rows: &[PrivateMessageRow]) -> QueryResult<HashSet<MessageId>> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(HashSet::new()) };
    let count = table::insert_all_if_new(tx.db, rows).await?;
    if count == rows.len() {
        return Ok(rows.iter().map(|row| row.id).collect());
    }
    Ok(table::list_ids_between(tx.db, first.id, last.id).await?.into_iter().collect())
}

/// The row behind every key that the answers need.
async fn find_stored(
    tx: &mut Tx<'_>,
    drafts: &[&PrivateDraft],
    checked: &[Checked],
    rows: &[PrivateMessageRow],
    inserted: &HashSet<MessageId>,
) -> QueryResult<HashMap<(UserId, String), Stored>> {
    let mut stored = HashMap::new();
    let mut wanted: Vec<(UserId, &str)> = Vec::new();
    for row in rows {
        if inserted.contains(&row.id) {
            let message = super::present_row(row.clone(), &HashMap::new());
            let entry = Stored { content_hash: row.content_hash.clone(), message };
            stored.insert((row.sender_id, row.client_message_id.clone()), entry);
        } else {
            wanted.push((row.sender_id, &row.client_message_id));
        }
    }
    for (draft, check) in drafts.iter().zip(checked) {
        if matches!(check, Checked::Refused(_)) {
            wanted.push((draft.sender, &draft.client_message_id));
        }
    }
    let found = table::list_by_client_ids(tx.db, &wanted).await?;
    let hashes: Vec<Vec<u8>> = found.iter().map(|row| row.content_hash.clone()).collect();
    for (message, content_hash) in present(tx.db, found).await?.into_iter().zip(hashes) {
        let key = (message.sender_id, message.client_message_id.clone());
        stored.entry(key).or_insert(Stored { content_hash, message });
    }
    let is_missing = |row: &&PrivateMessageRow| !stored.contains_key(&(row.sender_id, row.client_message_id.clone()));
    if rows.iter().any(|row| is_missing(&row)) {
        // Neither new nor there under its key: its id exists already. Nothing may be answered as stored.
        return Err(Error::QueryBuilderError("a message was neither inserted nor found".into()));
    }
    Ok(stored)
}

/// A row that exists, with what a repeat is compared by.
struct Stored {
    content_hash: Vec<u8>,
    message: PrivateMessage,
}

fn answer(
    draft: &PrivateDraft,
    check: Checked,
    stored: &HashMap<(UserId, String), Stored>,
) -> Result<PrivateMessage, AppError> {
    let row = stored.get(&(draft.sender, draft.client_message_id.clone()));
    match (check, row) {
        (_, Some(row)) if row.content_hash == draft.content_hash => Ok(row.message.clone()),
        (_, Some(_)) => Err(Refusal::ClientMessageIdReused.into()),
        (Checked::Refused(refusal), None) => Err(refusal.into()),
        (Checked::New(_) | Checked::Repeat, None) => Err(AppError::Internal("a stored message was not found".into())),
    }
}
