//! A network that fails: a relay before the server that delays, stalls, swallows, half-closes and cuts connections in
//! the middle of whatever they carry. What happens to the n-th connection, and when, follows from the seed.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

const CHUNK: usize = 16 << 10;
/// A fault comes after so many bytes at most: within a few requests, or some dozens of pushes.
const MAX_BYTES_BEFORE_FAULT: u64 = 24 << 10;
const MAX_DELAY: Duration = Duration::from_millis(150);
const STALL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
/// Between two events that hit all connections.
const EVENT_GAP: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(12));

/// How a connection fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Ends in both directions, with what is on its way lost.
    Cut,
    /// No more bytes to the server; those to the client go on.
    HalfCloseUp,
    /// No more bytes to the client; those to the server go on.
    HalfCloseDown,
    /// Nothing is carried any more, and nobody hears of it.
    Swallow,
    /// Nothing is carried for a while.
    Stall(Duration),
}

/// What the seed has in store for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fate {
    /// Each piece waits up to so long.
    delay: Duration,
    fault: Option<(u64, Fault)>,
}

impl Fate {
    fn of(seed: u64, number: u64) -> Fate {
        let mut random = StdRng::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let delay = if random.random_bool(0.3) { MAX_DELAY.mul_f64(random.random()) } else { Duration::ZERO };
        let fault = match random.random_range(0..10) {
            0..5 => None,
            5 | 6 => Some(Fault::Cut),
            7 => Some(if random.random() { Fault::HalfCloseUp } else { Fault::HalfCloseDown }),
            8 => Some(Fault::Swallow),
            _ => Some(Fault::Stall(between(STALL, &mut random))),
        };
        Fate { delay, fault: fault.map(|fault| (random.random_range(0..MAX_BYTES_BEFORE_FAULT), fault)) }
    }
}

/// What is true for all connections at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    /// Each connection meets its fate.
    Faulty,
    /// Nothing is carried.
    Stalled,
    /// Faults are over: connections that had one are cut, new ones have none.
    Fair,
}

/// A running relay; it stops when it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    state: Arc<State>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    target: SocketAddr,
    seed: u64,
    weather: watch::Sender<Weather>,
    /// How often everything was cut.
    storms: watch::Sender<u64>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Relay {
    /// A relay before `target`, at first without faults.
    ///
    /// # Errors
    /// No port to listen on.
    pub async fn start(target: SocketAddr, seed: u64) -> io::Result<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (weather, _) = watch::channel(Weather::Fair);
        let (storms, _) = watch::channel(0);
        let state = Arc::new(State { target, seed, weather, storms, counts: Mutex::default() });
        let tasks = vec![tokio::spawn(accept(listener, state.clone()))];
        Ok(Relay { address, state, tasks })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on connections fail, and now and then all of them at once. It begins with a cut of all that were made
    /// before, for which nothing was in store.
    pub fn begin_faults(&mut self) {
        self.state.weather.send_replace(Weather::Faulty);
        self.state.cut_all();
        self.tasks.push(tokio::spawn(change_weather(self.state.clone())));
    }

    /// Ends all faults. How many there were, by kind.
    pub fn end_faults(&mut self) -> BTreeMap<String, u64> {
        for task in self.tasks.drain(1..) {
            task.abort();
        }
        self.state.weather.send_replace(Weather::Fair);
        let counts = self.state.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
    }
}

impl State {
    /// Cuts whatever is there now. A count and no weather: one that passes at once might be seen by nobody.
    fn cut_all(&self) {
        self.count("all connections cut");
        self.storms.send_modify(|storms| *storms += 1);
    }

    fn count(&self, kind: &'static str) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }
}

fn between((from, to): (Duration, Duration), random: &mut StdRng) -> Duration {
    from + (to - from).mul_f64(random.random())
}

async fn change_weather(state: Arc<State>) {
    let mut random = StdRng::seed_from_u64(state.seed);
    loop {
        sleep(between(EVENT_GAP, &mut random)).await;
        if random.random() {
            state.cut_all();
        } else {
            state.count("all connections stalled");
            state.weather.send_replace(Weather::Stalled);
            sleep(between(STALL, &mut random)).await;
            state.weather.send_replace(Weather::Faulty);
        }
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) => {
                connections.spawn(connect(client, number, state.clone()));
                number += 1;
            }
            // No descriptors: wait for connections to end.
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn connect(client: TcpStream, number: u64, state: Arc<State>) {
    let Ok(server) = TcpStream::connect(state.target).await else { return };
    let mut storms = state.storms.subscribe();
    let mut weather = state.weather.subscribe();
    let fate = match *weather.borrow_and_update() {
        Weather::Fair => Fate { delay: Duration::ZERO, fault: None },
        _ => Fate::of(state.seed, number),
    };
    // Every end here is the end of both connections.
    tokio::select! {
        () = carry_both(client, server, fate, &state) => {}
        () = until_over(&mut weather, fate) => {}
        _ = storms.changed() => {}
    }
}

/// Ends when faults are over for a connection that had one.
async fn until_over(weather: &mut watch::Receiver<Weather>, fate: Fate) {
    let was_fair = fate.fault.is_none() && fate.delay.is_zero();
    let _ = weather.wait_for(|weather| *weather == Weather::Fair && !was_fair).await;
}

async fn carry_both(client: TcpStream, server: TcpStream, fate: Fate, state: &State) {
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let carried = AtomicU64::new(0);
    let lane = |is_up| Lane { is_up, fate, carried: &carried, state, weather: state.weather.subscribe() };
    let up = carry(from_client, to_server, lane(true));
    let down = carry(from_server, to_client, lane(false));
    tokio::pin!(up, down);
    // The end of one direction is passed on as such; a cut ends both.
    tokio::select! {
        end = &mut up => if end == LaneEnd::Finished { down.await; },
        end = &mut down => if end == LaneEnd::Finished { up.await; },
    }
}

/// One direction of a connection.
struct Lane<'a> {
    is_up: bool,
    fate: Fate,
    /// Bytes in both directions.
    carried: &'a AtomicU64,
    state: &'a State,
    weather: watch::Receiver<Weather>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneEnd {
    Finished,
    Cut,
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut lane: Lane<'_>) -> LaneEnd {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match from.read(&mut chunk).await {
            Ok(0) => {
                let _ = to.shutdown().await;
                return LaneEnd::Finished;
            }
            Ok(count) => count,
            Err(_) => return LaneEnd::Cut,
        };
        if !lane.fate.delay.is_zero() {
            sleep(lane.fate.delay).await;
        }
        let _ = lane.weather.wait_for(|weather| *weather != Weather::Stalled).await;
        let bytes = chunk.get(..count).unwrap_or_default();
        let before = lane.carried.fetch_add(count as u64, Ordering::Relaxed);
        match lane.fate.fault {
            Some((at, fault)) if before + count as u64 > at => {
                // In the middle of what is carried.
                let (now, later) = bytes.split_at(usize::try_from(at.saturating_sub(before)).unwrap_or(0).min(count));
                if to.write_all(now).await.is_err() {
                    return LaneEnd::Cut;
                }
                if lane.meet(fault, &mut to).await == LaneEnd::Cut || to.write_all(later).await.is_err() {
                    return LaneEnd::Cut;
                }
            }
            _ => {
                if to.write_all(bytes).await.is_err() {
                    return LaneEnd::Cut;
                }
            }
        }
    }
}

impl Lane<'_> {
    /// What the fault does to this direction; `Finished` lets it go on.
    async fn meet(&mut self, fault: Fault, to: &mut OwnedWriteHalf) -> LaneEnd {
        match fault {
            Fault::Cut => {
                self.state.count("cut");
                LaneEnd::Cut
            }
            Fault::HalfCloseUp | Fault::HalfCloseDown if self.is_up == (fault == Fault::HalfCloseUp) => {
                self.state.count("half closed");
                let _ = to.shutdown().await;
                std::future::pending().await
            }
            Fault::HalfCloseUp | Fault::HalfCloseDown => LaneEnd::Finished,
            Fault::Swallow => {
                self.state.count("swallowed");
                std::future::pending().await
            }
            Fault::Stall(time) => {
                self.state.count("stalled");
                self.fate.fault = None;
                sleep(time).await;
                LaneEnd::Finished
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers with what it gets.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        address
    }

    #[test]
    fn a_seed_repeats_its_fates() {
        let fates = |seed| (0..1_000).map(|number| Fate::of(seed, number)).collect::<Vec<_>>();
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
        let has =
            |wanted: fn(&Fault) -> bool| fates(7).iter().filter_map(|fate| fate.fault).any(|(_, fault)| wanted(&fault));
        assert!(has(|fault| *fault == Fault::Cut) && has(|fault| *fault == Fault::Swallow));
        assert!(has(|fault| *fault == Fault::HalfCloseUp) && has(|fault| matches!(fault, Fault::Stall(_))));
    }

    #[tokio::test]
    async fn in_fair_weather_everything_passes() {
        let relay = Relay::start(echo().await, 1).await.unwrap();
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        let sent: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let (mut from, mut to) = stream.split();
        let send = async {
            to.write_all(&sent).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let (_, result) = tokio::join!(send, from.read_to_end(&mut received));
        result.unwrap();
        assert_eq!(received, sent);
    }

    #[tokio::test]
    async fn faults_cut_in_the_middle_and_end_when_they_are_told_to() {
        let mut relay = Relay::start(echo().await, 1).await.unwrap();
        relay.begin_faults();
        // The connection of this number is cut; those before it are opened for the count.
        let is_cut = |number: &u64| matches!(Fate::of(1, *number), Fate { fault: Some((1.., Fault::Cut)), .. });
        let number = (0..1_000).find(is_cut).unwrap();
        let mut streams = Vec::new();
        for _ in 0..=number {
            streams.push(TcpStream::connect(relay.address()).await.unwrap());
        }
        let mut stream = streams.pop().unwrap();
        let (mut from, mut to) = stream.split();
        let send = async {
            let _ = to.write_all(&vec![1; 100_000]).await;
        };
        let mut received = Vec::new();
        let (_, _) = tokio::join!(send, from.read_to_end(&mut received));
        assert!(received.len() < 100_000);
        assert_eq!(relay.end_faults().get("cut"), Some(&1));
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        stream.write_all(b"fair").await.unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"fair");
    }
}
