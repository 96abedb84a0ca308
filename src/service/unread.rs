//! Unread counts from the tables (`design.md` section 12, `POST /im/unread`): what others sent, of types that users
//! send, not recalled, above my read position and inside the pull window, as the web client counts after a pull.

use std::collections::{BTreeMap, HashMap};

use diesel::QueryResult;

use super::conversation_reads::{GROUP, PRIVATE};
use super::pull_window::{PullWindow, View};
use crate::config::MessageConfig;
use crate::db::conversation_reads::{self, PositionKey};
use crate::db::unread::{self as table, MAX_COUNTED, Part};
use crate::db::{Db, group_spans};
use crate::domain::group_message::Span;
use crate::domain::ids::{GroupId, MessageId, UserId};

/// Spans of one user that are looked at, the latest ones.
const MAX_SPANS: i64 = 20_000;

/// Unread messages of one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadConversation {
    pub conversation_type: i32,
    pub target: i64,
    /// At most 1,000.
    pub count: i64,
    /// There are more than `count`.
    pub more: bool,
    pub silent: bool,
}

/// Where the pull windows begin, as the HTTP layer keeps them.
pub struct Windows<'a> {
    pub now: i64,
    pub private: &'a PullWindow,
    pub group: &'a PullWindow,
}

/// Every conversation with unread messages, private ones first, by target.
pub async fn count_unread(
    db: &mut Db,
    user: UserId,
    rules: &MessageConfig,
    windows: &Windows<'_>,
) -> QueryResult<Vec<UnreadConversation>> {
    let mut conversations = count_private(db, user, rules, windows).await?;
    conversations.extend(count_groups(db, user, rules, windows).await?);
    Ok(conversations)
}

async fn count_private(
    db: &mut Db,
    user: UserId,
    rules: &MessageConfig,
    windows: &Windows<'_>,
) -> QueryResult<Vec<UnreadConversation>> {
    let View { floor, newest } = windows.private.look(db, windows.now, rules).await?;
    let peers = table::list_peers(db, user).await?;
    let targets = peers.iter().map(|(peer, _)| peer.0).collect();
    let positions = conversation_reads::list_positions(db, PRIVATE, vec![user], targets).await?;
    let parts: Vec<Part<UserId>> = peers
        .iter()
        .map(|(peer, _)| Part {
            target: *peer,
            span: Span { from: start(&positions, user, PRIVATE, peer.0, floor), to: newest },
        })
        .collect();
    let counts = table::count_private(db, user, &parts).await?;
    let silent: HashMap<i64, bool> = peers.into_iter().map(|(peer, silent)| (peer.0, silent)).collect();
    Ok(summarise(PRIVATE, counts.into_iter().map(|(peer, count)| (peer.0, count)), &silent))
}

async fn count_groups(
    db: &mut Db,
    user: UserId,
    rules: &MessageConfig,
    windows: &Windows<'_>,
) -> QueryResult<Vec<UnreadConversation>> {
    let View { floor, newest } = windows.group.look(db, windows.now, rules).await?;
    let groups = table::list_groups(db, user).await?;
    let targets = groups.iter().map(|(group, _)| group.0).collect();
    let positions = conversation_reads::list_positions(db, GROUP, vec![user], targets).await?;
    let mut parts: Vec<Part<GroupId>> = Vec::new();
    for (group, span) in group_spans::list_of_user(db, user, floor, MAX_SPANS).await? {
        let from = start(&positions, user, GROUP, group.0, floor).max(span.from);
        let to = span.to.min(newest);
        if from < to {
            parts.push(Part { target: group, span: Span { from, to } });
        }
    }
    let counts = table::count_group(db, user, &parts).await?;
    let silent: HashMap<i64, bool> = groups.into_iter().map(|(group, silent)| (group.0, silent)).collect();
    Ok(summarise(GROUP, counts.into_iter().map(|(group, count)| (group.0, count)), &silent))
}

/// What lies at or below this id is read, or older than the window.
fn start(
    positions: &HashMap<PositionKey, MessageId>,
    user: UserId,
    conversation_type: i32,
    target: i64,
    floor: MessageId,
) -> MessageId {
    positions.get(&PositionKey { user, conversation_type, target }).copied().unwrap_or(floor).max(floor)
}

/// Adds up the parts of each conversation.
fn summarise(
    conversation_type: i32,
    counts: impl Iterator<Item = (i64, i64)>,
    silent: &HashMap<i64, bool>,
) -> Vec<UnreadConversation> {
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    for (target, count) in counts {
        *sums.entry(target).or_default() += count;
    }
    let show = |(target, sum): (i64, i64)| UnreadConversation {
        conversation_type,
        target,
        count: sum.min(MAX_COUNTED),
        more: sum > MAX_COUNTED,
        silent: silent.get(&target).copied().unwrap_or(false),
    };
    sums.into_iter().map(show).collect()
}
