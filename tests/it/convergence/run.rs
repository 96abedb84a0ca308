//! A server with its clock, and one run on it: actions one after another, on the server and in the model.

use std::cell::RefCell;
use std::collections::BTreeMap;

use nudge::config::{Config, GroupConfig};
use nudge::server::Server;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, SCHEMA, Setup, http_client, id_of, random_id, start_server};
use crate::support::databases::{Backend, TestDatabase};
use crate::support::friends::code_of;
use crate::support::operators::permit;
use crate::support::stored::{StoredMessage, Tables};

use super::actions::{Action, Kind, Known, Place};
use super::check::{check_device, check_tables, check_user};
use super::device::Device;
use super::model::{Group, MAX_ADMINS, MAX_MEMBERS, MAX_PINS, Message, Model, TEXT};
use super::verbs::{Call, Draft, Verb};
use super::views::parsed;

/// What has happened, for whoever must find out why it went wrong.
pub type Log = RefCell<Vec<String>>;

/// A database, a server on it that can be started anew, and a clock that a run moves.
pub struct World {
    server: Option<Server>,
    clock: ManualClock,
    time: i64,
    pub http: reqwest::Client,
    pub base: String,
    /// Bans and ends groups, and is in none.
    pub operator: Person,
    pub tables: Tables,
    // The last field: it outlives whoever is connected to it.
    database: TestDatabase,
}

impl World {
    pub async fn start(backend: Backend) -> World {
        let database = TestDatabase::create(backend, SCHEMA).await;
        let time = nudge::clock::Clock::system().now();
        let clock = ManualClock::at(time);
        let server = serve(&database, &clock).await;
        let (http, base) = (http_client(), format!("http://{}", server.address()));
        let mut operator = Person::create(&http, &base, "operator", "operator").await;
        // Runs move the clock beyond the life of an access token.
        operator.access_token.clone_from(&operator.refresh_token);
        permit(&database.url, &operator, &[]).await;
        World {
            base,
            operator,
            tables: Tables::open(&database.url).await,
            server: Some(server),
            clock,
            time,
            http,
            database,
        }
    }

    pub fn pass(&mut self, milliseconds: i64) {
        self.clock.jump(milliseconds);
        self.time += milliseconds;
    }

    /// Another server in place of this one. Every socket ends.
    pub async fn restart(&mut self) {
        self.server.take().unwrap().stop().await;
        let server = serve(&self.database, &self.clock).await;
        self.base = format!("http://{}", server.address());
        self.operator = self.operator.on(&self.base);
        self.server = Some(server);
    }

    /// Does a call, by one of the people or by the operator.
    pub async fn call(&self, people: &BTreeMap<i64, Person>, call: Call) -> Value {
        let person = if call.by == self.operator.id { &self.operator } else { &people[&call.by] };
        person.call(call.method, &call.path, call.body).await
    }

    /// Users who are new, by id.
    pub async fn people(&self, count: usize) -> BTreeMap<i64, Person> {
        let mut people = BTreeMap::new();
        for _ in 0..count {
            let person = Person::create(&self.http, &self.base, &random_id(), "somebody").await;
            people.insert(person.id, person);
        }
        people
    }
}

async fn serve(database: &TestDatabase, clock: &ManualClock) -> Server {
    let group = GroupConfig { max_member: MAX_MEMBERS, admin_max_count: MAX_ADMINS, pin_max_count: MAX_PINS };
    let config = Config { group, ..Config::default() };
    start_server(&database.url, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await
}

/// One to three devices for each, every other one with `sync`.
pub fn devices_of(people: &BTreeMap<i64, Person>, rng: &mut StdRng) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    for person in people.values() {
        for _ in 0..rng.random_range(1..=3) {
            let uses_sync = devices.len().is_multiple_of(2);
            devices.push(Device::new(person, uses_sync, rng.random_range(2..30)));
        }
    }
    devices
}

/// A device, and the newest rows of both tables when its pushes were last looked at.
struct Watched {
    device: Device,
    looked_at: [i64; 2],
}

pub struct Run<'a> {
    world: &'a mut World,
    rng: StdRng,
    model: Model,
    people: BTreeMap<i64, Person>,
    devices: Vec<Watched>,
    sent: Vec<Draft>,
    log: &'a Log,
}

impl<'a> Run<'a> {
    /// Plays a history and checks what has become of it.
    pub async fn play(world: &'a mut World, seed: u64, users: usize, history: &[Action], log: &'a Log) {
        let mut rng = StdRng::seed_from_u64(seed);
        let people = world.people(users).await;
        let devices = devices_of(&people, &mut rng);
        let devices = devices.into_iter().map(|device| Watched { device, looked_at: [0; 2] }).collect();
        let model = Model { users: people.keys().copied().collect(), ..Model::default() };
        let before = world.tables.newest_messages().await;
        let mut run = Run { world, rng, model, people, devices, sent: Vec::new(), log };
        for (number, action) in history.iter().enumerate() {
            run.world.pass(action.pause);
            run.act(number, action, before).await;
        }
        run.finish().await;
    }

    fn log(&self, line: String) {
        self.log.borrow_mut().push(line);
    }

    async fn act(&mut self, number: usize, action: &Action, before: [i64; 2]) {
        let count = self.devices.len();
        let device = action.dice[0] % count;
        match action.kind {
            Kind::Cut => self.cut(device).await,
            Kind::Pull => {
                self.log(format!("{} pulls", self.devices[device].device.name()));
                self.look_at_pushes(device).await;
                self.devices[device].device.pull().await;
            }
            Kind::Restart => {
                self.log("the server is started anew".to_owned());
                self.devices.iter_mut().for_each(|watched| watched.device.socket = None);
                self.world.restart().await;
                let base = self.world.base.clone();
                self.people.values_mut().for_each(|person| *person = person.on(&base));
                self.devices.iter_mut().for_each(|watched| watched.device.person = watched.device.person.on(&base));
            }
            _ => {
                if let Some(verb) = self.known().verb(action, number) {
                    self.verb(&verb, before).await;
                }
            }
        }
    }

    /// Ends a device's socket, or gives it one.
    async fn cut(&mut self, index: usize) {
        let newest = self.newest([0, 0]);
        let watched = &mut self.devices[index];
        let name = watched.device.name();
        if watched.device.socket.take().is_none() {
            watched.device.socket = Some(watched.device.person.connect().await);
            watched.looked_at = newest;
            self.log(format!("{name} connects"));
        } else {
            self.log(format!("{name} is cut off"));
        }
    }

    /// A socket that was never cut has been given every row that its user may see, in order, and no other.
    async fn look_at_pushes(&mut self, index: usize) {
        let newest = self.newest([0, 0]);
        let watched = &mut self.devices[index];
        let is_connected = watched.device.socket.is_some();
        let came = watched.device.look_at_pushes(&mut self.rng).await;
        if !is_connected {
            return;
        }
        for (stream, came) in came.iter().enumerate() {
            let is_due = |message: &&Message| message.id > watched.looked_at[stream] && message.id <= newest[stream];
            let due = self.model.visible(watched.device.person.id, stream == 1).filter(is_due);
            let due: Vec<i64> = due.map(|message| message.id).collect();
            assert_eq!(*came, due, "pushed to {} (found, expected)", watched.device.name());
        }
        watched.looked_at = newest;
    }

    fn newest(&self, before: [i64; 2]) -> [i64; 2] {
        let newest = |rows: &BTreeMap<i64, Message>, before| rows.last_key_value().map_or(before, |(id, _)| *id);
        [newest(&self.model.private, before[0]), newest(&self.model.group_messages, before[1])]
    }

    fn known(&self) -> Known {
        let row = |row: &Message| match row.is_group {
            true => (row.id, row.target, row.sender),
            false => (row.id, row.sender, row.target),
        };
        let rows = self.model.private.values().chain(self.model.group_messages.values());
        let texts = rows.filter(|row| row.kind == TEXT);
        Known {
            users: self.model.users.clone(),
            operator: self.world.operator.id,
            private: self.model.private.values().map(row).collect(),
            group_messages: self.model.group_messages.values().map(row).collect(),
            texts: texts.map(|row| (row.is_group, row.id)).collect(),
            groups: self.model.groups.iter().map(|(id, group)| place(*id, group)).collect(),
            friend_requests: self.model.friend_requests.keys().copied().collect(),
            join_requests: self.model.join_requests.keys().copied().collect(),
            sent: self.sent.clone(),
        }
    }

    /// Does a verb, on the server and in the model; the rows that it stored are the expected ones.
    async fn verb(&mut self, verb: &Verb, before: [i64; 2]) {
        let request = request_of(&mut self.world.tables, verb).await;
        let call = verb.call(request);
        let answer = self.world.call(&self.people, call).await;
        self.log(format!("{verb:?}: {}", answer["code"]));
        let expected = self.model.apply(verb, self.world.time, &answer["data"]);
        assert_eq!(code_of(&answer), expected.as_ref().err().copied().unwrap_or(0), "{verb:?}: {answer}");
        let [private, group] = self.newest(before);
        let mut stored = self.world.tables.private_messages_after(private).await;
        stored.extend(self.world.tables.group_messages_after(group).await);
        let expected = expected.unwrap_or_default();
        assert_eq!(stored.len(), expected.len(), "{verb:?} stored {stored:?}, expected {expected:?}");
        for (stored, expected) in stored.into_iter().zip(expected) {
            self.model.store(as_expected(stored, expected));
        }
        if let Verb::Send(draft) = verb
            && code_of(&answer) == 0
        {
            self.sent.push(draft.clone());
            self.check_sent(draft, &answer["data"]);
        }
    }

    /// The answer to a send, or to its repeat, is the stored row as it is now.
    fn check_sent(&self, draft: &Draft, data: &Value) {
        let rows = if draft.is_group { &self.model.group_messages } else { &self.model.private };
        let is_it = |row: &&Message| row.sender == draft.from && row.client_id.as_ref() == Some(&draft.client_id);
        let message = rows.values().find(is_it).unwrap();
        let (mut found, mut expected) = (parsed(data), self.model.pulled(message, draft.from));
        if draft.is_group {
            expected["receiverUserIds"] = json!(message.audience);
            // Null in the answer to the first send.
            found["readCount"] = Value::Null;
            expected["readCount"] = Value::Null;
        }
        assert_eq!(found, expected, "the answer to {draft:?} (found, expected)");
        assert_eq!(id_of(data), message.id);
    }

    async fn finish(&mut self) {
        self.log("every device pulls".to_owned());
        for index in 0..self.devices.len() {
            self.look_at_pushes(index).await;
            self.devices[index].device.pull().await;
            check_device(&self.devices[index].device, &self.model);
        }
        for person in self.people.values() {
            check_user(person, &self.model).await;
        }
        check_tables(&mut self.world.tables, &self.model).await;
    }
}

fn place(id: i64, group: &Group) -> Place {
    Place { id, owner: group.owner, members: group.active().into_iter().collect() }
}

/// The id of the request that a verb handles.
pub async fn request_of(tables: &mut Tables, verb: &Verb) -> Option<i64> {
    let (requests, key) = match verb {
        Verb::HandleFriend { from, to, .. } => (tables.friend_requests().await, (*from, *to)),
        Verb::HandleGroup { group, user, .. } => (tables.join_requests().await, (*group, *user)),
        _ => return None,
    };
    requests.into_iter().find(|row| (row.0, row.1) == key).map(|row| row.2)
}

/// The row of the table, if it is the one that was expected.
fn as_expected(stored: StoredMessage, expected: Message) -> Message {
    let client_id = expected.client_id.clone().unwrap_or_else(|| stored.client_message_id.clone());
    let message = Message { id: stored.id, send_time: stored.send_time, client_id: Some(client_id), ..expected };
    let found =
        (stored.sender, stored.target, stored.kind, stored.status, stored.asks_receipt, &stored.client_message_id);
    let row = &message;
    let wanted = (row.sender, row.target, row.kind, 0, row.asks_receipt, row.client_id.as_ref().unwrap());
    assert_eq!(found, wanted, "stored and expected row");
    assert_eq!(parsed(&json!({"content": stored.content}))["content"], row.content, "stored and expected content");
    message
}
