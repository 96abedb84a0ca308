//! The world of a chaos run: servers on a database, and people who know each other, with two devices each.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use actix_web::rt::task::JoinHandle;
use nudge::client::{Backoff, Device, DeviceConfig, Endpoint, Tokens};
use nudge::config::Config;
use nudge::domain::ids::UserId;
use nudge::server::Server;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;
use url::Url;

use crate::support::app::{API_KEY, ManualClock, Person, SCHEMA, Setup, befriend, http_client, start_server};
use crate::support::database_server::DatabaseServer;
use crate::support::databases::{Backend, TestDatabase};
use crate::support::process::ServerProcess;
use crate::support::second_connection::SecondConnection;
use crate::support::stored::Tables;
use crate::support::waiting::eventually_within;

use super::ears::Ear;
use super::hands::{Hand, come_and_go};
use super::ledger::SharedLedger;
use super::network::Network;

/// How long anything in a chaos run may take to come right again.
pub const PATIENCE: Duration = Duration::from_secs(120);

const PEOPLE: usize = 5;
const DEVICES_OF_A_PERSON: usize = 2;
/// Things that a person does at the same time on one device.
const HANDS_OF_A_DEVICE: usize = 3;
/// People who also have a socket of a foreign implementation.
const FOREIGN_SOCKETS: usize = 3;

/// Both sides notice within about a second that the other is gone. What waits for the database is answered soon.
const SETTINGS: [(&str, &str); 5] = [
    ("NUDGE_API_KEY", API_KEY),
    ("NUDGE_WORKERS", "1"),
    ("NUDGE_WEBSOCKET__PING_INTERVAL_MS", "400"),
    ("NUDGE_WRITER__DEADLINE_MS", "4000"),
    ("NUDGE_DATABASE__READ_DEADLINE_MS", "4000"),
];

/// What a fault needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// A server process.
    Process,
    /// Two of them on one database.
    TwoProcesses,
    /// One whose files can be limited.
    FileLimits,
    /// One behind a network that can be disturbed.
    Network,
    /// One on a database server of its own.
    DatabaseServer,
    /// A server in the test, with a clock that can be moved.
    Clock,
}

pub struct World {
    pub servers: Vec<ServerProcess>,
    pub clock: Option<ManualClock>,
    pub network: Option<Network>,
    _inside: Option<Server>,
    pub url: String,
    pub folder: TempDir,
    /// Where people reach the servers.
    pub bases: Vec<String>,
    /// Nobody and nothing of the clients is left when it is gone.
    pub clients: Clients,
    pub ledger: SharedLedger,
    stop: Rc<Cell<bool>>,
    working: Vec<JoinHandle<()>>,
    /// Descriptors of the first server before anybody had connected.
    pub descriptors: usize,
    /// Of a run that disturbs it.
    pub database_server: Option<DatabaseServer>,
    // The last field: it outlives whoever is connected to it.
    _database: Option<TestDatabase>,
}

/// Everybody outside of the servers.
#[derive(Default)]
pub struct Clients {
    pub people: Vec<Person>,
    pub devices: Vec<Device>,
    pub ears: Vec<Ear>,
    /// One that the last person leaves and joins again and again, and one that nobody leaves.
    pub groups: [i64; 2],
}

impl World {
    pub async fn start(backend: Backend, needs: Needs) -> World {
        let (mut database, mut database_server) = (None, None);
        let url = if needs == Needs::DatabaseServer {
            let server = database_server.insert(DatabaseServer::start(backend).await);
            SecondConnection::open(&server.url).await.execute("CREATE DATABASE nudge_chaos").await;
            let mut url = Url::parse(&server.url).unwrap();
            url.set_path("nudge_chaos");
            url.to_string()
        } else {
            database.insert(TestDatabase::create(backend, SCHEMA).await).url.clone()
        };
        let folder = TempDir::new().unwrap();
        let mut world = World {
            servers: Vec::new(),
            clock: None,
            network: None,
            _inside: None,
            bases: Vec::new(),
            url,
            folder,
            clients: Clients::default(),
            ledger: SharedLedger::default(),
            stop: Rc::default(),
            working: Vec::new(),
            descriptors: 0,
            database_server,
            _database: database,
        };
        world.start_servers(needs).await;
        world.invite_people().await;
        world
    }

    async fn start_servers(&mut self, needs: Needs) {
        if needs == Needs::Clock {
            let clock = ManualClock::at(nudge::clock::Clock::system().now());
            let config = Config::default();
            let server =
                start_server(&self.url, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await;
            self.bases.push(format!("http://{}", server.address()));
            (self._inside, self.clock) = (Some(server), Some(clock));
            return;
        }
        let url = self.url.clone();
        let settings = SETTINGS.into_iter().chain([("DATABASE_URL", &*url)]).collect::<Vec<_>>();
        for _ in 0..if needs == Needs::TwoProcesses { 2 } else { 1 } {
            let server = match needs {
                Needs::FileLimits => ServerProcess::start_with_file_limits(self.folder.path(), &settings).await,
                _ => ServerProcess::start(self.folder.path(), &settings).await,
            };
            self.servers.push(server.unwrap());
        }
        self.bases = self.servers.iter().map(ServerProcess::url).collect();
        if needs == Needs::Network {
            let network = Network::start(&self.bases[0]).await;
            self.bases = vec![network.url.clone()];
            self.network = Some(network);
        }
    }

    /// Friends all of them, and in both groups.
    async fn invite_people(&mut self) {
        let mut people = Vec::new();
        let http = http_client();
        for number in 0..PEOPLE {
            let name = format!("person {number}");
            people.push(Person::create(&http, &self.bases[number % self.bases.len()], &name, &name).await);
        }
        for (index, person) in people.iter().enumerate() {
            for friend in &people[..index] {
                befriend(friend, person).await;
            }
        }
        let others: Vec<&Person> = people[1..].iter().collect();
        let groups = [people[0].create_group(&others).await, people[0].create_group(&others).await];
        // The descriptors of a server to which nobody is connected.
        let names: Vec<String> = people.iter().map(|person| person.external_id.clone()).collect();
        drop((people, http));
        if !self.servers.is_empty() {
            self.descriptors = self.settled_descriptors().await;
        }
        let http = http_client();
        let mut clients = Clients { groups, ..Clients::default() };
        for (number, name) in names.into_iter().enumerate() {
            let base = self.bases[number % self.bases.len()].clone();
            let mut person = Person::sign_in(&http, &base, &name).await;
            // An access token ends sooner than a clock may jump.
            person.access_token.clone_from(&person.refresh_token);
            for index in 0..DEVICES_OF_A_PERSON {
                let base = &self.bases[(number + index) % self.bases.len()];
                let device = device_of(&Person::sign_in(&http, base, &name).await, base);
                clients.ears.push(Ear::of_device(format!("device {index} of {name}"), &device));
                clients.devices.push(device);
            }
            if number < FOREIGN_SOCKETS {
                let url = format!("{}/infra/ws?token={}", base.replacen("http", "ws", 1), person.refresh_token);
                clients.ears.push(Ear::of_socket(format!("a foreign socket of {name}"), person.id, url));
            }
            clients.people.push(person);
        }
        self.clients = clients;
    }

    /// Open files of the first server when they have stopped falling: connections take a moment to be closed.
    async fn settled_descriptors(&self) -> usize {
        let mut lowest = usize::MAX;
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            lowest = lowest.min(self.servers[0].open_fds());
        }
        lowest
    }

    /// Everybody begins to write and read. `round` makes client ids distinct.
    pub fn begin(&mut self, round: usize, rng: &mut StdRng) {
        self.stop = Rc::default();
        let Clients { people, devices, groups, .. } = &self.clients;
        for (index, device) in devices.iter().enumerate() {
            let person = &people[index / DEVICES_OF_A_PERSON];
            let is_guest = index / DEVICES_OF_A_PERSON == PEOPLE - 1;
            for hand in 0..HANDS_OF_A_DEVICE {
                let hand = Hand {
                    number: (round * devices.len() + index) * HANDS_OF_A_DEVICE + hand,
                    device: device.clone(),
                    person: person.clone(),
                    friends: people.iter().map(|friend| friend.id).filter(|id| *id != person.id).collect(),
                    groups: if is_guest { vec![groups[1]] } else { groups.to_vec() },
                    recalls_in: groups[1],
                    ledger: self.ledger.clone(),
                    rng: StdRng::seed_from_u64(rng.random()),
                };
                self.working.push(actix_web::rt::spawn(hand.work(self.stop.clone())));
            }
        }
        let (owner, guest) = (people[0].clone(), people[PEOPLE - 1].id);
        let coming = come_and_go(owner, groups[0], guest, self.ledger.clone(), self.stop.clone());
        self.working.push(actix_web::rt::spawn(coming));
    }

    /// Waits until so many more calls are acknowledged.
    pub async fn until_acknowledged(&self, count: usize) {
        let before = self.ledger.borrow().acknowledged;
        let what = format!("{count} calls are acknowledged");
        eventually_within(PATIENCE, &what, async || {
            assert!(self.working.iter().all(|work| !work.is_finished()), "somebody has given up");
            self.ledger.borrow().acknowledged >= before + count
        })
        .await;
    }

    /// Everybody finishes what he has begun.
    pub async fn rest(&mut self) {
        self.stop.set(true);
        for work in self.working.drain(..) {
            tokio::time::timeout(PATIENCE, work).await.expect("a call has no outcome").unwrap();
        }
    }

    pub async fn tables(&self) -> Tables {
        Tables::open(&self.url).await
    }

    /// Whether the first server says that it can do its work.
    pub async fn is_ready(&self) -> bool {
        let url = format!("{}/readyz", self.servers[0].url());
        reqwest::get(url).await.is_ok_and(|answer| answer.status() == 200)
    }
}

/// Our own client, in a hurry.
fn device_of(person: &Person, base: &str) -> Device {
    let tokens = Tokens {
        user_id: UserId(person.id),
        access_token: person.access_token.clone(),
        refresh_token: person.refresh_token.clone(),
        expires_time: i64::MAX,
    };
    let soon =
        Backoff { base: Duration::from_millis(50), max: Duration::from_millis(400), jitter: Duration::from_millis(50) };
    let config = DeviceConfig {
        ping_interval: Duration::from_millis(400),
        connect_timeout: Duration::from_secs(2),
        reconnect: soon,
        resend: soon,
        attempt_timeout: Duration::from_secs(5),
        store_capacity: usize::MAX,
        ..DeviceConfig::default()
    };
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5));
    let http = http.pool_idle_timeout(Duration::from_secs(4)).build().unwrap();
    Device::new(Endpoint::with_http(base, http).unwrap(), tokens, config)
}
