//! What must hold after every fault, whatever it was: the tables hold what was acknowledged, once and in order, and all
//! who may see it have it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use nudge::client::{Device, GroupDraft, STATUS_RECALLED, Store, Unread};
use nudge::domain::conversation::ConversationType;
use nudge::domain::ids::GroupId;
use serde_json::{Value, json};

use crate::support::chats::{RECALL, TEXT};
use crate::support::cursors::PositionCursor;
use crate::support::stored::{StoredMessage, audiences};
use crate::support::waiting::eventually_within;

use super::ears::Ear;
use super::ledger::{Ledger, Sent};
use super::world::{Clients, PATIENCE, World};

/// Unread messages of a conversation are counted up to here.
const MAX_COUNTED: i64 = 1_000;
/// How long all may take to hear a message before another one is sent: somebody may not have noticed yet that his
/// connection is dead.
const HEARING: Duration = Duration::from_secs(3);

/// What was looked at in all rounds.
#[derive(Default)]
pub struct Counts {
    pub sent: usize,
    pub lost_connections: usize,
}

pub struct Checker {
    /// The newest rows before the first round.
    before: [i64; 2],
    /// A device of each person that pulls positions by the cursor alone, without going back a little.
    positions: Vec<PositionCursor>,
    pub counts: Counts,
}

/// Rows of both tables since the first round, by id, and who may see them.
struct Tables {
    rows: [BTreeMap<i64, StoredMessage>; 2],
    audiences: [BTreeMap<i64, BTreeSet<i64>>; 2],
}

impl Tables {
    fn visible(&self, user: i64, stream: usize) -> impl Iterator<Item = &StoredMessage> {
        let rows = self.rows[stream].values();
        rows.filter(move |row| self.audiences[stream].get(&row.id).is_some_and(|who| who.contains(&user)))
    }
}

impl Checker {
    pub async fn new(world: &World) -> Checker {
        let positions = world.clients.people.iter().map(|person| PositionCursor::new(person, 100)).collect();
        Checker { before: world.tables().await.newest_messages().await, positions, counts: Counts::default() }
    }

    /// Everybody rests, and what was broken is mended.
    pub async fn check(&mut self, world: &mut World) {
        for server in &world.servers {
            let url = format!("{}/readyz", server.url());
            eventually_within(PATIENCE, "the server is ready", async || {
                reqwest::get(&url).await.is_ok_and(|answer| answer.status() == 200)
            })
            .await;
        }
        everybody_hears(world).await;
        nobody_else_is_connected(world).await;
        let tables = self.read_tables(world).await;
        self.counts.sent = check_sent(&tables, &world.ledger.borrow());
        check_recalls(&tables, &world.ledger.borrow());
        for device in &world.clients.devices {
            // A busy machine may need more than one try.
            eventually_within(PATIENCE, "a device syncs", async || device.sync().await.is_ok()).await;
        }
        let Clients { devices, people, ears, .. } = &world.clients;
        for (index, device) in devices.iter().enumerate() {
            let mut unread = None;
            eventually_within(PATIENCE, "unread messages are counted", async || {
                unread = device.unread().await.ok();
                unread.is_some()
            })
            .await;
            check_device(device, self.before, &tables, &world.ledger.borrow());
            check_unread(&unread.unwrap(), device.user_id().0, &tables, &world.ledger.borrow());
            let first_of_user = &devices[index / 2 * 2];
            let groups = |device: &Device| device.with_store(|store| store.groups().to_vec());
            assert_eq!(groups(device), groups(first_of_user), "groups of {}", device.user_id());
        }
        for (person, cursor) in people.iter().zip(&mut self.positions) {
            cursor.finish().await;
            let reads = &world.ledger.borrow().reads;
            // Groups and people may have the same number.
            let mut expected: Vec<_> =
                reads.iter().filter(|(key, _)| key.0 == person.id).map(|(key, id)| (key.2, *id)).collect();
            let mut found: Vec<_> = cursor.rows.values().map(|(target, message, _)| (*target, *message)).collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "positions of {} (found, expected)", person.id);
        }
        for ear in ears {
            check_ear(ear, &tables, world.servers.len() < 2);
        }
        self.counts.lost_connections = ears.iter().map(|ear| ear.heard.borrow().len().saturating_sub(1)).sum::<usize>();
    }

    async fn read_tables(&self, world: &World) -> Tables {
        let mut tables = world.tables().await;
        let private = tables.private_messages_after(self.before[0]).await;
        // Who is in a group follows from all its events.
        let group = tables.group_messages_after(0).await;
        let pairs = private.iter().map(|row| (row.id, BTreeSet::from([row.sender, row.target]))).collect();
        let audiences = [pairs, audiences(&group)];
        let by_id = |rows: Vec<StoredMessage>| rows.into_iter().map(|row| (row.id, row)).collect();
        let group = group.into_iter().filter(|row| row.id > self.before[1]).collect();
        Tables { rows: [by_id(private), by_id(group)], audiences }
    }
}

/// Everybody who listens is reached by a push again, on every server.
async fn everybody_hears(world: &World) {
    let Clients { devices, ears, groups, .. } = &world.clients;
    // Without a cluster a server tells only those who are connected to it; each has a device of the first person.
    if world.bases.len() > 1 {
        return;
    }
    eventually_within(PATIENCE, "everybody hears a message", async || {
        let draft = GroupDraft::text(GroupId(groups[1]), "can you hear me");
        let Ok(row) = devices[0].send_group(&draft).await else { return false };
        let all = async {
            while !ears.iter().all(|ear| ear.has_heard(row.id.0)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(HEARING, all).await.is_ok()
    })
    .await;
}

/// Sessions of connections that are gone are gone too.
async fn nobody_else_is_connected(world: &World) {
    let expected = world.clients.ears.len();
    eventually_within(PATIENCE, &format!("there are {expected} sessions"), async || {
        let mut count = 0;
        for server in &world.servers {
            let metrics = reqwest::get(format!("{}/metrics", server.url())).await.unwrap().text().await.unwrap();
            let line = metrics.lines().find_map(|line| line.strip_prefix("nudge_sessions "));
            count += line.map_or(0, |count| count.parse().unwrap());
        }
        world.servers.is_empty() || count == expected
    })
    .await;
}

/// What was acknowledged is there under the id that was told, once, and in the order of sending; how many.
fn check_sent(tables: &Tables, ledger: &Ledger) -> usize {
    let mut stored: HashMap<(i64, &str), &StoredMessage> = HashMap::new();
    let mut times = [0; 2];
    for row in tables.rows.iter().flat_map(BTreeMap::values).filter(|row| row.kind == TEXT) {
        let other = stored.insert((row.sender, &row.client_message_id), row);
        assert!(other.is_none(), "stored twice: {row:?}, {other:?}");
    }
    for (rows, newest) in tables.rows.iter().zip(&mut times) {
        for row in rows.values() {
            assert!(row.send_time >= *newest, "sent at {}, after {newest}: {row:?}", row.send_time);
            *newest = row.send_time;
        }
    }
    let mut ids: BTreeMap<(usize, bool), Vec<(usize, i64)>> = BTreeMap::new();
    for ((sender, client_id), sent) in &ledger.sent {
        let Sent { hand, number, is_group, target, id } = sent.clone();
        let row = stored.remove(&(*sender, client_id.as_str()));
        let row = row.unwrap_or_else(|| panic!("acknowledged and not there: {client_id} of {sender}, {sent:?}"));
        let text = json!({"content": client_id}).to_string();
        assert_eq!((Some(row.id), row.target, &row.content), (id, target, &text), "{client_id} of {sender}");
        assert!(tables.rows[usize::from(is_group)].contains_key(&row.id), "{client_id} of {sender}");
        ids.entry((hand, is_group)).or_default().push((number, row.id));
    }
    for (hand, mut sent) in ids {
        sent.sort_unstable();
        assert!(sent.is_sorted_by_key(|(_, id)| *id), "ids of hand {hand:?}: {sent:?}");
    }
    stored.retain(|_, row| !row.content.contains("can you hear me"));
    assert!(stored.is_empty(), "sent by nobody: {stored:?}");
    ledger.sent.len()
}

/// What was recalled is told once, and nothing else is recalled.
fn check_recalls(tables: &Tables, ledger: &Ledger) {
    for (rows, acknowledged) in tables.rows.iter().zip(&ledger.recalled) {
        let recalled: BTreeSet<i64> = rows.values().filter(|row| row.status == 2).map(|row| row.id).collect();
        let recall_rows = rows.values().filter(|row| row.kind == RECALL);
        let mut told: Vec<i64> = recall_rows
            .map(|row| serde_json::from_str::<Value>(&row.content).unwrap()["messageId"].as_i64().unwrap())
            .collect();
        told.sort_unstable();
        assert_eq!(&recalled, acknowledged, "recalled (found, acknowledged)");
        assert_eq!(told, recalled.into_iter().collect::<Vec<_>>(), "told of recalls (found, expected)");
    }
}

/// A device that has synced knows every row that its user may see, and nothing else; so all devices of a user agree.
fn check_device(device: &Device, before: [i64; 2], tables: &Tables, ledger: &Ledger) {
    let user = device.user_id().0;
    device.with_store(|store| {
        assert_eq!(store.duplicates(), 0, "one client id under two ids, {user}");
        let known = known(store, before);
        for (stream, known) in known.into_iter().enumerate() {
            let expected: BTreeMap<i64, _> = tables.visible(user, stream).map(|row| (row.id, shown(row))).collect();
            let missing: Vec<_> = expected.iter().filter(|(id, _)| !known.contains_key(id)).collect();
            assert!(missing.is_empty(), "{user} misses {missing:?} of stream {stream}");
            let strange: Vec<_> = known.iter().filter(|(id, row)| expected.get(id) != Some(row)).collect();
            assert!(strange.is_empty(), "{user} knows {strange:?} of stream {stream}");
        }
        for ((_, kind, target), id) in ledger.reads.iter().filter(|(key, _)| key.0 == user) {
            let conversation = if *kind == 1 { ConversationType::Private } else { ConversationType::Group };
            let position = store.read_position(conversation, *target).map(|id| id.0);
            assert_eq!(position, Some(*id), "position of {user} in {kind} {target}");
        }
    });
}

/// What the server counts is what lies above the positions.
fn check_unread(unread: &Unread, user: i64, tables: &Tables, ledger: &Ledger) {
    let mut counted: BTreeMap<(i32, i64), i64> = BTreeMap::new();
    for (stream, kind) in [(0, 1), (1, 2)] {
        for row in tables.visible(user, stream) {
            let target = if stream == 0 { row.sender } else { row.target };
            let position = ledger.reads.get(&(user, kind, target)).copied().unwrap_or(0);
            if row.sender != user && row.kind == TEXT && row.status == 0 && row.id > position {
                *counted.entry((kind, target)).or_default() += 1;
            }
        }
    }
    let expected: BTreeMap<_, _> = counted.into_iter().map(|(key, count)| (key, count.min(MAX_COUNTED))).collect();
    let found: BTreeMap<_, _> =
        unread.conversations.iter().map(|row| ((row.conversation_type, row.target_id), row.count)).collect();
    assert_eq!(found, expected, "unread of {user} (found, expected)");
}

/// What a client sees of a row and what does not change later: client id, sender, type, status and content.
type Shown = (String, i64, i64, i64, String);

fn shown(row: &StoredMessage) -> Shown {
    let content = if row.status == i64::from(STATUS_RECALLED) { "{}".to_owned() } else { row.content.clone() };
    (row.client_message_id.clone(), row.sender, row.kind, row.status, content)
}

fn known(store: &Store, before: [i64; 2]) -> [BTreeMap<i64, Shown>; 2] {
    let private = store.private_messages().filter(|row| row.id.0 > before[0]).map(|row| {
        let client_id = row.client_message_id.clone().unwrap();
        (row.id.0, (client_id, row.sender_id.0, row.r#type.into(), row.status.into(), row.content.clone()))
    });
    let group = store.group_messages().filter(|row| row.id.0 > before[1]).map(|row| {
        let client_id = row.client_message_id.clone().unwrap();
        (row.id.0, (client_id, row.sender_id.0, row.r#type.into(), row.status.into(), row.content.clone()))
    });
    [private.collect(), group.collect()]
}

/// On each connection ids rose; and between the first and the last of them nothing was left out, where one server tells
/// everything.
fn check_ear(ear: &Ear, tables: &Tables, is_complete: bool) {
    for heard in ear.heard.borrow().iter() {
        for (stream, ids) in heard.iter().enumerate() {
            assert!(ids.is_sorted_by(|one, next| one < next), "{} heard {ids:?}", ear.name);
            let (Some(first), Some(last)) = (ids.first(), ids.last()) else { continue };
            let visible = tables.visible(ear.user, stream).map(|row| row.id);
            let between: Vec<i64> = visible.filter(|id| (first..=last).contains(&id)).collect();
            let strange: Vec<_> = ids.iter().filter(|id| between.binary_search(id).is_err()).collect();
            assert!(strange.is_empty(), "{} heard {strange:?} of stream {stream}", ear.name);
            let missing: Vec<_> = between.iter().filter(|id| ids.binary_search(id).is_err()).collect();
            assert!(!is_complete || missing.is_empty(), "{} did not hear {missing:?} of stream {stream}", ear.name);
        }
    }
}
