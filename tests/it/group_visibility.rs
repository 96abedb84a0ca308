//! Who sees which group message: exactly the members at its commit (`design.md` I7 and section 5), by every way of
//! reading, in pages of every size and for users with very many memberships.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use nudge::actors::db_writer::DbWriter;
use nudge::config::{AuthConfig, Config};
use nudge::db::StatementHook;
use nudge::db::sequence::Counter;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, befriend, data, id_of, ids_of, random_id};
use crate::support::chats::{RECALL, TEXT, group_text, read_path};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{DirectWriter, group_draft, seed};
use crate::support::friends::code_of;
use crate::support::second_connection::SecondConnection;
use crate::support::stored::Tables;

on_every_database! {
    a_member_sees_the_time_of_membership_with_its_first_and_last_event,
    nothing_of_an_absence_is_seen_by_any_way_of_reading,
    visible_is_what_the_frozen_list_of_receivers_holds,
    every_page_size_gives_the_same_rows_also_with_very_many_memberships,
    commits_between_the_statements_of_a_pull_lose_nothing,
    commits_at_the_end_of_a_window_of_ids_lose_nothing,
    messages_older_than_thirty_days_are_in_the_history_only,
    the_history_shows_recalled_messages_and_no_announcements_of_recalls,
}

const INVITE: i64 = 1509;
const QUIT: i64 = 1504;
const KICK: i64 = 1508;
const DISSOLVE: i64 = 1511;
const NOT_VISIBLE: i64 = 1_040_300_009;
const NOT_FOUND: i64 = 1_040_300_000;
const NO_MEMBER: i64 = 1_040_500_001;
const DAY: i64 = 86_400_000;
/// Ids that are looked at first for those with many memberships; what lies behind them is sought in each of their spans.
const WINDOW: i64 = 2_000;
const GAPS: [i64; 5] = [WINDOW, WINDOW + 1, 3 * WINDOW, 3 * WINDOW + 1, 70_000];

fn types_of(rows: &[Value]) -> Vec<i64> {
    rows.iter().map(|row| row["type"].as_i64().unwrap()).collect()
}

async fn a_member_sees_the_time_of_membership_with_its_first_and_last_event(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    alice.say(group, "before carol").await;
    assert_eq!(carol.pull_groups(100).await, Vec::<Value>::new());
    alice.invite(group, &carol).await;
    let seen = alice.say(group, "with carol").await;
    alice.kick(group, &carol).await;
    alice.say(group, "without carol").await;
    alice.invite(group, &carol).await;
    carol.quit(group).await;
    alice.say(group, "without carol again").await;
    alice.invite(group, &carol).await;
    alice.dissolve(group).await;

    let rows = carol.pull_groups(100).await;
    assert_eq!(types_of(&rows), [INVITE, TEXT, KICK, INVITE, QUIT, INVITE, DISSOLVE]);
    assert_eq!(rows[1]["id"], seen["id"]);
    for limit in [1, 2, 3, 100] {
        let mut history = ids_of(&carol.history(group, limit).await);
        history.reverse();
        assert_eq!(history, ids_of(&rows), "pages of {limit}");
    }
    // Who was in all the time sees everything.
    assert_eq!(bob.pull_groups(100).await.len(), rows.len() + 4);
}

/// Every way of reading, for those who were members and those who never were (field test F1).
async fn nothing_of_an_absence_is_seen_by_any_way_of_reading(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, left, kicked, ended], group) = app.group(["alice", "left", "kicked", "ended"]).await;
    let never = app.user("never").await;
    let before = alice.ask_receipt(group, "all are here").await;
    left.quit(group).await;
    alice.kick(group, &kicked).await;
    let mut sockets = [left.connect().await, kicked.connect().await, never.connect().await];
    let after = alice.ask_receipt(group, "some have gone").await;
    alice.change("/im/group/pin-message", json!({"id": group, "messageId": after})).await;
    ended.read_group(group, after).await;
    data(alice.try_recall(after).await);
    for socket in &mut sockets {
        assert_eq!(socket.drain().await, vec![]);
    }
    for person in [&left, &kicked, &never] {
        let pulled = person.pull_groups(100).await;
        assert!(pulled.iter().all(|row| id_of(row) < after), "{pulled:?}");
        assert_eq!(code_of(&person.call("PUT", &read_path(group, after), None).await), NOT_VISIBLE);
        let path = format!("/im/message/group/get-read-user-ids?groupId={group}&messageId={before}");
        assert_eq!(code_of(&person.call("GET", &path, None).await), NO_MEMBER);
        assert_eq!(code_of(&person.try_recall(after).await), NOT_FOUND);
        let pin = json!({"id": group, "messageId": before});
        assert_eq!(code_of(&person.call("PUT", "/im/group/pin-message", Some(pin)).await), NO_MEMBER);
        assert_eq!(code_of(&person.try_say(group_text(group, &random_id(), "hello?")).await), NO_MEMBER);
        assert_eq!(person.get(&format!("/im/group/get?id={group}")).await["pinnedMessages"], Value::Null);
        let typing = format!("/im/message/group/typing?groupId={group}");
        assert_eq!(code_of(&person.call("PUT", &typing, None).await), NO_MEMBER);
    }
    for person in [&left, &kicked] {
        let history = person.history(group, 100).await;
        assert!(history.iter().all(|row| id_of(row) < after) && ids_of(&history).contains(&before), "{history:?}");
        assert_eq!(code_of(&person.call("PUT", &read_path(group, before), None).await), 0);
        assert_eq!(code_of(&person.try_recall(before).await), NO_MEMBER);
    }
    let history = format!("/im/message/group/list?groupId={group}&limit=10");
    assert_eq!(code_of(&never.call("GET", &history, None).await), NO_MEMBER);
    assert_eq!(code_of(&never.call("PUT", &read_path(group, before), None).await), NOT_VISIBLE);
    assert_eq!(code_of(&never.try_recall(before).await), NOT_FOUND);
    // After the end everybody keeps what was seen.
    alice.dissolve(group).await;
    let rows = ended.pull_groups(100).await;
    assert_eq!(types_of(&rows).last(), Some(&DISSOLVE));
    assert_eq!(ids_of(&rows), ids_of(&alice.pull_groups(100).await));
    ended.read_group(group, id_of(&rows[rows.len() - 1])).await;
}

/// What the reference would have stored: every message with the members at its moment.
struct Model {
    members: BTreeSet<usize>,
    frozen: Vec<BTreeSet<usize>>,
}

impl Model {
    fn store(&mut self) {
        self.frozen.push(self.members.clone());
    }
}

/// One random step by person 0, the owner, or by somebody else.
async fn random_step(rng: &mut StdRng, people: &[Person], group: i64, model: &mut Model) {
    let who = rng.random_range(1..people.len());
    let is_member = model.members.contains(&who);
    match (rng.random_range(0..5), is_member) {
        (0, true) => {
            people[who].quit(group).await;
            model.store();
            model.members.remove(&who);
        }
        (1, true) => {
            people[0].kick(group, &people[who]).await;
            model.store();
            model.members.remove(&who);
        }
        (0..=2, false) => {
            if rng.random_bool(0.5) {
                people[0].invite(group, &people[who]).await;
            } else {
                people[who].post("/im/group-request/apply", json!({"groupId": group})).await;
            }
            model.members.insert(who);
            model.store();
        }
        (2, true) => {
            let sent = people[who].say(group, "for a moment").await;
            model.store();
            data(people[who].try_recall(id_of(&sent)).await);
            model.store();
        }
        (_, true) => {
            let sent = people[who].say(group, "hello").await;
            let receivers: Vec<i64> = model.members.iter().map(|index| people[*index].id).collect();
            assert_eq!(sent["receiverUserIds"], json!(receivers));
            model.store();
        }
        (_, false) => {
            let answer = people[who].try_say(group_text(group, &random_id(), "hello")).await;
            assert_eq!(code_of(&answer), NO_MEMBER);
        }
    }
}

async fn visible_is_what_the_frozen_list_of_receivers_holds(backend: Backend) {
    let mut rng = StdRng::seed_from_u64(seed());
    let app = TestApp::start(backend).await;
    let (people, first) = app.group(["alice", "bob", "carol", "dave", "erin"]).await;
    let second = people[0].create_group(&[&people[1]]).await;
    let model = |members: &[usize]| {
        let members: BTreeSet<usize> = members.iter().copied().collect();
        Model { frozen: vec![members.clone()], members }
    };
    let mut models = [(first, model(&[0, 1, 2, 3, 4])), (second, model(&[0, 1]))];
    for _ in 0..80 {
        let index = rng.random_range(0..2);
        let (group, model) = &mut models[index];
        random_step(&mut rng, &people, *group, model).await;
    }
    // The owner was always in, so his rows are all rows.
    let all = people[0].pull_groups(1_000).await;
    for (index, person) in people.iter().enumerate() {
        let pulled: BTreeSet<i64> = ids_of(&person.pull_groups(7).await).into_iter().collect();
        for (group, model) in &models {
            let rows: Vec<&Value> = all.iter().filter(|row| row["groupId"] == *group).collect();
            assert_eq!(rows.len(), model.frozen.len());
            let sees = |position: usize| model.frozen[position].contains(&index);
            for (position, row) in rows.iter().enumerate() {
                assert_eq!(pulled.contains(&id_of(row)), sees(position), "{row} for person {index}");
                let answer = person.call("PUT", &read_path(*group, id_of(row)), None).await;
                assert_eq!(code_of(&answer), if sees(position) { 0 } else { NOT_VISIBLE }, "{row} for {index}");
            }
            let expected: Vec<i64> = (0..rows.len())
                .rev()
                .filter(|position| sees(*position) && rows[*position]["type"] != RECALL)
                .map(|position| id_of(rows[position]))
                .collect();
            if model.frozen.iter().any(|members| members.contains(&index)) {
                let limit = *[1, 2, 5, 200].choose(&mut rng).unwrap();
                assert_eq!(ids_of(&person.history(*group, limit).await), expected, "person {index}, pages of {limit}");
            }
        }
    }
}

/// Memberships of groups where nothing was written, so many that one statement does not seek them all. They end before
/// an open span does.
async fn add_memberships(app: &TestApp, person: &Person) {
    let rows: Vec<String> =
        (0..250).map(|index| format!("({}, {}, 0, {})", person.id, 1_000_000 + index, (1_i64 << 53) - 2)).collect();
    let mut table = SecondConnection::open(&app.database.url).await;
    let columns = "im_group_member_span (user_id, group_id, from_id, to_id)";
    table.execute(&format!("INSERT INTO {columns} VALUES {}", rows.join(","))).await;
}

async fn every_page_size_gives_the_same_rows_also_with_very_many_memberships(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], first) = app.group(["alice", "bob"]).await;
    let second = alice.create_group(&[&bob]).await;
    let mut direct = DirectWriter::connect(&app.database.url).await;
    let mut expected = ids_of(&bob.pull_groups(1_000).await);
    let mut next = expected[expected.len() - 1];
    let mut rows = Vec::new();
    for index in 0..203 {
        // Neighbours, and gaps up to the end of the window, one more than that, and wider ones.
        next += if index % 40 == 39 { GAPS[index / 40] } else { 1 };
        // Some are directed to others, among them a whole page.
        let is_directed = index % 10 == 3 || (50..53).contains(&index);
        rows.push((next, if index % 3 == 0 { second } else { first }, is_directed.then_some(alice.id)));
        if !is_directed {
            expected.push(next);
        }
    }
    direct.store_group_messages(alice.id, &rows).await;
    direct.set_counter(Counter::Group, next).await;
    for is_walked in [false, true] {
        if is_walked {
            add_memberships(&app, &bob).await;
            // The spans are sought in the order of their ends: this one by another statement than that of `second`.
            let mut table = SecondConnection::open(&app.database.url).await;
            let span = format!("user_id = {} AND group_id = {first}", bob.id);
            table.execute(&format!("UPDATE im_group_member_span SET to_id = {next} WHERE {span}")).await;
        }
        for size in [1, 2, 99, 100, 101, 1_000] {
            assert_eq!(ids_of(&bob.pull_groups(size).await), expected, "pages of {size}, windows: {is_walked}");
        }
    }
}

/// Commits two messages, one in each of two groups, before every statement of a read.
#[derive(Default)]
struct Between {
    server: OnceLock<(DbWriter, i64, [i64; 2])>,
    left: AtomicUsize,
}

impl Between {
    async fn commit(&self) {
        let is_armed = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_armed).is_err() {
            return;
        }
        let (writer, alice, groups) = self.server.get().unwrap();
        for group in groups {
            writer.send_group(group_draft(*alice, *group, "between")).await.unwrap();
        }
    }

    fn hook(self: &Arc<Self>) -> StatementHook {
        let between = self.clone();
        Arc::new(move || {
            let between = between.clone();
            async move { between.commit().await }.boxed()
        })
    }
}

async fn commits_between_the_statements_of_a_pull_lose_nothing(backend: Backend) {
    let between = Arc::new(Between::default());
    let app = TestApp::start_with(backend, Setup { read_hook: Some(between.hook()), ..Setup::default() }).await;
    let ([alice, bob], first) = app.group(["alice", "bob"]).await;
    let second = alice.create_group(&[&bob]).await;
    assert!(between.server.set((app.server.state().writer.clone(), alice.id, [first, second])).is_ok());
    for is_walked in [false, true] {
        if is_walked {
            add_memberships(&app, &bob).await;
        }
        for size in [1, 2, 7, 100] {
            let mut rows: Vec<Value> = Vec::new();
            between.left.store(25, Ordering::SeqCst);
            loop {
                let was_armed = between.left.load(Ordering::SeqCst) > 0;
                let page = bob.pull_page(rows.last().map_or(0, id_of), size).await;
                rows.extend(page.iter().cloned());
                if page.is_empty() && !was_armed {
                    break;
                }
            }
            let ids = Tables::open(&app.database.url).await.group_message_ids().await;
            assert_eq!(ids_of(&rows), ids, "pages of {size}, windows: {is_walked}");
        }
    }
}

async fn commits_at_the_end_of_a_window_of_ids_lose_nothing(backend: Backend) {
    let between = Arc::new(Between::default());
    let app = TestApp::start_with(backend, Setup { read_hook: Some(between.hook()), ..Setup::default() }).await;
    let ([alice, bob], first) = app.group(["alice", "bob"]).await;
    let second = alice.create_group(&[&bob]).await;
    add_memberships(&app, &bob).await;
    assert!(between.server.set((app.server.state().writer.clone(), alice.id, [first, second])).is_ok());
    let mut tables = Tables::open(&app.database.url).await;
    for offset in 0..16 {
        // The first window ends a few ids above the newest: at one of these offsets between the two of one commit.
        let newest = *tables.group_message_ids().await.last().unwrap();
        let after = newest + offset - WINDOW;
        between.left.store(30, Ordering::SeqCst);
        let page = ids_of(&bob.pull_page(after, 1_000).await);
        between.left.store(0, Ordering::SeqCst);
        let last = *page.last().unwrap();
        let mut ids = tables.group_message_ids().await;
        ids.retain(|id| *id > after && *id <= last);
        assert_eq!(page, ids, "offset {offset}");
    }
}

async fn messages_older_than_thirty_days_are_in_the_history_only(backend: Backend) {
    let clock = ManualClock::at(1_800_000_000_000);
    let auth = AuthConfig { access_token_ttl_s: 400 * 86_400, ..AuthConfig::default() };
    let config = Config { auth, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let mut sent = Vec::new();
    for number in 0..3 {
        sent.push(id_of(&alice.say(group, &format!("sent {number} ms later")).await));
        clock.jump(1);
    }
    clock.jump(30 * DAY - 3);
    assert_eq!(ids_of(&bob.pull_groups(100).await), sent[1..]);
    clock.jump(DAY);
    assert_eq!(bob.pull_groups(100).await, Vec::<Value>::new());
    sent.reverse();
    assert_eq!(ids_of(&bob.history(group, 100).await)[..3], sent);
}

async fn the_history_shows_recalled_messages_and_no_announcements_of_recalls(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let first = alice.say(group, "first").await;
    let second = alice.say(group, "second").await;
    let recall = data(alice.try_recall(id_of(&first)).await);
    let rows = bob.history(group, 100).await;
    let show = |row: &Value| (id_of(row), row["type"].clone(), row["status"].clone(), row["content"].clone());
    let expected = [
        (id_of(&second), json!(TEXT), json!(0), second["content"].clone()),
        (id_of(&first), json!(RECALL), json!(2), json!("{}")),
    ];
    assert_eq!(rows[..2].iter().map(show).collect::<Vec<_>>(), expected);
    // A pull shows the original without its content, and the row that announces the recall.
    let rows = bob.pull_page(id_of(&first) - 1, 100).await;
    let expected = [
        (id_of(&first), json!(TEXT), json!(2), json!("{}")),
        (id_of(&second), json!(TEXT), json!(0), second["content"].clone()),
        (id_of(&recall), json!(RECALL), json!(0), json!({"messageId": first["id"]}).to_string().into()),
    ];
    assert_eq!(rows.iter().map(show).collect::<Vec<_>>(), expected);
}
