//! Sends: under way in a fixed number (closed loop), or due at their times whether the server keeps up or not (open
//! loop). A send is repeated under its first client id until it is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until, timeout};

use super::fleet::{Fleet, Unit};
use super::ledger::Target;
use super::measure::record;
use super::provision::Society;
use crate::client::{Backoff, ClientError, GroupDraft, PrivateDraft};
use crate::domain::content::ContentType;

/// Longest wait for the answer to one try.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Open-loop sends under way; those that are due beyond it are not made, and counted.
const MAX_UNDER_WAY: usize = 20_000;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Load,
    /// No new sends; those under way are repeated until they are answered.
    Settle,
    /// Nothing is repeated any more.
    Over,
}

/// What a send is about.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    Private,
    Group,
}

/// Everything that sends need.
#[derive(Clone, Debug)]
pub struct Sender {
    pub fleet: Arc<Fleet>,
    pub society: Arc<Society>,
    pub phase: watch::Receiver<Phase>,
    pub under_way: Arc<AtomicUsize>,
}

impl Sender {
    fn is_load(&self) -> bool {
        *self.phase.borrow() == Phase::Load
    }

    /// Sends as fast as it gets answers, until the load is over.
    pub async fn closed_loop(self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        while self.is_load() {
            self.send(Job::Private, Instant::now(), &mut random).await;
        }
    }

    /// Starts sends at random times, `rate` a second, until the load is over.
    pub async fn open_loop(mut self, job: Job, rate: f64, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut due = Instant::now();
        loop {
            due += exponential(rate, &mut random);
            tokio::select! {
                _ = self.phase.wait_for(|phase| *phase != Phase::Load) => return,
                () = sleep_until(due.into()) => {}
            }
            if self.under_way.load(Ordering::Relaxed) >= MAX_UNDER_WAY {
                let mut now = self.fleet.hub.measure.now();
                now.due += 1;
                now.overload += 1;
                continue;
            }
            let (sender, mut choices) = (self.clone(), StdRng::seed_from_u64(random.random()));
            tokio::spawn(async move { sender.send(job, due, &mut choices).await });
        }
    }

    /// One send by somebody to somebody.
    async fn send(&self, job: Job, due: Instant, random: &mut StdRng) {
        let Some((unit, target)) = self.choose(job, random) else { return };
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.fleet.hub.measure.now().due += 1;
        let hub = &self.fleet.hub;
        let (number, client_message_id) = hub.ledger.begin(unit.device.user_id(), target, due);
        let message = Message::new(client_message_id, target, number);
        match self.repeat(unit, &message).await {
            Some(Ok(id)) => {
                hub.ledger.acknowledge(number, id);
                let mut now = hub.measure.now();
                now.acknowledged += 1;
                record(&mut now.ack, due.elapsed());
            }
            Some(Err(error)) => {
                if matches!(error, ClientError::Refused { .. }) {
                    hub.ledger.refuse(number);
                }
                let mut now = hub.measure.now();
                now.refused += 1;
                now.error(kind(&error));
            }
            None => {}
        }
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    fn choose(&self, job: Job, random: &mut StdRng) -> Option<(&Unit, Target)> {
        let person = |index: usize| self.society.people.get(index);
        match job {
            Job::Private => {
                let (a, b) = *self.society.pairs.choose(random)?;
                let (from, to) = if random.random() { (a, b) } else { (b, a) };
                Some((self.fleet.device_of(from, random)?, Target::User(person(to)?.id)))
            }
            Job::Group => {
                let group = self.society.groups.choose(random)?;
                let from = *group.members.choose(random)?;
                Some((self.fleet.device_of(from, random)?, Target::Group(group.id)))
            }
        }
    }

    /// Tries until there is an answer: the id, or a failure for good. `None` when the run is over before.
    async fn repeat(&self, unit: &Unit, message: &Message) -> Option<Result<i64, ClientError>> {
        let mut attempt = 0;
        loop {
            let error = match timeout(ATTEMPT, message.send(unit)).await {
                Ok(Err(error)) if error.is_temporary() => kind(&error),
                Ok(answer) => return Some(answer),
                Err(_) => "no answer in time".to_owned(),
            };
            {
                let mut now = self.fleet.hub.measure.now();
                now.retried += 1;
                now.error(error);
            }
            if *self.phase.borrow() == Phase::Over {
                return None;
            }
            sleep(Backoff::RESEND.random_delay(attempt)).await;
            attempt += 1;
        }
    }
}

/// A time between two events that come at random, `rate` a second.
pub fn exponential(rate: f64, random: &mut StdRng) -> Duration {
    let gap = -(1.0 - random.random::<f64>()).ln() / rate;
    Duration::from_secs_f64(gap.clamp(0.0, 3_600.0))
}

/// What failed, in words that group alike failures.
pub fn kind(error: &ClientError) -> String {
    match error {
        ClientError::Refused { code, .. } => format!("refused with code {code}"),
        ClientError::Transport(_) => "no answer".to_owned(),
        other => other.to_string(),
    }
}

enum Message {
    Private(PrivateDraft),
    Group(GroupDraft),
}

impl Message {
    fn new(client_message_id: String, target: Target, number: usize) -> Message {
        let content = format!(r#"{{"content":"message {number} of a load run, about as long as what people write"}}"#);
        let r#type = ContentType::Text.number();
        match target {
            Target::User(receiver_id) => {
                Message::Private(PrivateDraft { client_message_id, receiver_id, r#type, content, receipt: None })
            }
            Target::Group(group_id) => {
                let (at_user_ids, receipt) = (Vec::new(), false);
                Message::Group(GroupDraft { client_message_id, group_id, r#type, content, at_user_ids, receipt })
            }
        }
    }

    async fn send(&self, unit: &Unit) -> Result<i64, ClientError> {
        let api = unit.device.api();
        match self {
            Message::Private(draft) => api.send_private(draft).await.map(|message| message.id.0),
            Message::Group(draft) => api.send_group(draft).await.map(|message| message.id.0),
        }
    }
}
