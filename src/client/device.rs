//! One device of one user: its sign-in, its store, and the verbs of a chat.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::api::Api;
use super::backoff::Backoff;
use super::connection::{self, Connection, DeviceEvent, Observer};
use super::endpoint::Endpoint;
use super::error::ClientError;
use super::store::Store;
use super::sync::{Pulled, SyncAnswer, Unread};
use super::types::{GroupDraft, GroupMessage, PrivateDraft, PrivateMessage, Tokens};
use crate::domain::conversation::ConversationType;
use crate::domain::ids::{GroupId, MessageId, RequestId, UserId};

/// How a device behaves. Share one value between many devices where it is the same.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Name of the device, sent with the handshake; the user sees it in the list of sessions.
    pub device: String,
    /// Rows of each stream in one page of a pull, 1–200. The default is the web client's 100.
    pub pull_size: usize,
    /// Time between two pings. After two and a half of them without any frame the connection counts as lost.
    pub ping_interval: Duration,
    /// Longest wait for a handshake.
    pub connect_timeout: Duration,
    /// Waits before a reconnect, and before a failed pull is tried again.
    pub reconnect: Backoff,
    /// Waits between the tries of one send.
    pub resend: Backoff,
    /// Longest wait for the answer to one try of a send.
    pub attempt_timeout: Duration,
    /// How long a send is tried in all.
    pub send_deadline: Duration,
    /// Events that wait to be read; when they are this many the socket is not read.
    pub event_capacity: usize,
    /// Messages of each table kept in the store; older pulled ones are forgotten. 0 keeps nothing but cursors and
    /// positions: then every message counts as new each time that it comes.
    pub store_capacity: usize,
    /// Whether each (re)connect pulls. Without, whoever has the device must call [`Device::sync`].
    pub pull_on_connect: bool,
}

impl Default for DeviceConfig {
    fn default() -> DeviceConfig {
        DeviceConfig {
            device: "rust".to_owned(),
            pull_size: 100,
            ping_interval: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(10),
            reconnect: Backoff::RECONNECT,
            resend: Backoff::RESEND,
            attempt_timeout: Duration::from_secs(10),
            send_deadline: Duration::from_secs(60),
            event_capacity: 256,
            store_capacity: 10_000,
            pull_on_connect: true,
        }
    }
}

/// A signed-in device. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    api: Api,
    config: Arc<DeviceConfig>,
    store: Mutex<Store>,
    observer: Option<Arc<dyn Observer>>,
    /// One pull at a time: two would fetch the same pages.
    sync_gate: tokio::sync::Mutex<()>,
}

impl Device {
    /// A device of a sign-in that was made elsewhere. Nothing is sent.
    pub fn new(endpoint: Endpoint, tokens: Tokens, config: impl Into<Arc<DeviceConfig>>) -> Device {
        Device::build(endpoint, tokens, config.into(), None)
    }

    /// As [`Device::new`], with somebody who is told of every event.
    pub fn observed(
        endpoint: Endpoint,
        tokens: Tokens,
        config: impl Into<Arc<DeviceConfig>>,
        observer: Arc<dyn Observer>,
    ) -> Device {
        Device::build(endpoint, tokens, config.into(), Some(observer))
    }

    fn build(
        endpoint: Endpoint,
        tokens: Tokens,
        config: Arc<DeviceConfig>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Device {
        let (api, store) = (Api::new(endpoint, tokens), Mutex::new(Store::new(config.store_capacity)));
        Device(Arc::new(Inner { api, config, store, observer, sync_gate: Default::default() }))
    }

    /// Signs in with name and password.
    ///
    /// # Errors
    /// Those of [`Endpoint::login`].
    pub async fn sign_in(
        endpoint: Endpoint,
        username: &str,
        password: &str,
        config: impl Into<Arc<DeviceConfig>>,
    ) -> Result<Device, ClientError> {
        let tokens = endpoint.login(username, password).await?;
        Ok(Device::new(endpoint, tokens, config))
    }

    /// Who is signed in.
    pub fn user_id(&self) -> UserId {
        self.api().user_id()
    }

    /// The plain calls, for what has no verb here. They leave the store alone.
    pub fn api(&self) -> &Api {
        &self.0.api
    }

    /// How this device behaves.
    pub fn config(&self) -> &DeviceConfig {
        &self.0.config
    }

    /// Looks into the store, or changes it. `look` must not wait for anything.
    pub fn with_store<T>(&self, look: impl FnOnce(&mut Store) -> T) -> T {
        // No code under this lock panics half-way through a change, so a poisoned store is as good as before.
        look(&mut self.0.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn observe(&self, event: &DeviceEvent) {
        if let Some(observer) = &self.0.observer {
            observer.observe(event);
        }
    }

    /// Connects, and stays connected until the [`Connection`] is dropped or closed, or the server says not to come
    /// back. Each (re)connect pulls. Needs a running tokio runtime.
    pub fn connect(&self) -> Connection {
        connection::start(self.clone())
    }

    /// Pulls everything that is new, in one call where a page of each stream is enough. Returns the messages that were
    /// not known. Everything committed before this call is in the store when it returns.
    ///
    /// # Errors
    /// Those of [`Api`]; what was pulled before the failure stays.
    pub async fn sync(&self) -> Result<Pulled, ClientError> {
        self.sync_into(None).await
    }

    /// [`Device::sync`] for those who have an [`Observer`]: it returns no messages, so it holds one page at a time.
    ///
    /// # Errors
    /// Those of [`Device::sync`].
    pub async fn sync_observed(&self) -> Result<(), ClientError> {
        let (nobody, _) = mpsc::channel(1);
        self.sync_into(Some(&nobody)).await.map(drop)
    }

    /// [`Device::sync`]; with `events` each page is reported there, and nothing is returned.
    pub(super) async fn sync_into(&self, events: Option<&mpsc::Sender<DeviceEvent>>) -> Result<Pulled, ClientError> {
        let _gate = self.0.sync_gate.lock().await;
        let mut all_new = Pulled::default();
        let mut request = self.with_store(|store| store.sync_request(self.config().pull_size.max(1)));
        loop {
            let answer = self.api().sync(&request).await?;
            let next = request.after(&answer);
            let has_more = answer.has_more();
            if has_more && next == request {
                return Err(ClientError::Unexpected("full pages of what was pulled before".to_owned()));
            }
            request = next;
            let new = self.with_store(|store| self.merge_answer(store, answer));
            match (events, new) {
                // Nobody listening is no reason to stop pulling.
                (Some(events), Some(new)) => drop(events.send(DeviceEvent::Pulled(new)).await),
                (None, Some(new)) => all_new.extend(new),
                (_, None) => {}
            }
            if !has_more {
                return Ok(all_new);
            }
        }
    }

    /// The cursor moves and the observer hears of it in one step.
    fn merge_answer(&self, store: &mut Store, answer: SyncAnswer) -> Option<Pulled> {
        let new = store.merge_answer(answer);
        if new.is_empty() {
            return None;
        }
        // Rows are shared, so a copy is cheap.
        let event = DeviceEvent::Pulled(new.clone());
        self.observe(&event);
        Some(new)
    }

    /// Sends a text message; see [`Device::send`].
    ///
    /// # Errors
    /// Those of [`Device::send`].
    pub async fn send_text(&self, receiver: UserId, text: &str) -> Result<PrivateMessage, ClientError> {
        self.send(&PrivateDraft::text(receiver, text)).await
    }

    /// Sends a message, again and again under its one client id until it is answered, so it is stored once.
    ///
    /// # Errors
    /// The server's refusal, or [`ClientError::Deadline`] when there was no answer within `send_deadline`: it may
    /// have been stored or not, and the same draft can be sent again.
    pub async fn send(&self, draft: &PrivateDraft) -> Result<PrivateMessage, ClientError> {
        let message = self.repeat(|| self.api().send_private(draft)).await?;
        self.with_store(|store| store.merge_private(message.clone()));
        Ok(message)
    }

    /// [`Device::send`] to a group.
    ///
    /// # Errors
    /// Those of [`Device::send`].
    pub async fn send_group(&self, draft: &GroupDraft) -> Result<GroupMessage, ClientError> {
        let message = self.repeat(|| self.api().send_group(draft)).await?;
        self.with_store(|store| store.merge_group(message.clone()));
        Ok(message)
    }

    /// Tries until there is an answer, or no time left.
    async fn repeat<T, F>(&self, call: impl Fn() -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let config = self.config();
        let deadline = Instant::now() + config.send_deadline;
        let mut attempt = 0;
        loop {
            let time_left = deadline.saturating_duration_since(Instant::now());
            let last = match timeout(config.attempt_timeout.min(time_left), call()).await {
                Ok(Err(error)) if error.is_temporary() => error,
                Ok(answer) => return answer,
                Err(_) => ClientError::Transport("timed out".to_owned()),
            };
            let pause = config.resend.random_delay(attempt);
            if Instant::now() + pause >= deadline {
                return Err(ClientError::Deadline { after: config.send_deadline, last: Box::new(last) });
            }
            sleep(pause).await;
            attempt += 1;
        }
    }

    /// My unread messages as the server counts them.
    ///
    /// # Errors
    /// Those of [`Api`].
    pub async fn unread(&self) -> Result<Unread, ClientError> {
        self.api().unread().await
    }

    /// Who is in the group: fetched when it is asked for, and again after an event of the group or a reconnect.
    ///
    /// # Errors
    /// Those of [`Api`]; 1040500001 for those who are not in it.
    pub async fn members(&self, group: GroupId) -> Result<Arc<[UserId]>, ClientError> {
        let (known, events) = self.with_store(|store| (store.members(group), store.member_events()));
        if let Some(members) = known {
            return Ok(members);
        }
        let fetched: Arc<[UserId]> = self.api().group_members(group).await?.into();
        self.with_store(|store| store.merge_members(group, fetched.clone(), events));
        Ok(fetched)
    }

    /// Reports that I have read the group up to `message`.
    ///
    /// # Errors
    /// Those of [`Api`].
    pub async fn read_group(&self, group: GroupId, message: MessageId) -> Result<(), ClientError> {
        self.api().read_group(group, message).await?;
        self.with_store(|store| store.raise_read(ConversationType::Group.number(), group.0, message));
        Ok(())
    }

    /// Reports that I have read what `peer` wrote up to `message`.
    ///
    /// # Errors
    /// Those of [`Api`].
    pub async fn read(&self, peer: UserId, message: MessageId) -> Result<(), ClientError> {
        self.api().read_private(peer, message).await?;
        self.with_store(|store| store.raise_read(ConversationType::Private.number(), peer.0, message));
        Ok(())
    }

    /// Takes back a message of mine. Returns the RECALL row.
    ///
    /// # Errors
    /// Those of [`Api`]; 1040300003 when it was recalled before, also by a call of ours whose answer was lost.
    pub async fn recall(&self, message: MessageId) -> Result<PrivateMessage, ClientError> {
        let row = self.api().recall_private(message).await?;
        self.with_store(|store| store.merge_private(row.clone()));
        Ok(row)
    }

    /// Tells `peer` that I am writing. Not repeated when it fails: it is worth nothing a moment later.
    ///
    /// # Errors
    /// Those of [`Api`].
    pub async fn typing(&self, peer: UserId) -> Result<(), ClientError> {
        self.api().typing_private(peer).await
    }

    /// How far `peer` has read what I wrote: fetched once per peer and connection, and kept up by receipts.
    ///
    /// # Errors
    /// Those of [`Api`].
    pub async fn peer_read(&self, peer: UserId) -> Result<Option<MessageId>, ClientError> {
        let (known, connection) = self.with_store(|store| (store.peer_read(peer), store.connection()));
        if let Some(position) = known {
            return Ok(position);
        }
        let fetched = self.api().peer_read(peer).await?;
        Ok(self.with_store(|store| store.merge_peer_read(peer, fetched, connection)))
    }

    /// Asks `peer` to be my friend. `None` when no request was needed.
    ///
    /// # Errors
    /// Those of [`Api`].
    pub async fn apply_friend(&self, peer: UserId, text: &str) -> Result<Option<RequestId>, ClientError> {
        self.api().apply_friend(peer, text).await
    }

    /// Agrees to a friend request that came to me.
    ///
    /// # Errors
    /// Those of [`Api`].
    pub async fn agree_friend(&self, request: RequestId) -> Result<(), ClientError> {
        self.api().agree_friend(request).await
    }
}
