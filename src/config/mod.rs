//! Configuration: compiled-in defaults, then `nudge.toml`, then environment variables. Unknown keys are refused.
//!
//! `DATABASE_URL`, `NATS_URL` and `NUDGE_<KEY>` set the top level, `NUDGE_<SECTION>__<KEY>` everything below it.
//! Sizes are bytes and times milliseconds unless the name says otherwise.

mod files;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

pub use files::{FilesConfig, S3Config};

/// The whole configuration.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where HTTP and WebSocket are served.
    pub listen: SocketAddr,
    /// `sqlite://path`, `postgres://…` or `mysql://…`. The default is `nudge.db` in the data folder.
    #[serde(serialize_with = "hide_optional")]
    pub database_url: Option<SecretString>,
    /// Holds the SQLite database, uploads and the lock that keeps a second server out.
    pub data_dir: PathBuf,
    /// Opens the server API under `/api/v1` to whoever knows it. None: that API does not exist.
    #[serde(serialize_with = "hide_optional")]
    pub api_key: Option<SecretString>,
    /// A second address that serves only `/metrics`. None: `/metrics` is on the main port, for loopback peers.
    pub metrics_listen: Option<SocketAddr>,
    /// The NATS server of a cluster. Reserved: clusters are not built yet, and a value is refused.
    #[serde(serialize_with = "hide_optional")]
    pub nats_url: Option<SecretString>,
    /// Name of this node's row in `im_sequence`; letters, digits, `.`, `_`, `-`, at most 40. None: made at start.
    pub node: Option<String>,
    /// Worker threads for HTTP and sockets; 0 takes one per core.
    pub workers: usize,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    pub auth: AuthConfig,
    pub database: DatabaseConfig,
    pub writer: WriterConfig,
    pub websocket: WebSocketConfig,
    pub message: MessageConfig,
    pub friend: FriendConfig,
    pub group: GroupConfig,
    pub files: FilesConfig,
    pub manager: ManagerConfig,
}

/// Sign-in (`contract/01` section 6).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// Whether strangers may register. None: only while the listen address is a loopback one.
    pub registration: Option<bool>,
    /// Life of an access token, seconds.
    pub access_token_ttl_s: i64,
    /// Life of a refresh token and so of a login, seconds.
    pub refresh_token_ttl_s: i64,
    /// Failed sign-ins of one account from one address within `failure_window_s` before further ones get code 429.
    pub max_failures: u32,
    /// Registrations from one address within `failure_window_s` (not limited on a loopback listen address).
    pub max_registrations: u32,
    /// Length of the window over which failures and registrations count, seconds.
    pub failure_window_s: u64,
    /// How long a token that was found good is not looked up again, milliseconds; 0: never. Revocations by this server
    /// count at once all the same, those by others (several servers on one database) after this time.
    pub token_cache_ms: u64,
}

/// Database connections.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DatabaseConfig {
    /// Connections that serve pulls and lists.
    pub readers: usize,
    /// Reads waiting for a reader before further ones get code 429.
    pub max_waiting_reads: usize,
    /// A read that waited longer is answered with an error instead of being run.
    pub read_deadline_ms: u64,
}

/// The DB writer (`design.md` section 4).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WriterConfig {
    /// Commands in one transaction. 1 switches batching off (for measurements).
    pub max_batch: usize,
    /// Bytes of commands in one transaction.
    pub max_batch_bytes: usize,
    /// Commands waiting before further ones get code 429.
    pub max_waiting: usize,
    /// Commands waiting for one user before further ones of that user get code 429.
    pub max_waiting_per_user: u32,
    /// A command that waited longer is answered with an error and not run.
    pub deadline_ms: u64,
    /// Receivers handed to the registry and not yet routed above which the writer pauses.
    pub max_registry_backlog: usize,
}

/// WebSocket limits (`design.md` section 6).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSocketConfig {
    /// Largest inbound frame, and largest sum of the fragments of one message.
    pub max_frame_bytes: usize,
    /// Bytes handed to one session and not yet taken by it above which it is cut.
    pub max_in_flight_bytes: usize,
    /// Bytes in flight on the whole node above which the sessions with most of them are cut.
    pub max_node_in_flight_bytes: usize,
    /// A session with something in flight and no progress for this long is cut.
    pub stall_timeout_ms: u64,
    /// Interval of the server's protocol pings; a peer silent for two of them is dropped.
    pub ping_interval_ms: u64,
    /// Sessions of one user; a handshake beyond it is refused with HTTP 429.
    pub max_sessions_per_user: usize,
    /// Sockets of this node; connections beyond it wait in the kernel.
    pub max_connections: usize,
    /// Window over which a stopping server spreads its close frames.
    pub shutdown_window_ms: u64,
}

/// Message rules (`contract/01` section 15).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MessageConfig {
    pub private_read_enabled: bool,
    pub group_read_enabled: bool,
    /// Rows of one pull; a larger `size` is refused with 1040300005.
    pub max_pull_size: i64,
    pub recall_timeout_minutes: i64,
    pub private_pull_max_days: i64,
    pub group_pull_max_days: i64,
}

/// Friend rules.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FriendConfig {
    /// Agree to every friend request at once (`contract/03` R1).
    pub auto_accept: bool,
}

/// Group limits (`contract/04` section 1).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupConfig {
    /// Active members of one group, 1 to 5,000.
    pub max_member: usize,
    /// Admins of one group, the owner not counted.
    pub admin_max_count: usize,
    /// Pinned messages of one group, at most 20.
    pub pin_max_count: usize,
}

/// What operators see (`contract/05` part E).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ManagerConfig {
    /// The zone of the times that operators write and of the days that are counted: minutes east of UTC, -840 to 840.
    pub utc_offset_minutes: i32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 48080)),
            database_url: None,
            data_dir: PathBuf::from("data"),
            api_key: None,
            metrics_listen: None,
            nats_url: None,
            node: None,
            workers: 0,
            trusted_proxies: Vec::new(),
            auth: AuthConfig::default(),
            database: DatabaseConfig::default(),
            writer: WriterConfig::default(),
            websocket: WebSocketConfig::default(),
            message: MessageConfig::default(),
            friend: FriendConfig::default(),
            group: GroupConfig::default(),
            files: FilesConfig::default(),
            manager: ManagerConfig::default(),
        }
    }
}

impl Default for AuthConfig {
    fn default() -> Self {
        AuthConfig {
            registration: None,
            access_token_ttl_s: 1_800,
            refresh_token_ttl_s: 2_592_000,
            max_failures: 10,
            max_registrations: 20,
            failure_window_s: 900,
            token_cache_ms: 1_000,
        }
    }
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        DatabaseConfig { readers: 2, max_waiting_reads: 4_096, read_deadline_ms: 10_000 }
    }
}

impl Default for WriterConfig {
    fn default() -> Self {
        WriterConfig {
            max_batch: 256,
            max_batch_bytes: 1 << 20,
            max_waiting: 4_096,
            max_waiting_per_user: 64,
            deadline_ms: 10_000,
            max_registry_backlog: 500_000,
        }
    }
}

impl Default for WebSocketConfig {
    fn default() -> Self {
        WebSocketConfig {
            max_frame_bytes: 64 << 10,
            max_in_flight_bytes: 1 << 20,
            max_node_in_flight_bytes: 256 << 20,
            stall_timeout_ms: 15_000,
            ping_interval_ms: 30_000,
            max_sessions_per_user: 50,
            max_connections: 100_000,
            shutdown_window_ms: 2_000,
        }
    }
}

impl Default for GroupConfig {
    fn default() -> Self {
        GroupConfig { max_member: 500, admin_max_count: 3, pin_max_count: 5 }
    }
}

impl Default for MessageConfig {
    fn default() -> Self {
        MessageConfig {
            private_read_enabled: true,
            group_read_enabled: true,
            max_pull_size: 1_000,
            recall_timeout_minutes: 5,
            private_pull_max_days: 30,
            group_pull_max_days: 30,
        }
    }
}

impl Config {
    /// Reads the configuration: defaults, then `file` (or `nudge.toml` where it exists), then the environment.
    ///
    /// # Errors
    /// An unknown key, a value of the wrong type or outside its range, or a `file` that does not exist.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Config> {
        let toml = match file {
            Some(path) => {
                anyhow::ensure!(path.is_file(), "configuration file {} does not exist", path.display());
                Toml::file_exact(path)
            }
            None if Path::new("nudge.toml").is_file() => Toml::file_exact("nudge.toml"),
            None => Toml::string(""),
        };
        let config: Config = Figment::from(Serialized::defaults(Config::default()))
            .merge(toml)
            .merge(Env::prefixed("NUDGE_").split("__"))
            .merge(Env::raw().only(&["DATABASE_URL", "NATS_URL"]))
            .merge(Serialized::globals(texts_of_environment()))
            .extract()?;
        config.check()?;
        Ok(config)
    }

    /// Refuses values with which the server could not keep its promises.
    fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.nats_url.is_none(), "NATS_URL is set, but clusters are not built yet");
        if let Some(key) = &self.api_key {
            anyhow::ensure!(key.expose_secret().len() >= 16, "api_key must have at least 16 characters");
        }
        if let Some(node) = &self.node {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            anyhow::ensure!(
                !node.is_empty() && node.len() <= 40 && node.chars().all(is_plain),
                "node must be 1 to 40 letters, digits, '.', '_' or '-'"
            );
        }
        anyhow::ensure!((1..=64).contains(&self.database.readers), "database.readers must be 1 to 64");
        anyhow::ensure!((1..=1_000).contains(&self.writer.max_batch), "writer.max_batch must be 1 to 1000");
        anyhow::ensure!(self.websocket.ping_interval_ms >= 100, "websocket.ping_interval_ms must be at least 100");
        anyhow::ensure!((1..=5_000).contains(&self.group.max_member), "group.max_member must be 1 to 5000");
        anyhow::ensure!(self.group.pin_max_count <= 20, "group.pin_max_count must be at most 20");
        if let Some(url) = &self.files.public_url {
            let is_origin = url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            anyhow::ensure!(is_origin, "files.public_url must begin with http:// or https://");
        }
        anyhow::ensure!(
            (-840..=840).contains(&self.manager.utc_offset_minutes),
            "manager.utc_offset_minutes must be -840 to 840"
        );
        anyhow::ensure!(self.message.max_pull_size >= 1, "message.max_pull_size must be at least 1");
        let days = [self.message.private_pull_max_days, self.message.group_pull_max_days];
        anyhow::ensure!(days.iter().all(|days| *days >= 1), "message.…_pull_max_days must be at least 1");
        Ok(())
    }

    /// The database URL that is in force.
    pub fn database_url(&self) -> SecretString {
        self.database_url
            .clone()
            .unwrap_or_else(|| SecretString::from(format!("sqlite://{}", self.data_dir.join("nudge.db").display())))
    }

    /// Whether strangers may register: as configured, else only on a loopback listen address.
    pub fn registration_open(&self) -> bool {
        self.auth.registration.unwrap_or_else(|| self.listen.ip().is_loopback())
    }
}

/// Variables that are texts whatever they look like: figment would read a key of digits as a number.
fn texts_of_environment() -> BTreeMap<&'static str, String> {
    let texts = [("api_key", "NUDGE_API_KEY"), ("node", "NUDGE_NODE")];
    texts.into_iter().filter_map(|(key, name)| std::env::var(name).ok().map(|text| (key, text))).collect()
}

/// Secrets are printed as a mark that says only whether they are set.
fn hide_optional<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    match secret {
        Some(_) => serializer.serialize_some("***"),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused() {
        let figment = Figment::from(Serialized::defaults(Config::default())).merge(("writer.max_bach", 3));
        assert!(figment.extract::<Config>().is_err());
    }

    #[test]
    fn secrets_are_not_printed() {
        let config = Config { api_key: Some("0123456789abcdef".into()), ..Config::default() };
        let text = serde_json::to_string(&config).unwrap();
        assert!(!text.contains("0123456789abcdef") && text.contains("***"));
    }
}
