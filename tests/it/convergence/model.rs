//! What the product is, in plain collections: every rule of the contract as one would write it down, with the receivers
//! of a group message listed when it is sent, as the reference stores them. It knows nothing of how the server works.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::verbs::{Draft, Verb};

/// Limits that the server of the test is configured with: small, so that runs meet them.
pub const MAX_MEMBERS: usize = 4;
pub const MAX_ADMINS: usize = 1;
pub const MAX_PINS: usize = 2;
const RECALL_LIMIT: i64 = 5 * 60_000;
pub const FOR_EVER: i64 = 253_402_214_400_000;

pub const TEXT: i64 = 101;
pub const RECALL: i64 = 2101;

pub const OWNER: i64 = 1;
pub const ADMIN: i64 = 2;
pub const NORMAL: i64 = 3;

/// A row of a message table.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: i64,
    pub is_group: bool,
    pub sender: i64,
    /// The peer, or the group.
    pub target: i64,
    pub kind: i64,
    pub content: Value,
    pub recalled: bool,
    pub asks_receipt: bool,
    /// Everybody who may see it, for ever.
    pub audience: BTreeSet<i64>,
    /// `None` where the server makes one up.
    pub client_id: Option<String>,
    pub send_time: i64,
}

#[derive(Clone, Debug)]
pub struct Friend {
    pub active: bool,
    pub blocked: bool,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub text: Option<String>,
    pub result: i64,
    pub inviter: Option<i64>,
    pub handler: Option<i64>,
    pub source: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Member {
    pub active: bool,
    pub role: i64,
    pub mute_end: Option<i64>,
    pub silent: bool,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub owner: i64,
    pub name: String,
    pub approval: bool,
    pub muted: bool,
    pub banned: bool,
    pub dissolved: bool,
    pub members: BTreeMap<i64, Member>,
    pub pins: Vec<i64>,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub users: Vec<i64>,
    pub private: BTreeMap<i64, Message>,
    pub group_messages: BTreeMap<i64, Message>,
    /// By owner and friend.
    pub friends: BTreeMap<(i64, i64), Friend>,
    /// By applicant and receiver.
    pub friend_requests: BTreeMap<(i64, i64), Request>,
    pub groups: BTreeMap<i64, Group>,
    /// By group and user.
    pub join_requests: BTreeMap<(i64, i64), Request>,
    /// By user, conversation type and target.
    pub positions: BTreeMap<(i64, i64, i64), i64>,
    /// By sender, table and client id.
    pub sent: BTreeMap<(i64, bool, String), Draft>,
}

/// The rows that a verb stores, or the code of its refusal.
pub type Outcome = Result<Vec<Message>, i64>;

impl Group {
    pub fn active(&self) -> BTreeSet<i64> {
        self.members.iter().filter(|(_, member)| member.active).map(|(user, _)| *user).collect()
    }

    pub fn member(&self, user: i64) -> Result<&Member, i64> {
        self.members.get(&user).filter(|member| member.active).ok_or(1_040_500_001)
    }

    /// Neither banned nor dissolved.
    pub fn open(&self) -> Result<(), i64> {
        if self.banned { Err(1_040_400_001) } else { self.exists() }
    }

    /// A ban does not stop everything.
    pub fn exists(&self) -> Result<(), i64> {
        if self.dissolved { Err(1_040_400_002) } else { Ok(()) }
    }

    pub fn manager(&self, user: i64) -> Result<&Member, i64> {
        let member = self.member(user)?;
        if member.role == NORMAL { Err(1_040_400_004) } else { Ok(member) }
    }

    pub fn owned_by(&self, user: i64) -> Result<(), i64> {
        if self.owner == user { Ok(()) } else { Err(1_040_400_003) }
    }

    pub fn join(&mut self, user: i64, role: i64) {
        let silent = self.members.get(&user).is_some_and(|member| member.silent);
        self.members.insert(user, Member { active: true, role, mute_end: None, silent });
    }

    pub fn leave(&mut self, user: i64) {
        self.members.get_mut(&user).unwrap().active = false;
    }
}

impl Model {
    /// Does a verb. `data` is the server's answer, which tells the ids of new things.
    pub fn apply(&mut self, verb: &Verb, now: i64, data: &Value) -> Outcome {
        match verb {
            Verb::Send(draft) => self.send(draft, now),
            Verb::Recall { by, id, is_group: false } => self.recall_private(*by, *id, now),
            Verb::Recall { by, id, is_group: true } => self.recall_group(*by, *id, now),
            Verb::ReadPrivate { by, peer, id } => self.read_private(*by, *peer, *id),
            Verb::ReadGroup { by, group, id } => self.read_group(*by, *group, *id),
            Verb::ApplyFriend { by, to, text } => self.apply_friend(*by, *to, text),
            Verb::HandleFriend { by, from, to, agree } => self.handle_friend(*by, (*from, *to), *agree),
            Verb::Block { by, friend, on } => self.block(*by, *friend, *on),
            Verb::Unfriend { by, friend } => {
                if let Some(row) = self.friends.get_mut(&(*by, *friend)) {
                    row.active = false;
                }
                Ok(Vec::new())
            }
            Verb::Create { by, members, approval } => self.create(*by, members, *approval, data["id"].as_i64()),
            _ => self.apply_in_group(verb, now),
        }
    }

    /// Takes in a row of the table under its id, which must be the one that was expected.
    pub fn store(&mut self, message: Message) {
        let rows = if message.is_group { &mut self.group_messages } else { &mut self.private };
        assert!(rows.last_key_value().is_none_or(|(last, _)| *last < message.id), "{message:?} is not the newest");
        rows.insert(message.id, message);
    }

    pub fn sees(&self, user: i64, group: i64, id: i64) -> Option<&Message> {
        let message = self.group_messages.get(&id)?;
        (message.target == group && message.audience.contains(&user)).then_some(message)
    }

    pub fn is_friend(&self, user: i64, of: i64) -> bool {
        self.friends.get(&(user, of)).is_some_and(|row| row.active)
    }

    fn send(&mut self, draft: &Draft, now: i64) -> Outcome {
        let key = (draft.from, draft.is_group, draft.client_id.clone());
        if let Some(first) = self.sent.get(&key) {
            let is_same = (first.to, &first.text, first.quote) == (draft.to, &draft.text, draft.quote);
            return if is_same { Ok(Vec::new()) } else { Err(1_040_300_014) };
        }
        let audience = if draft.is_group {
            self.check_group_send(draft, now)?;
            self.groups[&draft.to].active()
        } else {
            let blocked = self.friends.get(&(draft.to, draft.from)).is_some_and(|row| row.blocked);
            if !self.is_friend(draft.from, draft.to) || !self.is_friend(draft.to, draft.from) {
                return Err(1_040_600_001);
            }
            if blocked {
                return Err(1_040_600_004);
            }
            BTreeSet::from([draft.from, draft.to])
        };
        let mut content = json!({"content": draft.text});
        if let Some(id) = draft.quote {
            let original = if draft.is_group {
                self.sees(draft.from, draft.to, id)
            } else {
                self.private.get(&id).filter(|message| message.audience == audience)
            };
            let original = original.filter(|message| !message.recalled).ok_or(1_040_300_008)?;
            let mut quoted = original.content.clone();
            quoted.as_object_mut().unwrap().remove("quote");
            content["quote"] =
                json!({"messageId": id, "senderId": original.sender, "type": original.kind, "content": quoted});
        }
        self.sent.insert(key, draft.clone());
        let asks_receipt = draft.receipt.unwrap_or(!draft.is_group);
        let client_id = Some(draft.client_id.clone());
        let row = new_row(draft.is_group, draft.from, draft.to, TEXT, content, audience);
        Ok(vec![Message { asks_receipt, client_id, ..row }])
    }

    fn check_group_send(&self, draft: &Draft, now: i64) -> Result<(), i64> {
        let group = &self.groups[&draft.to];
        group.open()?;
        let member = group.member(draft.from)?;
        if group.muted && member.role == NORMAL {
            return Err(1_040_500_012);
        }
        if member.mute_end.is_some_and(|end| end > now) { Err(1_040_500_013) } else { Ok(()) }
    }

    fn recall_private(&mut self, by: i64, id: i64, now: i64) -> Outcome {
        let message = self.private.get_mut(&id).filter(|message| message.audience.contains(&by));
        let message = message.ok_or(1_040_300_000)?;
        if message.sender != by || message.kind != TEXT {
            return Err(1_040_300_002);
        }
        check_recall_time(message, now)?;
        message.recalled = true;
        let audience = message.audience.clone();
        Ok(vec![new_row(false, by, message.target, RECALL, json!({"messageId": id}), audience)])
    }

    fn recall_group(&mut self, by: i64, id: i64, now: i64) -> Outcome {
        let message = self.group_messages.get_mut(&id).filter(|message| message.audience.contains(&by));
        let message = message.ok_or(1_040_300_000)?;
        let group = &self.groups[&message.target];
        let role = group.member(by)?.role;
        if (message.sender != by && role == NORMAL) || message.kind != TEXT {
            return Err(1_040_300_002);
        }
        // Managers recall what others wrote at any time.
        check_recall_time(message, if message.sender == by { now } else { message.send_time })?;
        message.recalled = true;
        Ok(vec![new_row(true, by, message.target, RECALL, json!({"messageId": id}), group.active())])
    }

    fn read_private(&mut self, by: i64, peer: i64, id: i64) -> Outcome {
        let pair = BTreeSet::from([by, peer]);
        let newest = self.private.values().rev().find(|message| message.audience == pair).map(|message| message.id);
        if let Some(newest) = newest {
            self.raise((by, 1, peer), id.min(newest));
        }
        Ok(Vec::new())
    }

    fn read_group(&mut self, by: i64, group: i64, id: i64) -> Outcome {
        self.sees(by, group, id).ok_or(1_040_300_009)?;
        self.raise((by, 2, group), id);
        Ok(Vec::new())
    }

    fn raise(&mut self, key: (i64, i64, i64), id: i64) {
        let position = self.positions.entry(key).or_insert(id);
        *position = id.max(*position);
    }

    fn apply_friend(&mut self, by: i64, to: i64, text: &str) -> Outcome {
        if by == to {
            return Err(1_040_600_002);
        }
        let (mine, theirs) = (self.is_friend(by, to), self.is_friend(to, by));
        let blocked = theirs && self.friends[&(to, by)].blocked;
        if mine && theirs && !blocked {
            return Err(1_040_610_005);
        }
        if blocked {
            return Err(1_040_610_006);
        }
        if theirs {
            self.friends.insert((by, to), Friend { active: true, blocked: false });
            return Ok(Vec::new());
        }
        let request = Request { text: Some(text.to_owned()), result: 0, inviter: None, handler: None, source: None };
        self.friend_requests.insert((by, to), request);
        Ok(Vec::new())
    }

    fn handle_friend(&mut self, by: i64, pair: (i64, i64), agree: bool) -> Outcome {
        let request = self.friend_requests.get_mut(&pair).unwrap();
        if by != pair.1 {
            return Err(1_040_610_003);
        }
        if request.result != 0 {
            return Err(1_040_610_002);
        }
        request.result = if agree { 1 } else { 2 };
        if !agree {
            return Ok(Vec::new());
        }
        for key in [pair, (pair.1, pair.0)] {
            let row = self.friends.entry(key).or_insert(Friend { active: false, blocked: false });
            if !row.active {
                *row = Friend { active: true, blocked: false };
            }
        }
        let content = json!({"operatorUserId": pair.0, "friendUserId": pair.1});
        Ok(vec![new_row(false, pair.0, pair.1, 1204, content, BTreeSet::from([pair.0, pair.1]))])
    }

    fn block(&mut self, by: i64, friend: i64, on: bool) -> Outcome {
        let row = self.friends.get_mut(&(by, friend)).filter(|row| row.active).ok_or(1_040_600_001)?;
        if !on && !row.blocked {
            return Err(1_040_600_003);
        }
        row.blocked = on;
        Ok(Vec::new())
    }

    fn create(&mut self, by: i64, members: &[i64], approval: bool, id: Option<i64>) -> Outcome {
        let mut invited: BTreeSet<i64> = members.iter().copied().collect();
        invited.remove(&by);
        self.check_invited(by, &invited, 1)?;
        let mut group = Group {
            owner: by,
            name: "new".to_owned(),
            approval,
            muted: false,
            banned: false,
            dissolved: false,
            members: BTreeMap::new(),
            pins: Vec::new(),
        };
        group.join(by, OWNER);
        invited.iter().for_each(|user| group.join(*user, NORMAL));
        let everybody = group.active();
        let id = id.expect("no id of the new group");
        self.groups.insert(id, group);
        let content = json!({"operatorUserId": by, "memberUserIds": everybody});
        Ok(vec![new_row(true, by, id, 1501, content, everybody)])
    }

    /// Everybody is a friend on the inviter's own side, and there is room.
    pub(super) fn check_invited(&self, by: i64, invited: &BTreeSet<i64>, present: usize) -> Result<(), i64> {
        if invited.iter().any(|user| !self.is_friend(by, *user)) {
            return Err(1_040_500_006);
        }
        if present + invited.len() > MAX_MEMBERS { Err(1_040_500_005) } else { Ok(()) }
    }
}

fn check_recall_time(message: &Message, now: i64) -> Result<(), i64> {
    if message.recalled {
        return Err(1_040_300_003);
    }
    if message.send_time + RECALL_LIMIT < now { Err(1_040_300_007) } else { Ok(()) }
}

pub(super) fn new_row(
    is_group: bool,
    sender: i64,
    target: i64,
    kind: i64,
    content: Value,
    audience: BTreeSet<i64>,
) -> Message {
    let (id, recalled, asks_receipt, client_id, send_time) = (0, false, false, None, 0);
    Message { id, is_group, sender, target, kind, content, recalled, asks_receipt, audience, client_id, send_time }
}
