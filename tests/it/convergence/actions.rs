//! What may happen in a run: a kind and some dice. The dice are read against what exists when the action's turn comes,
//! so that a history stays meaningful when parts of it are taken out.

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
    /// A device loses its socket, or gets one.
    Cut,
    /// A device looks at its pushes and pulls.
    Pull,
    /// The server stops, and another one starts.
    Restart,
}

/// How often each kind comes.
const WEIGHTS: [(Kind, u32); 29] = [
    (Kind::SendPrivate, 12),
    (Kind::SendGroup, 16),
    (Kind::Repeat, 4),
    (Kind::RecallPrivate, 4),
    (Kind::RecallGroup, 5),
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
    (Kind::HandleGroup, 4),
    (Kind::Mute, 4),
    (Kind::MuteAll, 3),
    (Kind::Admin, 4),
    (Kind::Transfer, 2),
    (Kind::Pin, 6),
    (Kind::Rename, 2),
    (Kind::Approval, 3),
    (Kind::Silence, 2),
    (Kind::Dissolve, 1),
    (Kind::Cut, 6),
    (Kind::Pull, 12),
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
        if rng.random_bool(0.7) {
            let apply = Action::of(Kind::ApplyFriend, rng);
            actions.push(Action { dice: [from, to, 0, 0], ..apply });
            actions.push(Action { dice: [1, 0, 0, 0], ..Action::of(Kind::HandleFriend, rng) });
        }
    }
    actions.push(Action::of(Kind::Create, rng));
    for _ in 0..length {
        let (kind, _) = WEIGHTS.choose_weighted(rng, |(_, weight)| *weight).unwrap();
        actions.push(Action::of(*kind, rng));
    }
    actions
}

/// What exists, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub users: Vec<i64>,
    /// Ids of private messages, with the two users.
    pub private: Vec<(i64, i64, i64)>,
    /// Ids of group messages, with group and sender.
    pub group_messages: Vec<(i64, i64, i64)>,
    /// Groups with their owners.
    pub groups: Vec<(i64, i64)>,
    /// Friend requests, from and to.
    pub friend_requests: Vec<(i64, i64)>,
    /// Join requests, group and user.
    pub join_requests: Vec<(i64, i64)>,
    pub sent: Vec<Draft>,
}

/// One of the latest few.
fn late<T>(list: &[T], dice: usize) -> Option<&T> {
    list.len().checked_sub(1 + dice % list.len().clamp(1, 8)).map(|index| &list[index])
}

impl Known {
    /// The verb that an action means now; `None` where there is nothing to do it with. `number` makes texts and client
    /// ids distinct.
    pub fn verb(&self, action: &Action, number: usize) -> Option<Verb> {
        let [a, b, c, d] = action.dice;
        let user = |dice: usize| self.users[dice % self.users.len()];
        let (by, on, text) = (user(a), d % 3 != 0, format!("text {number}"));
        let group = late(&self.groups, b % 2).or(self.groups.last());
        // Owners act more often than others: most of what others try is refused.
        let actor = |group: &(i64, i64)| if a % 2 == 0 { group.1 } else { user(a / 2) };
        let message_of = |group: i64, dice: usize| {
            let inside: Vec<i64> =
                self.group_messages.iter().filter(|message| message.1 == group).map(|message| message.0).collect();
            late(&inside, dice).copied()
        };
        let several = |dice: usize| {
            let mut some: Vec<i64> = (0..=dice % 3).map(|index| user(dice / 3 + index)).collect();
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
                let quote = message_of(group.0, c / 3).filter(|_| c % 3 == 0);
                let client_id = format!("client-{number}");
                let receipt = Some(d % 2 == 0);
                Verb::Send(Draft { from: by, to: group.0, is_group: true, client_id, text, quote, receipt })
            }
            Kind::Repeat => {
                let mut draft = late(&self.sent, a)?.clone();
                if b % 4 == 0 {
                    draft.text = text;
                }
                Verb::Send(draft)
            }
            Kind::RecallPrivate => {
                let message = late(&self.private, a)?;
                let by = if b % 3 == 0 { user(c) } else { message.1 };
                Verb::Recall { by, id: message.0, is_group: false }
            }
            Kind::RecallGroup => {
                let message = late(&self.group_messages, a)?;
                let owner = self.groups.iter().find(|group| group.0 == message.1).map(|group| group.1);
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
                Verb::ReadGroup { by, group, id }
            }
            Kind::ApplyFriend => Verb::ApplyFriend { by, to: user(b), text },
            Kind::HandleFriend => {
                let (from, to) = *late(&self.friend_requests, b)?;
                Verb::HandleFriend { by: if a % 8 == 0 { from } else { to }, from, to, agree: d % 4 != 3 }
            }
            Kind::Block => Verb::Block { by, friend: user(b), on },
            Kind::Unfriend => Verb::Unfriend { by, friend: user(b) },
            Kind::Create => Verb::Create { by, members: several(b), approval: d % 2 == 0 },
            Kind::Invite => Verb::Invite { by: actor(group?), group: group?.0, who: several(c) },
            Kind::Kick => Verb::Kick { by: actor(group?), group: group?.0, who: several(c) },
            Kind::Quit => Verb::Quit { by, group: group?.0 },
            Kind::ApplyGroup => Verb::ApplyGroup { by, group: group?.0, text },
            Kind::HandleGroup => {
                let (id, user) = *late(&self.join_requests, b)?;
                let group = self.groups.iter().find(|group| group.0 == id)?;
                Verb::HandleGroup { by: actor(group), group: id, user, agree: on }
            }
            Kind::Mute => {
                let seconds = [Some(10), Some(0), None][d % 3];
                Verb::Mute { by: actor(group?), group: group?.0, who: user(c), seconds }
            }
            Kind::MuteAll => Verb::MuteAll { by: actor(group?), group: group?.0, on: d % 2 == 0 },
            Kind::Admin => Verb::Admin { by: actor(group?), group: group?.0, who: user(c), on },
            Kind::Transfer => Verb::Transfer { by: actor(group?), group: group?.0, to: user(c) },
            Kind::Pin => {
                let id = message_of(group?.0, c)?;
                Verb::Pin { by: actor(group?), group: group?.0, id, on }
            }
            Kind::Rename => Verb::Rename { by: actor(group?), group: group?.0, name: format!("name {}", c % 3) },
            Kind::Approval => Verb::Approval { by: actor(group?), group: group?.0, on: d % 2 == 0 },
            Kind::Silence => Verb::Silence { by, group: group?.0, on: d % 2 == 0 },
            Kind::Dissolve => Verb::Dissolve { by: actor(group?), group: group?.0 },
            Kind::Cut | Kind::Pull | Kind::Restart => return None,
        })
    }
}
