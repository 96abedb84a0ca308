//! Whether devices, answers and tables say what the model says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::app::{Person, id_of};
use crate::support::friends::code_of;
use crate::support::stored::Tables;

use super::device::Device;
use super::model::{Message, Model, RECALL};
use super::views::{of_answers, parsed};

/// A device that has just pulled knows everything that its user may see.
pub fn check_device(device: &Device, model: &Model) {
    let (user, name) = (device.person.id, device.name());
    for (is_group, messages) in [false, true].into_iter().zip(&device.messages) {
        let expected: BTreeMap<i64, Value> = model
            .visible(user, is_group)
            .map(|message| (message.id, known_form(model, user, message, messages.rows.get(&message.id))))
            .collect();
        assert_maps(&messages.rows, &expected, &format!("messages of {name}"));
    }
    let [friends, friend_requests, join_requests, positions] =
        device.states.each_ref().map(|states| states.rows.values());
    assert_maps(&of_answers::friends(friends), &model.friends_of(user), &format!("friends of {name}"));
    let requests = of_answers::friend_requests(friend_requests);
    assert_maps(&requests, &model.friend_requests_of(user), &format!("friend requests of {name}"));
    assert_maps(&of_answers::positions(positions), &model.positions_of(user), &format!("positions of {name}"));
    assert_maps(&of_answers::groups(&device.groups), &model.groups_of(user), &format!("groups of {name}"));
    // What was handled while the user was no manager is not told, and asked for by the unhandled-list.
    let waiting = model.waiting_for(user);
    let mut known = of_answers::waiting(join_requests);
    known.retain(|key, _| waiting.contains_key(key));
    assert_maps(&known, &waiting, &format!("join requests of {name}"));
}

/// What a device may keep of a message: the text, where it had it and its user was not told of the recall.
fn known_form(model: &Model, user: i64, message: &Message, known: Option<&Value>) -> Value {
    let tells = |row: &Message| row.kind == RECALL && row.content["messageId"] == message.id;
    let form = message.stored_form();
    if message.recalled && !model.visible(user, message.is_group).any(tells) {
        let before = Message { recalled: false, ..message.clone() }.stored_form();
        return known.filter(|known| **known == before).cloned().unwrap_or(form);
    }
    form
}

/// Says which entries differ, not the whole maps.
pub fn assert_maps<K: Ord + Clone + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    found: &BTreeMap<K, V>,
    expected: &BTreeMap<K, V>,
    what: &str,
) {
    let keys: BTreeSet<&K> = found.keys().chain(expected.keys()).collect();
    for key in keys {
        assert_eq!(found.get(key), expected.get(key), "{what}: {key:?} (found, expected)");
    }
}

/// Everything else that a user can ask.
pub async fn check_user(person: &Person, model: &Model) {
    let user = person.id;
    let (total, counts) = of_answers::unread(&person.post("/im/unread", json!({})).await);
    assert_eq!((total, counts), model.unread(user), "unread of {user}");
    let waiting = person.get("/im/group-request/unhandled-list").await;
    let waiting = of_answers::waiting(waiting.as_array().unwrap());
    assert_maps(&waiting, &model.waiting_for(user), &format!("unhandled-list of {user}"));
    for peer in model.users.iter().filter(|peer| **peer != user) {
        let history = rows(&person.get(&format!("/im/message/private/list?receiverId={peer}&limit=200")).await);
        assert_rows(&history, &model.history(user, false, *peer), &format!("history of {user} with {peer}"));
        let position = person.get(&format!("/im/message/private/max-read-message-id?peerId={peer}")).await;
        let expected = model.positions.get(&(*peer, 1, user));
        assert_eq!(position, json!(expected), "how far {peer} has read {user}");
    }
    for group in model.groups.keys() {
        check_group(person, *group, model).await;
    }
    check_pulled_receipts(person, model).await;
}

async fn check_group(person: &Person, id: i64, model: &Model) {
    let (user, group) = (person.id, &model.groups[&id]);
    let shown = person.get(&format!("/im/group/get?id={id}")).await;
    assert_eq!(shown["joinStatus"], i64::from(group.member(user).is_err()), "{shown}");
    let is_member = group.member(user).is_ok();
    assert!(is_member || shown["pinnedMessages"].is_null(), "{user} is no member: {shown}");
    let answer = person.call("GET", &format!("/im/message/group/list?groupId={id}&limit=200"), None).await;
    if group.members.contains_key(&user) {
        let history = rows(&answer["data"]);
        assert_rows(&history, &model.history(user, true, id), &format!("history of {user} in {id}"));
    } else {
        assert_eq!(code_of(&answer), 1_040_500_001, "{user} was never in {id}: {answer}");
    }
    let members = person.call("GET", &format!("/im/group-member/list?groupId={id}"), None).await;
    assert_eq!(code_of(&members), if is_member { 0 } else { 1_040_500_001 }, "{user} in {id}: {members}");
    if is_member {
        let members = of_answers::members(members["data"].as_array().unwrap());
        assert_maps(&members, &model.members_of(id), &format!("members of {id}"));
    }
    let own = model.visible(user, true).filter(|row| row.target == id && row.sender == user && row.asks_receipt);
    for message in own.collect::<Vec<_>>().into_iter().rev().take(3) {
        let path = format!("/im/message/group/get-read-user-ids?groupId={id}&messageId={}", message.id);
        let answer = person.call("GET", &path, None).await;
        if !is_member {
            assert_eq!(code_of(&answer), 1_040_500_001, "{answer}");
            continue;
        }
        let readers: BTreeSet<i64> = answer["data"].as_array().unwrap().iter().filter_map(Value::as_i64).collect();
        assert_eq!(readers, model.readers(message), "who has read {}", message.id);
    }
}

/// A pull from zero shows receipts as they are now.
async fn check_pulled_receipts(person: &Person, model: &Model) {
    for (table, is_group) in [("private", false), ("group", true)] {
        let page = rows(&person.get(&format!("/im/message/{table}/pull?minId=0&size=1000")).await);
        let expected: Vec<Value> =
            model.visible(person.id, is_group).map(|message| model.pulled(message, person.id)).collect();
        assert_rows(&page, &expected, &format!("{table} pull of {} from zero", person.id));
    }
}

fn rows(answer: &Value) -> Vec<Value> {
    answer.as_array().unwrap_or_else(|| panic!("no rows: {answer}")).iter().map(parsed).collect()
}

fn assert_rows(found: &[Value], expected: &[Value], what: &str) {
    let ids = |rows: &[Value]| rows.iter().map(id_of).collect::<Vec<_>>();
    assert_eq!(ids(found), ids(expected), "{what}: ids (found, expected)");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what} (found, expected)");
    }
}

/// Rows stay as they were stored but for their status; a recalled one keeps its text for the operator.
pub async fn check_tables(tables: &mut Tables, model: &Model) {
    for rows in [&model.private, &model.group_messages] {
        let Some((first, message)) = rows.first_key_value() else { continue };
        let stored = if message.is_group {
            tables.group_messages_after(first - 1).await
        } else {
            tables.private_messages_after(first - 1).await
        };
        let found: BTreeMap<i64, (i64, Value)> =
            stored.iter().map(|row| (row.id, (row.status, parsed(&json!({"content": row.content}))))).collect();
        let show = |message: &Message| (if message.recalled { 2 } else { 0 }, json!({"content": message.content}));
        let expected = rows.iter().map(|(id, message)| (*id, show(message))).collect();
        assert_maps(&found, &expected, "a table");
    }
}
