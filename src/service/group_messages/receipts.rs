//! Receipts of group messages, computed from the read positions of the present members.

use std::collections::HashMap;

use diesel::QueryResult;

use crate::db::{Db, conversation_reads, group_members, group_spans};
use crate::domain::conversation::ConversationType;
use crate::domain::group_message::{Reader, ReceiptCounter, Span};
use crate::domain::ids::{GroupId, UserId};

/// What is needed to count receipts of one group: three queries, however many messages.
pub async fn load_counter(db: &mut Db, group: GroupId) -> QueryResult<ReceiptCounter> {
    let members = group_members::list_active_ids(db, group).await?;
    let positions = conversation_reads::list_of_target(db, ConversationType::Group as i32, group.0).await?;
    let mut spans: HashMap<UserId, Vec<Span>> = HashMap::new();
    for (user, span) in group_spans::list_of_group(db, group).await? {
        spans.entry(user).or_default().push(span);
    }
    let readers = members.into_iter().map(|user| Reader {
        user,
        spans: spans.remove(&user).unwrap_or_default(),
        position: positions.get(&user).copied(),
    });
    Ok(ReceiptCounter::new(readers.collect()))
}
