//! Reading group messages: pull, history, who has read. Everything is a bounded page, and nothing shows that its
//! reader's spans do not cover (`design.md` I7).

use diesel::QueryResult;

use super::{GroupMessageRow, present, table};
use crate::config::MessageConfig;
use crate::db::{Db, conversation_reads, group_members, group_spans};
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::group_message::{GroupMessage, Span};
use crate::domain::ids::{GroupId, MAX_ID, MessageId, UserId};
use crate::domain::message::STATUS_RECALLED;
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::service::pull_window::{PullWindow, Pulled, check_pull_size};

/// Spans sought in one statement: SQLite allows no more than 500 terms in a compound SELECT.
const MAX_SEEKS: usize = 200;
/// Up to this many spans are sought at once; for more, the next few ids are looked at before, where a page is most often.
const FEW_SPANS: usize = 16;
/// How many ids those are.
const WINDOW: i64 = 2_000;

/// The next page of what I may see in all my groups, ascending (`contract/02` G2): full, or the end. Nothing above the
/// counter value read first is returned.
pub async fn pull(
    db: &mut Db,
    user: UserId,
    after: MessageId,
    size: i64,
    now: i64,
    rules: &MessageConfig,
    window: &PullWindow,
) -> Result<Vec<GroupMessage>, AppError> {
    Ok(pull_page(db, user, after, size, now, rules, window).await?.rows)
}

/// The same, with the counter value up to which a page that is not full is complete.
pub async fn pull_page(
    db: &mut Db,
    user: UserId,
    after: MessageId,
    size: i64,
    now: i64,
    rules: &MessageConfig,
    window: &PullWindow,
) -> Result<Pulled<GroupMessage>, AppError> {
    check_pull_size(size, rules)?;
    let view = window.look(db, now, rules).await?;
    if after >= view.newest {
        return Ok(Pulled { rows: Vec::new(), newest: view.newest });
    }
    let rows = list_visible(db, user, after.max(view.floor), view.newest, size).await?;
    metrics::histogram!("nudge_pull_rows", "stream" => "group").record(rows.len() as f64);
    Ok(Pulled { rows: present(db, user, rows).await?, newest: view.newest })
}

/// Whether the user sees any message with `low < id <= high`.
pub async fn sees_any_between(db: &mut Db, user: UserId, low: MessageId, high: MessageId) -> QueryResult<bool> {
    Ok(!list_visible(db, user, low, high, 1).await?.is_empty())
}

/// The lowest `size` rows that the user sees with `after < id <= newest`.
async fn list_visible(
    db: &mut Db,
    user: UserId,
    mut after: MessageId,
    newest: MessageId,
    size: i64,
) -> QueryResult<Vec<GroupMessageRow>> {
    let wanted = usize::try_from(size).unwrap_or(usize::MAX);
    let spans = group_spans::list_of_user(db, user, after, i64::MAX).await?;
    let mut rows: Vec<GroupMessageRow> = Vec::new();
    loop {
        let ids = find_ids(db, user, &spans, after, newest, size).await?;
        let is_last = ids.len() < wanted;
        let Some(last) = ids.last().copied() else { return Ok(rows) };
        let page = table::list_by_ids(db, ids).await?;
        // Directed messages to others are passed over; they are rare, so the next round is too.
        let is_addressed = |row: &GroupMessageRow| {
            row.sender_id == user || row.directed_to().is_none_or(|receivers| receivers.contains(&user))
        };
        rows.extend(page.into_iter().filter(is_addressed));
        rows.truncate(wanted);
        if is_last || rows.len() >= wanted {
            return Ok(rows);
        }
        after = last;
    }
}

/// The lowest `size` ids inside the user's spans with `after < id <= newest`, wherever they are: reads at most the window
/// and a page for each span.
async fn find_ids(
    db: &mut Db,
    user: UserId,
    spans: &[(GroupId, Span)],
    after: MessageId,
    newest: MessageId,
    size: i64,
) -> QueryResult<Vec<MessageId>> {
    let (mut low, mut missing, mut ids) = (after, size, Vec::new());
    if spans.len() > FEW_SPANS {
        let high = MessageId(after.0.saturating_add(WINDOW)).min(newest);
        ids = table::list_ids_in_window(db, user, low, high, size).await?;
        missing -= i64::try_from(ids.len()).unwrap_or(size);
        low = high;
    }
    if missing < 1 || low >= newest {
        return Ok(ids);
    }
    let mut later = Vec::new();
    for spans in spans.chunks(MAX_SEEKS) {
        later.extend(table::list_ids_in_spans(db, spans, low, newest, missing).await?);
    }
    later.sort_unstable();
    ids.extend(later.into_iter().take(usize::try_from(missing).unwrap_or(0)));
    Ok(ids)
}

/// History of a group, newest first (`contract/02` G3), for whoever is or was a member. A recalled message appears as a
/// recall of itself, and the rows that only announce recalls are left out.
pub async fn list_history(
    db: &mut Db,
    user: UserId,
    group: GroupId,
    before: Option<MessageId>,
    limit: i64,
) -> Result<Vec<GroupMessage>, AppError> {
    let spans = group_spans::list_in_group(db, user, group).await?;
    if spans.is_empty() {
        return Err(Refusal::NotGroupMember.into());
    }
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut before = before.unwrap_or(MessageId(MAX_ID));
    let mut rows = Vec::new();
    // The latest span first: its rows are all newer than those of the one before it.
    for span in spans {
        loop {
            let page = table::list_before(db, group, span, before, limit).await?;
            let is_last = page.len() < wanted;
            before = page.last().map_or(before, |row| row.id);
            rows.extend(page.into_iter().filter(|row| row.is_visible_to(user, &[span])));
            if is_last || rows.len() >= wanted {
                break;
            }
        }
        if rows.len() >= wanted {
            break;
        }
    }
    rows.truncate(wanted);
    let mut messages = present(db, user, rows).await?;
    for message in messages.iter_mut().filter(|message| message.status == STATUS_RECALLED) {
        message.content_type = ContentType::Recall.number();
    }
    Ok(messages)
}

/// Who has read my message (`contract/02` G5): present members who see it and whose position is not below it. Empty for
/// a message that is not mine, of another group, or not visible to me.
pub async fn read_user_ids(
    db: &mut Db,
    user: UserId,
    group: GroupId,
    message: MessageId,
    rules: &MessageConfig,
) -> Result<Vec<UserId>, AppError> {
    if !rules.group_read_enabled {
        return Err(Refusal::GroupReadDisabled.into());
    }
    group_members::get_state(db, group, user).await?.ok_or(Refusal::NotGroupMember)?;
    let Some(row) = load_visible(db, user, group, message).await? else { return Ok(Vec::new()) };
    if row.sender_id != user {
        return Ok(Vec::new());
    }
    let mut readers = group_spans::list_members_at(db, group, message).await?;
    let members = group_members::list_active_ids(db, group).await?;
    let positions = conversation_reads::list_of_target(db, ConversationType::Group as i32, group.0).await?;
    let has_read = |reader: &UserId| positions.get(reader).is_some_and(|position| *position >= message);
    let is_addressed = |reader: &UserId| row.directed_to().is_none_or(|receivers| receivers.contains(reader));
    readers.retain(|reader| {
        *reader != user && members.binary_search(reader).is_ok() && is_addressed(reader) && has_read(reader)
    });
    Ok(readers)
}

/// A message of the group, if the user sees it.
pub async fn load_visible(
    db: &mut Db,
    user: UserId,
    group: GroupId,
    message: MessageId,
) -> QueryResult<Option<GroupMessageRow>> {
    let row = table::get_by_id(db, message).await?.filter(|row| row.group_id == group);
    let Some(row) = row else { return Ok(None) };
    let spans: Vec<Span> = group_spans::list_in_group(db, user, group).await?;
    Ok(row.is_visible_to(user, &spans).then_some(row))
}
