//! Sending group messages, many at once (`contract/02` sections 2 and G1). Every check reads the state in which it
//! commits: the `group` counter is locked before, and whoever changes membership, roles or mutes locks it too.

use std::collections::HashMap;
use std::sync::Arc;

use diesel::QueryResult;

use super::{GroupMessageRow, notify_stored, present, present_row, table};
use crate::db::group_messages::comma_list;
use crate::db::groups::{self, Group};
use crate::db::{group_members, group_spans};
use crate::domain::content::{Content, Quote, strip_quote};
use crate::domain::group::{MemberState, check_may_send};
use crate::domain::group_message::{GroupMessage, Span};
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::message::{RECEIPT_NONE, RECEIPT_PENDING, STATUS_NORMAL, STATUS_RECALLED};
use crate::domain::refusal::Refusal;
use crate::service::Tx;
use crate::service::store::{Placed, Wanted, store_all};

/// A message that somebody wants to send. Its form is checked already: see `http::group_messages`.
pub struct GroupDraft {
    pub sender: UserId,
    pub group: GroupId,
    /// 1–64 printable ASCII characters; unique for this sender.
    pub client_message_id: String,
    pub content_type: i32,
    pub content: Content,
    /// What a repeat is compared by (`design.md` I2).
    pub content_hash: [u8; 16],
    pub at_user_ids: Option<Vec<i64>>,
    pub receipt: Option<bool>,
}

/// What became of a run's drafts: one outcome for each, and the newest id that existed before.
pub struct SentRun {
    pub outcomes: Vec<(Option<MessageId>, Result<GroupMessage, Refusal>)>,
    pub newest_before: MessageId,
}

/// What is known before anything is written.
struct Facts {
    groups: HashMap<GroupId, Group>,
    members: HashMap<(GroupId, UserId), MemberState>,
    quoted: HashMap<MessageId, GroupMessageRow>,
    /// Spans of those who quote.
    spans: HashMap<(GroupId, UserId), Vec<Span>>,
}

/// Sends drafts in their order. Needs the `group` counter.
pub async fn send_all(tx: &mut Tx<'_>, drafts: &[&GroupDraft]) -> QueryResult<SentRun> {
    if drafts.is_empty() {
        return Ok(SentRun { outcomes: Vec::new(), newest_before: MessageId(i64::MAX) });
    }
    let facts = gather(tx, drafts).await?;
    let wanted = drafts.iter().map(|draft| Wanted {
        key: (draft.sender, draft.client_message_id.as_str()),
        content_hash: &draft.content_hash,
        row: check(draft, &facts, tx.now).map(|content| new_row(tx, draft, content)),
    });
    let wanted = wanted.collect();
    let stored = store_all(tx, wanted).await?;
    let mut members: HashMap<GroupId, Arc<[UserId]>> = HashMap::new();
    for row in stored.new {
        let receivers = match members.get(&row.group_id) {
            Some(receivers) => receivers.clone(),
            None => {
                let receivers = load_members(tx, facts.groups.get(&row.group_id), row.group_id).await?;
                members.insert(row.group_id, receivers.clone());
                receivers
            }
        };
        let sender = row.sender_id;
        notify_stored(tx, present_row(row, sender, &HashMap::new()), receivers)?;
    }
    Ok(SentRun { outcomes: show(tx, stored.placed, &members).await?, newest_before: stored.newest_before })
}

/// The active members, from the cache where its version is the group's.
async fn load_members(tx: &mut Tx<'_>, group: Option<&Group>, id: GroupId) -> QueryResult<Arc<[UserId]>> {
    let version = group.map(|group| group.member_version);
    if let Some(members) = version.and_then(|version| tx.members.get(id, version)) {
        return Ok(members);
    }
    let members: Arc<[UserId]> = group_members::list_active_ids(tx.db, id).await?.into();
    if let Some(version) = version {
        tx.members.put(id, version, members.clone());
    }
    Ok(members)
}

/// The stored rows as their sender sees them now, with everybody who sees them.
async fn show(
    tx: &mut Tx<'_>,
    placed: Vec<Placed<GroupMessageRow>>,
    members: &HashMap<GroupId, Arc<[UserId]>>,
) -> QueryResult<Vec<(Option<MessageId>, Result<GroupMessage, Refusal>)>> {
    let mut outcomes = Vec::with_capacity(placed.len());
    for Placed { id, outcome, is_repeat } in placed {
        let row = match outcome {
            Ok(row) => row,
            Err(refusal) => {
                outcomes.push((id, Err(refusal)));
                continue;
            }
        };
        let (sender, group, message_id) = (row.sender_id, row.group_id, row.id);
        let receivers = match members.get(&group).filter(|_| !is_repeat) {
            Some(receivers) => receivers.clone(),
            None => group_spans::list_members_at(tx.db, group, message_id).await?.into(),
        };
        let message = if is_repeat {
            present(tx.db, sender, vec![row]).await?.pop()
        } else {
            Some(present_row(row, sender, &HashMap::new()))
        };
        let message = message.map(|message| GroupMessage { receiver_user_ids: Some(receivers), ..message });
        outcomes.push((id, message.ok_or(Refusal::MessageNotFound)));
    }
    Ok(outcomes)
}

async fn gather(tx: &mut Tx<'_>, drafts: &[&GroupDraft]) -> QueryResult<Facts> {
    let mut ids: Vec<GroupId> = drafts.iter().map(|draft| draft.group).collect();
    ids.sort_unstable();
    ids.dedup();
    let pairs: Vec<(GroupId, UserId)> = drafts.iter().map(|draft| (draft.group, draft.sender)).collect();
    let quoting: Vec<&&GroupDraft> =
        drafts.iter().filter(|draft| draft.content.quoted_message_id().is_some()).collect();
    let quotes = quoting.iter().filter_map(|draft| draft.content.quoted_message_id().map(MessageId)).collect();
    let quoted = table::list_by_ids(tx.db, quotes).await?.into_iter().map(|row| (row.id, row)).collect();
    let quoting_groups = quoting.iter().map(|draft| draft.group).collect();
    let quoting_users = quoting.iter().map(|draft| draft.sender).collect();
    Ok(Facts {
        groups: groups::list_by_ids(tx.db, ids).await?.into_iter().map(|group| (group.id, group)).collect(),
        members: group_members::list_states(tx.db, &pairs).await?,
        quoted,
        spans: group_spans::list_for(tx.db, quoting_groups, quoting_users).await?,
    })
}

/// The rules of `contract/02` sections 2.1 and 2.2; the content to store.
fn check(draft: &GroupDraft, facts: &Facts, now: i64) -> Result<String, Refusal> {
    let group = facts.groups.get(&draft.group).map(Group::state);
    let member = facts.members.get(&(draft.group, draft.sender)).copied();
    check_may_send(group, member, now)?;
    if draft.content.has_sensitive_word() {
        return Err(Refusal::SensitiveWord);
    }
    let Some(id) = draft.content.quoted_message_id() else { return Ok(draft.content.without_quote()) };
    let original = facts.quoted.get(&MessageId(id)).ok_or(Refusal::QuoteInvalid)?;
    let spans = facts.spans.get(&(draft.group, draft.sender)).map(Vec::as_slice).unwrap_or_default();
    // A quote is its sender's disclosure to those who see it; of what was directed to some, it would be to others.
    let may_quote = original.group_id == draft.group
        && original.status != STATUS_RECALLED
        && original.is_visible_to(draft.sender, spans)
        && original.directed_to().is_none();
    if !may_quote {
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

fn new_row(tx: &Tx<'_>, draft: &GroupDraft, content: String) -> GroupMessageRow {
    let is_asked_for = tx.config.message.group_read_enabled && draft.receipt.unwrap_or(false);
    GroupMessageRow {
        id: MessageId(0),
        client_message_id: draft.client_message_id.clone(),
        sender_id: draft.sender,
        group_id: draft.group,
        type_: draft.content_type,
        content,
        content_hash: draft.content_hash.to_vec(),
        status: STATUS_NORMAL,
        receipt_status: if is_asked_for { RECEIPT_PENDING } else { RECEIPT_NONE },
        send_time: 0,
        at_user_ids: comma_list(draft.at_user_ids.as_deref()),
        receiver_user_ids: None,
    }
}
