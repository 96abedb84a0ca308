//! `POST /im/unread`: what a client would count after its pulls (`design.md` section 12; field tests E1, E2, E4, E5).

use std::collections::{BTreeMap, HashMap};

use nudge::config::{AuthConfig, Config};
use nudge::db::sequence::Counter;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, befriend, data, id_of, random_id};
use crate::support::chats::{READ, group_text};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{DirectWriter, is_long, seed};
use crate::support::friends::{pull_states, set, unfriend};
use crate::support::second_connection::SecondConnection;

on_every_database! {
    own_messages_events_and_recalled_ones_do_not_count,
    reading_on_one_device_clears_the_others_at_once_or_by_pull,
    the_counts_are_those_of_the_pulled_rows_whatever_happened,
    a_thousand_are_counted_and_more_are_more,
    more_conversations_than_one_statement_counts_are_counted,
    messages_outside_the_pull_window_do_not_count,
}

const PRIVATE: i64 = 1;
const GROUP: i64 = 2;

/// What the server counts: by conversation, and in all.
async fn unread(person: &Person) -> (BTreeMap<(i64, i64), i64>, i64) {
    let answer = person.post("/im/unread", json!({})).await;
    let mut counts = BTreeMap::new();
    for conversation in answer["conversations"].as_array().unwrap() {
        let number = |key: &str| conversation[key].as_i64().unwrap();
        assert!(number("count") > 0, "{answer}");
        assert_eq!(conversation["more"], false, "{answer}");
        let earlier = counts.insert((number("conversationType"), number("targetId")), number("count"));
        assert_eq!(earlier, None, "{answer}");
    }
    (counts, answer["total"].as_i64().unwrap())
}

fn is_from_another_user(row: &Value, me: i64) -> bool {
    let normal = [101, 102, 103, 104, 105, 107, 108, 115, 125];
    row["senderId"] != me && row["status"] != 2 && normal.contains(&row["type"].as_i64().unwrap())
}

/// What a client counts that has pulled everything.
async fn counted_from_pulls(person: &Person) -> (BTreeMap<(i64, i64), i64>, i64) {
    let mut positions = HashMap::new();
    for row in pull_states(person, "/im/conversation-read", None, 200).await {
        let number = |key: &str| row[key].as_i64().unwrap();
        positions.insert((number("conversationType"), number("targetId")), number("messageId"));
    }
    let private = person.pull_all(1_000).await;
    let groups = person.pull_groups(1_000).await;
    let keyed = private.iter().map(|row| ((PRIVATE, row["senderId"].as_i64().unwrap()), row));
    let keyed = keyed.chain(groups.iter().map(|row| ((GROUP, row["groupId"].as_i64().unwrap()), row)));
    let mut counts = BTreeMap::new();
    for (key, row) in keyed.filter(|(_, row)| is_from_another_user(row, person.id)) {
        if positions.get(&key).is_none_or(|position| *position < id_of(row)) {
            *counts.entry(key).or_default() += 1;
        }
    }
    let silent = silent_conversations(person).await;
    let total = counts.iter().filter(|(key, _)| !silent.contains(key)).map(|(_, count)| count).sum();
    (counts, total)
}

async fn silent_conversations(person: &Person) -> Vec<(i64, i64)> {
    let mut silent = Vec::new();
    for (path, key, conversation) in
        [("/im/friend/pull?limit=200", "friendUserId", PRIVATE), ("/im/group/list", "id", GROUP)]
    {
        for row in person.get(path).await.as_array().unwrap().iter().filter(|row| row["silent"] == true) {
            silent.push((conversation, row[key].as_i64().unwrap()));
        }
    }
    silent
}

async fn own_messages_events_and_recalled_ones_do_not_count(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    // Becoming friends and making a group left events.
    assert_eq!(unread(&bob).await, (BTreeMap::new(), 0));
    bob.say(group, "mine").await;
    bob.send(&alice, "mine").await;
    let recalled = alice.say(group, "oh no").await;
    data(alice.try_recall(id_of(&recalled)).await);
    assert_eq!(unread(&bob).await, (BTreeMap::new(), 0));
    alice.say(group, "one").await;
    alice.send(&bob, "two").await;
    alice.say(group, "three").await;
    let counts = BTreeMap::from([((PRIVATE, alice.id), 1), ((GROUP, group), 2)]);
    assert_eq!(unread(&bob).await, (counts.clone(), 3));
    bob.change("/im/group-member/update", json!({"groupId": group, "silent": true})).await;
    assert_eq!(unread(&bob).await, (counts, 1));
    assert_eq!(unread(&alice).await, (BTreeMap::from([((PRIVATE, bob.id), 1), ((GROUP, group), 1)]), 2));
}

async fn reading_on_one_device_clears_the_others_at_once_or_by_pull(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let (second, offline) = (bob.sign_in_again().await, bob.sign_in_again().await);
    let last = id_of(&alice.say(group, "read this").await);
    let mut sockets = [bob.connect().await, second.connect().await];
    assert_eq!(unread(&offline).await.1, 1);
    bob.read_group(group, last).await;
    for socket in &mut sockets {
        let push = socket.next_of(READ).await;
        assert_eq!((&push.payload["groupId"], &push.payload["readId"]), (&json!(group), &json!(last)));
    }
    let position = offline.get("/im/conversation-read/pull?limit=10").await[0].clone();
    assert_eq!((&position["targetId"], &position["messageId"]), (&json!(group), &json!(last)));
    for device in [&bob, &second, &offline] {
        assert_eq!(unread(device).await, (BTreeMap::new(), 0));
    }
}

/// What people do to each other and to two groups, of which person 0 is the owner.
async fn random_step(rng: &mut StdRng, people: &[Person], groups: &[i64]) {
    let (one, other) = (rng.random_range(0..people.len()), rng.random_range(1..people.len()));
    let (person, group) = (&people[one], groups[rng.random_range(0..groups.len())]);
    let peer = &people[if other == one { 0 } else { other }];
    // Much of it is refused at times: who has left cannot write, who is in cannot be invited.
    let ask = async |method: &str, path: String, body: Option<Value>| {
        let answer = person.call(method, &path, body).await;
        assert!(answer["code"].as_i64() != Some(500), "{method} {path}: {answer}");
        answer
    };
    match rng.random_range(0..12) {
        0..=2 => drop(person.try_say(group_text(group, &random_id(), "hi")).await),
        3 | 4 => drop(person.send_as(peer, &random_id(), "hi").await),
        5 => {
            let rows = person.pull_groups(1_000).await;
            if let Some(row) = rows.iter().rev().find(|row| row["senderId"] == person.id && row["type"] == 101) {
                person.try_recall(id_of(row)).await;
            }
        }
        6 => {
            let rows = person.pull_all(1_000).await;
            if let Some(row) = rows.iter().rev().find(|row| row["senderId"] == person.id && row["type"] == 101) {
                ask("DELETE", format!("/im/message/private/recall?id={}", id_of(row)), None).await;
            }
        }
        7 => {
            let rows = person.pull_groups(1_000).await;
            if !rows.is_empty() {
                let row = &rows[rng.random_range(0..rows.len())];
                person.read_group(row["groupId"].as_i64().unwrap(), id_of(row)).await;
            }
        }
        8 => {
            let newest = person.pull_all(1_000).await.last().map_or(0, id_of);
            person.read(peer, rng.random_range(0..=newest + 5)).await;
        }
        9 => drop(ask("DELETE", format!("/im/group/quit?groupId={group}"), None).await),
        10 => {
            let body = json!({"groupId": group, "memberUserIds": [peer.id]});
            let path =
                if rng.random_bool(0.7) { ("POST", "/im/group/invite") } else { ("DELETE", "/im/group/kicking") };
            people[0].call(path.0, path.1, Some(body)).await;
        }
        _ => {
            let body = json!({"groupId": group, "silent": rng.random_bool(0.5)});
            ask("PUT", "/im/group-member/update".to_owned(), Some(body)).await;
        }
    }
}

async fn the_counts_are_those_of_the_pulled_rows_whatever_happened(backend: Backend) {
    let mut rng = StdRng::seed_from_u64(seed());
    let app = TestApp::start(backend).await;
    let (people, first) = app.group(["alice", "bob", "carol", "dave"]).await;
    let second = people[0].create_group(&[&people[1], &people[2]]).await;
    befriend(&people[1], &people[2]).await;
    // A silent friend, and a former one.
    people[2].send(&people[1], "from a silent friend").await;
    set(&people[1], &people[2], json!({"silent": true})).await;
    people[3].send(&people[0], "from a friend that was").await;
    unfriend(&people[3], &people[0]).await;
    for step in 0..if is_long() { 1_000 } else { 50 } {
        random_step(&mut rng, &people, &[first, second]).await;
        for (index, person) in people.iter().enumerate() {
            assert_eq!(unread(person).await, counted_from_pulls(person).await, "person {index} after step {step}");
        }
    }
}

/// The conversation's count and whether there are more.
async fn counted(person: &Person, key: (i64, i64)) -> (i64, bool) {
    let answer = person.post("/im/unread", json!({})).await;
    let conversations = answer["conversations"].as_array().unwrap();
    let found =
        conversations.iter().find(|row| (&row["conversationType"], &row["targetId"]) == (&json!(key.0), &json!(key.1)));
    let found = found.unwrap_or_else(|| panic!("no {key:?} in {answer}"));
    (found["count"].as_i64().unwrap(), found["more"].as_bool().unwrap())
}

async fn a_thousand_are_counted_and_more_are_more(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob, carol], group) = app.group(["alice", "bob", "carol"]).await;
    let mut direct = DirectWriter::connect(&app.database.url).await;
    let mut next = id_of(&alice.say(group, "the first").await) + 1;
    let mut store = async |count: i64| {
        let rows: Vec<_> = (next..next + count).map(|id| (id, group, None)).collect();
        direct.store_group_messages(alice.id, &rows).await;
        direct.store_messages(&vec![(alice.id, bob.id); usize::try_from(count).unwrap()]).await;
        next += count;
        direct.set_counter(Counter::Group, next).await;
        next += 1;
    };
    store(999).await;
    assert_eq!(counted(&bob, (GROUP, group)).await, (1_000, false));
    assert_eq!(counted(&bob, (PRIVATE, alice.id)).await, (999, false));
    // Carol comes back: two stretches of time, of which neither alone is too much.
    alice.kick(group, &carol).await;
    alice.invite(group, &carol).await;
    let mut next = id_of(alice.pull_groups(1_000).await.last().unwrap()) + 1;
    direct.store_group_messages(alice.id, &[(next, group, None)]).await;
    next += 1;
    direct.set_counter(Counter::Group, next).await;
    direct.store_messages(&[(alice.id, bob.id); 2]).await;
    for person in [&bob, &carol] {
        assert_eq!(counted(person, (GROUP, group)).await, (1_000, true));
    }
    assert_eq!(counted(&bob, (PRIVATE, alice.id)).await, (1_000, true));
    let total = bob.post("/im/unread", json!({})).await["total"].clone();
    assert_eq!(total, 2_000);
}

async fn more_conversations_than_one_statement_counts_are_counted(backend: Backend) {
    let app = TestApp::start(backend).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    let last = id_of(&alice.say(group, "hello").await);
    let mut direct = DirectWriter::connect(&app.database.url).await;
    let groups: Vec<i64> = (1_000_000..1_000_450).collect();
    let messages: Vec<_> = groups.iter().zip(last + 1..).map(|(group, id)| (id, *group, None)).collect();
    direct.store_group_messages(alice.id, &messages).await;
    direct.set_counter(Counter::Group, last + 450).await;
    let spans: Vec<String> =
        groups.iter().map(|group| format!("({}, {group}, 0, {})", bob.id, (1_i64 << 53) - 1)).collect();
    let mut table = SecondConnection::open(&app.database.url).await;
    let columns = "im_group_member_span (user_id, group_id, from_id, to_id)";
    table.execute(&format!("INSERT INTO {columns} VALUES {}", spans.join(","))).await;
    let (counts, total) = unread(&bob).await;
    assert_eq!((counts.len(), total), (451, 451));
    assert!(counts.values().all(|count| *count == 1));
}

async fn messages_outside_the_pull_window_do_not_count(backend: Backend) {
    let clock = ManualClock::at(1_800_000_000_000);
    let auth = AuthConfig { access_token_ttl_s: 400 * 86_400, ..AuthConfig::default() };
    let config = Config { auth, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await;
    let ([alice, bob], group) = app.group(["alice", "bob"]).await;
    alice.say(group, "old").await;
    alice.send(&bob, "old").await;
    assert_eq!(unread(&bob).await.1, 2);
    clock.jump(31 * 86_400_000);
    assert_eq!(unread(&bob).await, (BTreeMap::new(), 0));
    alice.say(group, "new").await;
    alice.send(&bob, "new").await;
    assert_eq!(unread(&bob).await, counted_from_pulls(&bob).await);
    assert_eq!(unread(&bob).await.1, 2);
}
