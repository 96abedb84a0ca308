//! What people do in a chaos run: send, read, recall, come and go. Each call is repeated until it is answered, a send
//! under its first client id.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use nudge::client::{ClientError, Device, GroupDraft, PrivateDraft};
use nudge::domain::ids::{GroupId, MessageId, UserId};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::app::Person;
use crate::support::direct::random_pause;

use super::ledger::{Recent, Sent, SharedLedger};

/// Longest pause between two calls of one hand, milliseconds.
const PAUSE_MS: u64 = 40;
/// Pause before a call is repeated.
const AGAIN: Duration = Duration::from_millis(50);
/// The message was recalled before, by a call whose answer was lost.
const RECALLED_BEFORE: i64 = 1_040_300_003;

/// One of several things that a person does at the same time on one device.
pub struct Hand {
    /// No other hand of the run has it.
    pub number: usize,
    pub device: Device,
    pub person: Person,
    /// Whom it writes to.
    pub friends: Vec<i64>,
    /// Where the person is a member all the time.
    pub groups: Vec<i64>,
    /// Where everybody is a member all the time, so that everybody is told of a recall.
    pub recalls_in: i64,
    pub ledger: SharedLedger,
    pub rng: StdRng,
}

impl Hand {
    /// Does one thing after another until it is told to stop; what it has begun it brings to its end.
    pub async fn work(mut self, stop: Rc<Cell<bool>>) {
        let mut number = 0;
        let mut own = Vec::new();
        while !stop.get() {
            number += 1;
            match self.rng.random_range(0..20) {
                0..=8 => own.extend(self.send_private(number).await),
                9..=14 => own.extend(self.send_group(number).await),
                15..=18 => self.read().await,
                _ => self.recall(&mut own).await,
            }
            sleep(random_pause(&mut self.rng, PAUSE_MS)).await;
        }
    }

    async fn send_private(&mut self, number: usize) -> Option<Recent> {
        let friend = self.friends.iter().copied().choose(&mut self.rng)?;
        let client_id = self.note(number, false, friend);
        let draft = PrivateDraft::text(UserId(friend), &client_id);
        let draft = PrivateDraft { client_message_id: client_id.clone(), ..draft };
        let row = self.until_answered(|| self.device.send(&draft)).await.unwrap();
        Some(self.acknowledge(&client_id, row.id, false, friend))
    }

    async fn send_group(&mut self, number: usize) -> Option<Recent> {
        let group = self.groups.iter().copied().choose(&mut self.rng)?;
        let client_id = self.note(number, true, group);
        let draft = GroupDraft::text(GroupId(group), &client_id);
        let draft = GroupDraft { client_message_id: client_id.clone(), ..draft };
        let row = self.until_answered(|| self.device.send_group(&draft)).await.unwrap();
        Some(self.acknowledge(&client_id, row.id, true, group))
    }

    /// The client id of a message, which is its text too.
    fn note(&self, number: usize, is_group: bool, target: i64) -> String {
        let client_id = format!("{}-{number}", self.number);
        let sent = Sent { hand: self.number, number, is_group, target, id: None };
        self.ledger.borrow_mut().sent.insert((self.person.id, client_id.clone()), sent);
        client_id
    }

    fn acknowledge(&self, client_id: &str, id: MessageId, is_group: bool, target: i64) -> Recent {
        self.ledger.borrow_mut().acknowledge(self.person.id, client_id, id.0);
        Recent { is_group, id: id.0, sender: self.person.id, target }
    }

    async fn read(&mut self) {
        let me = self.person.id;
        let is_for_me = |row: &Recent| match row.is_group {
            true => self.groups.contains(&row.target),
            false => row.target == me,
        };
        let found = self.ledger.borrow().recent.iter().filter(|row| is_for_me(row)).choose(&mut self.rng).copied();
        let Some(row) = found else { return };
        let (kind, target) = if row.is_group { (2, row.target) } else { (1, row.sender) };
        self.ledger.borrow_mut().report((me, kind, target), row.id);
        let message = MessageId(row.id);
        let report = async || match row.is_group {
            true => self.device.read_group(GroupId(target), message).await,
            false => self.device.read(UserId(target), message).await,
        };
        self.until_answered(report).await.unwrap();
        self.ledger.borrow_mut().acknowledged += 1;
    }

    async fn recall(&mut self, own: &mut Vec<Recent>) {
        own.retain(|row| !row.is_group || row.target == self.recalls_in);
        let Some(index) = (0..own.len()).choose(&mut self.rng) else { return };
        let row = own.swap_remove(index);
        let code = if row.is_group {
            let path = format!("/im/message/group/recall?id={}", row.id);
            ask(&self.person, &self.ledger, "DELETE", &path, None).await
        } else {
            match self.until_answered(|| self.device.recall(MessageId(row.id))).await {
                Ok(_) => 0,
                Err(error) => error.code().unwrap(),
            }
        };
        let mut ledger = self.ledger.borrow_mut();
        // Any other refusal is that of a message that is too old by now.
        if code == 0 || code == RECALLED_BEFORE {
            ledger.recalled[usize::from(row.is_group)].insert(row.id);
        }
        ledger.acknowledged += 1;
    }

    /// The answer to a call: a success, or a refusal by a rule.
    async fn until_answered<T>(&self, call: impl AsyncFn() -> Result<T, ClientError>) -> Result<T, ClientError> {
        loop {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_temporary() || matches!(error, ClientError::Deadline { .. }) => {}
                Err(error) if error.code().is_some_and(is_rule) => return Err(error),
                Err(error) => panic!("hand {}: {error}", self.number),
            }
            self.ledger.borrow_mut().failures += 1;
            sleep(AGAIN).await;
        }
    }
}

/// Refusals by a rule, where smaller codes say that something else went wrong.
fn is_rule(code: i64) -> bool {
    code > 1_000_000_000
}

/// Calls until there is an answer that is a success or a refusal by a rule; its code.
async fn ask(person: &Person, ledger: &SharedLedger, method: &str, path: &str, body: Option<Value>) -> i64 {
    loop {
        if let Ok(answer) = person.try_call(method, path, body.clone()).await {
            match answer["code"].as_i64().unwrap() {
                code if code == 0 || is_rule(code) => return code,
                429 | 500 | 503 => {}
                _ => panic!("{method} {path}: {answer}"),
            }
        }
        ledger.borrow_mut().failures += 1;
        sleep(AGAIN).await;
    }
}

/// Takes somebody out of a group and back in, again and again; at the end he is in it.
pub async fn come_and_go(owner: Person, group: i64, guest: i64, ledger: SharedLedger, stop: Rc<Cell<bool>>) {
    let body = json!({"groupId": group, "memberUserIds": [guest]});
    loop {
        ask(&owner, &ledger, "DELETE", "/im/group/kicking", Some(body.clone())).await;
        sleep(Duration::from_millis(PAUSE_MS)).await;
        ask(&owner, &ledger, "POST", "/im/group/invite", Some(body.clone())).await;
        ledger.borrow_mut().acknowledged += 2;
        if stop.get() {
            return;
        }
        sleep(Duration::from_millis(10 * PAUSE_MS)).await;
    }
}
