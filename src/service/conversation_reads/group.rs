//! Read reports of groups.

use std::collections::{BTreeMap, HashMap};

use diesel::QueryResult;

use super::{Conversation, GROUP, ReadReport, Rise};
use crate::db::group_messages::{self, GroupMessageRow};
use crate::db::group_spans;
use crate::domain::content::ContentType;
use crate::domain::conversation::ConversationType;
use crate::domain::group_message::Receipt;
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::message::{RECEIPT_DONE, RECEIPT_PENDING};
use crate::domain::refusal::Refusal;
use crate::protocol::frame::FrameClass;
use crate::protocol::payload::ReceiptPayload;
use crate::service::Tx;
use crate::service::group_messages::load_counter;

/// Receipts told after one run and group, the newest first: what one command may touch (`design.md` section 4).
const MAX_RECEIPTS: i64 = 1_000;

/// Whether each group report names a message of that group which its reader sees and could see by then (1040300009
/// otherwise). For reports of other conversations the answer means nothing.
pub(super) async fn positions(
    tx: &mut Tx<'_>,
    reports: &[(&ReadReport, MessageId)],
) -> QueryResult<Vec<Result<MessageId, Refusal>>> {
    let of_groups: Vec<(&ReadReport, GroupId)> = reports
        .iter()
        .filter_map(|(report, _)| match report.conversation {
            Conversation::In(group) => Some((*report, group)),
            Conversation::With(_) => None,
        })
        .collect();
    let ids = of_groups.iter().map(|(report, _)| report.message).collect();
    let rows: HashMap<MessageId, GroupMessageRow> =
        group_messages::list_by_ids(tx.db, ids).await?.into_iter().map(|row| (row.id, row)).collect();
    let groups = of_groups.iter().map(|(_, group)| *group).collect();
    let users = of_groups.iter().map(|(report, _)| report.reader).collect();
    let spans = group_spans::list_for(tx.db, groups, users).await?;
    let is_visible = |report: &ReadReport, newest_visible: MessageId| {
        let Conversation::In(group) = report.conversation else { return false };
        let spans = spans.get(&(group, report.reader)).map(Vec::as_slice).unwrap_or_default();
        let row = rows.get(&report.message);
        report.message <= newest_visible
            && row.is_some_and(|row| row.group_id == group && row.is_visible_to(report.reader, spans))
    };
    Ok(reports
        .iter()
        .map(
            |(report, newest)| {
                if is_visible(report, *newest) { Ok(report.message) } else { Err(Refusal::MessageNotInGroup) }
            },
        )
        .collect())
}

/// Tells the senders of receipt messages that a position has passed how many have read them now: for each group one
/// query for the positions, and one frame for each message, however many readers came together.
pub(super) async fn notify_senders(tx: &mut Tx<'_>, rises: &[Rise]) -> QueryResult<()> {
    let mut by_group: BTreeMap<i64, Vec<&Rise>> = BTreeMap::new();
    for rise in rises.iter().filter(|rise| rise.advance.key.conversation_type == GROUP) {
        by_group.entry(rise.advance.key.target).or_default().push(rise);
    }
    for (group, rises) in by_group {
        let group = GroupId(group);
        let low = rises.iter().map(|rise| rise.before.unwrap_or(MessageId(0))).min().unwrap_or(MessageId(0));
        let high = rises.iter().map(|rise| rise.advance.message).max().unwrap_or(MessageId(0));
        let passed = group_messages::list_receipts_between(tx.db, group, low, high, MAX_RECEIPTS).await?;
        if passed.is_empty() {
            continue;
        }
        let counter = load_counter(tx.db, group).await?;
        for (message, sender) in passed.into_iter().rev().filter(|(message, _)| is_passed(&rises, *message)) {
            let receipt = counter.receipt(message, sender);
            if receipt.receivers > 0 {
                notify_sender(tx, group, message, sender, receipt)?;
            }
        }
    }
    Ok(())
}

fn is_passed(rises: &[&Rise], message: MessageId) -> bool {
    rises.iter().any(|rise| rise.before.is_none_or(|before| before < message) && message <= rise.advance.message)
}

fn notify_sender(
    tx: &mut Tx<'_>,
    group: GroupId,
    message: MessageId,
    sender: UserId,
    receipt: Receipt,
) -> QueryResult<()> {
    let payload = ReceiptPayload {
        id: message,
        sender_id: None,
        receiver_id: None,
        group_id: Some(group),
        read_count: i64::try_from(receipt.read).ok(),
        receipt_status: Some(if receipt.is_done() { RECEIPT_DONE } else { RECEIPT_PENDING }),
    };
    tx.notify(vec![sender], FrameClass::State, ConversationType::Group, ContentType::Receipt, &payload)
}
