//! What may happen in a run: a kind and some dice. The dice are read against what exists when the action's turn comes,
//! so that a history stays meaningful when parts of it are taken out.

use std::collections::BTreeSet;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::verbs::{Draft, Verb};

/// One step of a run.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub kind: Kind,
    pub dice: [usize; 4],
    /// Time that passes before it, milliseconds.
    pub pause: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    SendPrivate,
    SendGroup,
    Repeat,
    RecallPrivate,
    RecallGroup,
    ReadPrivate,
    ReadGroup,
    ApplyFriend,
    HandleFriend,
    Block,
    Unfriend,
    Create,
    Invite,
    Kick,
    Quit,
    ApplyGroup,
    HandleGroup,
    Mute,
    MuteAll,
    Admin,
    Transfer,
    Pin,
    Rename,
    Approval,
    Silence,
    Dissolve,
    /// An operator bans a group, or lifts its ban.
    Ban,
    /// An operator ends a group.
    End,
    /// A device loses its socket, or gets one.
    Cut,
    /// A device looks at its pushes and pulls.
    Pull,
    /// The server stops, and another one starts.
    Restart,
}

/// How often each kind comes.
const WEIGHTS: [(Kind, u32); 31] = [
    (Kind::SendPrivate, 12),
    (Kind::SendGroup, 16),
    (Kind::Repeat, 4),
    (Kind::RecallPrivate, 4),
    (Kind::RecallGroup, 7),
    (Kind::ReadPrivate, 8),
    (Kind::ReadGroup, 9),
    (Kind::ApplyFriend, 4),
    (Kind::HandleFriend, 4),
    (Kind::Block, 5),
    (Kind::Unfriend, 2),
    (Kind::Create, 2),
    (Kind::Invite, 6),
    (Kind::Kick, 6),
    (Kind::Quit, 4),
    (Kind::ApplyGroup, 5),
    (Kind::HandleGroup, 6),
    (Kind::Mute, 4),
    (Kind::MuteAll, 3),
    (Kind::Admin, 4),
    (Kind::Transfer, 2),
    (Kind::Pin, 8),
    (Kind::Rename, 2),
    (Kind::Approval, 3),
    (Kind::Silence, 2),
    (Kind::Dissolve, 1),
    (Kind::Ban, 4),
    (Kind::End, 1),
    (Kind::Cut, 6),
    (Kind::Pull, 14),
    (Kind::Restart, 1),
];

impl Action {
    pub fn of(kind: Kind, rng: &mut StdRng) -> Action {
        Action { kind, dice: std::array::from_fn(|_| rng.random_range(0..5_040)), pause: rng.random_range(0..9_000) }
    }
}

/// A history: some friendships and a group, then anything.
pub fn random_history(rng: &mut StdRng, users: usize, length: usize) -> Vec<Action> {
    let mut actions = Vec::new();
    for (from, to) in (0..users).flat_map(|from| (0..from).map(move |to| (from, to))) {
        if rng.random_bool(0.85) {
            let apply = Action::of(Kind::ApplyFriend, rng);
            actions.push(Action { dice: [from, to, 0, 0], ..apply });
            actions.push(Action { dice: [1, 0, 0, 0], ..Action::of(Kind::HandleFriend, rng) });
        }
    }
    let create = Action::of(Kind::Create, rng);
    actions.push(Action { dice: [0, 5, 0, 1], ..create });
    for device in 0..2 * users {
        actions.push(Action { dice: [device, 0, 0, 0], ..Action::of(Kind::Cut, rng) });
    }
    for _ in 0..length {
        let (kind, _) = WEIGHTS.choose_weighted(rng, |(_, weight)| *weight).unwrap();
        actions.push(Action::of(*kind, rng));
    }
    actions
}

/// A group, as far as one must know it to do something in it.
#[derive(Clone, Debug)]
pub struct Place {
    pub id: i64,
    pub owner: i64,
    pub members: Vec<i64>,
}

impl Place {
    /// The owner often, another member mostly, sometimes anybody.
    fn actor(&self, users: &[i64], dice: usize) -> i64 {
        if dice.is_multiple_of(3) { self.owner } else { self.member(users, dice / 3) }
    }

    fn member(&self, users: &[i64], dice: usize) -> i64 {
        let crowd = if dice % 8 == 7 || self.members.is_empty() { users } else { &self.members };
        crowd[dice / 8 % crowd.len()]
    }

    fn outsider(&self, users: &[i64], dice: usize) -> i64 {
        let outside: Vec<i64> = users.iter().copied().filter(|user| !self.members.contains(user)).collect();
        let crowd = if dice % 8 == 7 || outside.is_empty() { users } else { &outside };
        crowd[dice / 8 % crowd.len()]
    }
}

/// What exists, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub users: Vec<i64>,
    pub operator: i64,
    /// Ids of private messages, with the two users.
    pub private: Vec<(i64, i64, i64)>,
    /// Ids of group messages, with group and sender.
    pub group_messages: Vec<(i64, i64, i64)>,
    /// Those of both that users wrote.
    pub texts: BTreeSet<(bool, i64)>,
    pub groups: Vec<Place>,
    /// Friend requests, from and to.
    pub friend_requests: Vec<(i64, i64)>,
    /// Join requests, group and user.
    pub join_requests: Vec<(i64, i64)>,
    pub sent: Vec<Draft>,
}

/// One of the latest few, the latest of them most of the time.
fn late<T>(list: &[T], dice: usize) -> Option<&T> {
    let back = (dice % 8) * (dice / 8 % 8) / 8;
    list.len().checked_sub(1 + back.min(list.len().saturating_sub(1))).map(|index| &list[index])
}

impl Known {
    /// The verb that an action means now; `None` where there is nothing to do it with. `number` makes texts and client
    /// ids distinct.
    pub fn verb(&self, action: &Action, number: usize) -> Option<Verb> {
        let [a, b, c, d] = action.dice;
        let user = |dice: usize| self.users[dice % self.users.len()];
        let (by, on, text) = (user(a), d % 3 != 0, format!("text {number}"));
        let group = late(&self.groups, b);
        let actor = |group: &Place| group.actor(&self.users, a);
        let member = |group: &Place, dice: usize| group.member(&self.users, dice);
        let message_of = |group: i64, dice: usize| {
            let is_wanted = |message: &&(i64, i64, i64)| {
                message.1 == group && (dice % 8 == 7 || self.texts.contains(&(true, message.0)))
            };
            let wanted: Vec<i64> = self.group_messages.iter().filter(is_wanted).map(|message| message.0).collect();
            late(&wanted, dice).copied()
        };
        // What the server wrote cannot be recalled, which is tried less often.
        let is_text = |is_group: bool, id: i64| d % 8 == 7 || self.texts.contains(&(is_group, id));
        let several = |pick: &dyn Fn(usize) -> i64, dice: usize| {
            let mut some: Vec<i64> = (0..=dice % 3).map(|index| pick(dice / 3 + 8 * index)).collect();
            some.dedup();
            some
        };
        Some(match action.kind {
            Kind::SendPrivate => {
                let between = |message: &&(i64, i64, i64)| {
                    [(by, user(b)), (user(b), by)].contains(&(message.1, message.2)) || d % 5 == 0
                };
                let quotable: Vec<i64> = self.private.iter().filter(between).map(|message| message.0).collect();
                let quote = late(&quotable, c / 3).filter(|_| c % 3 == 0).copied();
                let receipt = [None, Some(true), Some(false)][d % 3];
                let client_id = format!("client-{number}");
                Verb::Send(Draft { from: by, to: user(b), is_group: false, client_id, text, quote, receipt })
            }
            Kind::SendGroup => {
                let group = group?;
                let by = member(group, a);
                let quote = message_of(group.id, c / 3).filter(|_| c % 3 == 0);
                let client_id = format!("client-{number}");
                let receipt = Some(d % 2 == 0);
                Verb::Send(Draft { from: by, to: group.id, is_group: true, client_id, text, quote, receipt })
            }
            Kind::Repeat => {
                let mut draft = late(&self.sent, a)?.clone();
                if b % 4 == 0 {
                    draft.text = text;
                }
                Verb::Send(draft)
            }
            Kind::RecallPrivate => {
                let texts: Vec<_> = self.private.iter().filter(|row| is_text(false, row.0)).collect();
                let message = late(&texts, a)?;
                let by = if b % 3 == 0 { user(c) } else { message.1 };
                Verb::Recall { by, id: message.0, is_group: false }
            }
            Kind::RecallGroup => {
                let texts: Vec<_> = self.group_messages.iter().filter(|row| is_text(true, row.0)).collect();
                let message = late(&texts, a)?;
                let owner = self.groups.iter().find(|group| group.id == message.1).map(|group| group.owner);
                let by = [user(c), message.2, owner?][b % 3];
                Verb::Recall { by, id: message.0, is_group: true }
            }
            Kind::ReadPrivate => {
                let message = *late(&self.private, c)?;
                // Sometimes of another conversation, or above every message.
                let peer = if d % 4 == 0 { user(b) } else { message.1 };
                let by = if d % 4 == 1 { by } else { message.2 };
                Verb::ReadPrivate { by, peer, id: message.0 + if d % 5 == 0 { 1_000 } else { 0 } }
            }
            Kind::ReadGroup => {
                let (id, group, _) = *late(&self.group_messages, c)?;
                let place = self.groups.iter().find(|place| place.id == group)?;
                Verb::ReadGroup { by: member(place, a), group, id }
            }
            Kind::ApplyFriend => Verb::ApplyFriend { by, to: user(b), text },
            Kind::HandleFriend => {
                let (from, to) = *late(&self.friend_requests, b)?;
                Verb::HandleFriend { by: if a % 8 == 0 { from } else { to }, from, to, agree: d % 4 != 3 }
            }
            Kind::Block => Verb::Block { by, friend: user(b), on },
            Kind::Unfriend => Verb::Unfriend { by, friend: user(b) },
            Kind::Create => Verb::Create { by, members: several(&user, b), approval: d % 2 == 0 },
            Kind::Invite => {
                let outsider = |dice| group.map_or(by, |group| group.outsider(&self.users, dice));
                Verb::Invite { by: actor(group?), group: group?.id, who: several(&outsider, c) }
            }
            Kind::Kick => {
                let (group, by) = (group?, actor(group?));
                let mut who = several(&|dice| member(group, dice), c);
                if d % 8 != 7 && who != [by] {
                    who.retain(|user| *user != by);
                }
                Verb::Kick { by, group: group.id, who }
            }
            Kind::Quit => Verb::Quit { by: member(group?, a), group: group?.id },
            Kind::ApplyGroup => Verb::ApplyGroup { by: group?.outsider(&self.users, a), group: group?.id, text },
            Kind::HandleGroup => {
                let (id, user) = *late(&self.join_requests, b)?;
                let group = self.groups.iter().find(|group| group.id == id)?;
                Verb::HandleGroup { by: actor(group), group: id, user, agree: on }
            }
            Kind::Mute => {
                let seconds = [Some(10), Some(0), None][d % 3];
                Verb::Mute { by: actor(group?), group: group?.id, who: member(group?, c), seconds }
            }
            Kind::MuteAll => Verb::MuteAll { by: actor(group?), group: group?.id, on: d % 2 == 0 },
            Kind::Admin => Verb::Admin { by: actor(group?), group: group?.id, who: member(group?, c), on },
            Kind::Transfer => Verb::Transfer { by: actor(group?), group: group?.id, to: member(group?, c) },
            Kind::Pin => {
                let id = message_of(group?.id, c)?;
                Verb::Pin { by: actor(group?), group: group?.id, id, on }
            }
            Kind::Rename => Verb::Rename { by: actor(group?), group: group?.id, name: format!("name {}", c % 3) },
            Kind::Approval => Verb::Approval { by: actor(group?), group: group?.id, on: d % 2 == 0 },
            Kind::Silence => Verb::Silence { by: member(group?, a), group: group?.id, on: d % 2 == 0 },
            Kind::Dissolve => Verb::Dissolve { by: actor(group?), group: group?.id },
            // Bans end more often than they begin, so that they do not stop everything.
            Kind::Ban => Verb::Ban { by: self.operator, group: group?.id, on: d % 3 == 0 },
            Kind::End => Verb::End { by: self.operator, group: group?.id },
            Kind::Cut | Kind::Pull | Kind::Restart => return None,
        })
    }
}
