//! Verbs at the same moment: no model knows their order, but the tables do. All devices of a user agree with each other
//! and with a new device that pulls from zero; what a user sees of a group follows from the events in its table.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::support::friends::code_of;
use crate::support::stored::{StoredMessage, audiences};

use super::actions::{Kind, Known, Place, random_history};
use super::check::assert_maps;
use super::device::Device;
use super::model::{RECALL, TEXT};
use super::run::{Log, World, devices_of, request_of};
use super::verbs::Verb;
use super::views::{of_answers, parsed};

/// Verbs that are sent at once.
const AT_ONCE: usize = 6;

pub async fn play(world: &mut World, seed: u64, log: &Log) {
    let mut rng = StdRng::seed_from_u64(seed);
    let users = rng.random_range(4..=6);
    let people = world.people(users).await;
    let mut devices = devices_of(&people, &mut rng);
    let before = world.tables.newest_messages().await;
    let mut sent = Vec::new();
    let history = random_history(&mut rng, users, 90);
    let beginning = history.len() - 90;
    for (index, batch) in history.chunks(1).take(beginning).chain(history[beginning..].chunks(AT_ONCE)).enumerate() {
        world.pass(batch[0].pause);
        let mut known = known(world, before, people.keys().copied().collect()).await;
        known.sent.clone_from(&sent);
        let mut verbs: Vec<Verb> = Vec::new();
        for (place, action) in batch.iter().enumerate() {
            let device = action.dice[0] % devices.len();
            match action.kind {
                Kind::Pull => pull(&mut devices[device], &mut rng).await,
                Kind::Cut => cut(&mut devices[device]).await,
                _ => verbs.extend(known.verb(action, index * AT_ONCE + place)),
            }
        }
        let mut calls = Vec::new();
        for verb in &verbs {
            calls.push(verb.call(request_of(&mut world.tables, verb).await));
        }
        let answers = calls.into_iter().map(|call| world.call(&people, call));
        for (verb, answer) in verbs.into_iter().zip(join_all(answers).await) {
            let code = code_of(&answer);
            log.borrow_mut().push(format!("{verb:?}: {code}"));
            assert!(code == 0 || code > 1_000_000_000, "{verb:?}: {answer}");
            if let Verb::Send(draft) = verb {
                sent.push(draft);
            }
        }
    }
    for device in &mut devices {
        pull(device, &mut rng).await;
    }
    let stored = world.tables.group_messages_after(before[1]).await;
    let audiences = audiences(&stored);
    for person in people.values() {
        let mut new = [Device::new(person, false, 50), Device::new(person, true, 50)];
        for device in &mut new {
            device.pull().await;
        }
        let seen: Vec<i64> = new[0].messages[1].rows.keys().copied().collect();
        let expected = audiences.iter().filter(|(_, audience)| audience.contains(&person.id));
        assert_eq!(seen, expected.map(|(id, _)| *id).collect::<Vec<_>>(), "what {} sees of groups", person.id);
        let unread = person.post("/im/unread", json!({})).await;
        assert_eq!(of_answers::unread(&unread).1, unread_on(&new[0]), "unread of {}", person.id);
        let own = devices.iter().filter(|device| device.person.id == person.id);
        for device in own.chain(&new[1..]) {
            check_agreement(device, &new[0]);
        }
    }
}

/// What exists, by the tables.
async fn known(world: &mut World, before: [i64; 2], users: Vec<i64>) -> Known {
    let private = world.tables.private_messages_after(before[0]).await;
    let group = world.tables.group_messages_after(before[1]).await;
    let mut groups: BTreeMap<i64, i64> = BTreeMap::new();
    for row in &group {
        match row.kind {
            1501 => drop(groups.insert(row.target, row.sender)),
            1507 => drop(groups.insert(row.target, content(row)["newOwnerUserId"].as_i64().unwrap())),
            _ => {}
        }
    }
    // Who saw the newest row is a member, but for the one that it removes.
    let audiences = audiences(&group);
    let members: BTreeMap<i64, &BTreeSet<i64>> = group.iter().map(|row| (row.target, &audiences[&row.id])).collect();
    let private_texts = private.iter().filter(|row| row.kind == TEXT).map(|row| (false, row.id));
    let group_texts = group.iter().filter(|row| row.kind == TEXT).map(|row| (true, row.id));
    let friend_requests = world.tables.friend_requests().await.into_iter().map(|row| (row.0, row.1));
    let join_requests = world.tables.join_requests().await.into_iter().map(|row| (row.0, row.1));
    Known {
        friend_requests: friend_requests.filter(|row| users.contains(&row.0)).collect(),
        join_requests: join_requests.filter(|row| users.contains(&row.1)).collect(),
        users,
        operator: world.operator.id,
        private: private.iter().map(|row| (row.id, row.sender, row.target)).collect(),
        group_messages: group.iter().map(|row| (row.id, row.target, row.sender)).collect(),
        texts: private_texts.chain(group_texts).collect(),
        groups: groups
            .into_iter()
            .map(|(id, owner)| Place { id, owner, members: members[&id].iter().copied().collect() })
            .collect(),
        sent: Vec::new(),
    }
}

async fn pull(device: &mut Device, rng: &mut StdRng) {
    for came in device.look_at_pushes(rng).await {
        assert!(came.is_sorted_by(|one, next| one < next), "pushed to {}: {came:?}", device.name());
    }
    device.pull().await;
}

async fn cut(device: &mut Device) {
    if device.socket.take().is_none() {
        device.socket = Some(device.person.connect().await);
    }
}

fn content(row: &StoredMessage) -> Value {
    parsed(&json!({"content": row.content}))["content"].clone()
}

/// As the web client counts after a pull.
fn unread_on(device: &Device) -> BTreeMap<(i64, i64), i64> {
    let positions = of_answers::positions(device.states[3].rows.values());
    let mut counts = BTreeMap::new();
    for (kind, target, messages) in [(1, "senderId", &device.messages[0]), (2, "groupId", &device.messages[1])] {
        for (id, row) in &messages.rows {
            let conversation = (kind, row[target].as_i64().unwrap());
            let is_new = positions.get(&conversation).is_none_or(|position| position < id);
            if is_new && row["senderId"] != device.person.id && row["type"] == TEXT && row["status"] == 0 {
                *counts.entry(conversation).or_default() += 1;
            }
        }
    }
    counts
}

fn check_agreement(device: &Device, new: &Device) {
    let name = device.name();
    for (messages, expected) in device.messages.iter().zip(&new.messages) {
        let mut expected = expected.rows.clone();
        let recalls = expected.values().filter(|row| row["type"] == RECALL);
        let told: BTreeSet<i64> = recalls.filter_map(|row| row["content"]["messageId"].as_i64()).collect();
        for (id, row) in &mut expected {
            // A device of a former member was not told of the recall, and may have the text.
            if row["status"] == 2 && !told.contains(id) {
                row.clone_from(messages.rows.get(id).unwrap_or(&Value::Null));
            }
        }
        assert_maps(&messages.rows, &expected, &format!("messages of {name}"));
    }
    for index in [0, 1, 3] {
        assert_maps(&device.states[index].rows, &new.states[index].rows, &format!("states {index} of {name}"));
    }
    let waiting = of_answers::waiting(new.states[2].rows.values());
    let mut known = of_answers::waiting(device.states[2].rows.values());
    known.retain(|key, _| waiting.contains_key(key));
    assert_maps(&known, &waiting, &format!("join requests of {name}"));
    assert_maps(&of_answers::groups(&device.groups), &of_answers::groups(&new.groups), &format!("groups of {name}"));
}
