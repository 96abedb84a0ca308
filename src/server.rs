//! The server as a whole: starting its parts in order, and stopping them in order (`design.md` section 6, "stop").

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use actix_cors::Cors;
use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use anyhow::{Context, bail};
use rand::Rng;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};
use tracing_actix_web::TracingLogger;

use crate::actors::db_reader::DbReaders;
use crate::actors::db_writer::DbWriter;
use crate::actors::{Registry, prepare_connection};
use crate::clock::Clock;
use crate::config::{Config, DatabaseConfig};
use crate::db::connect::{Role, Source, durability_warnings};
use crate::db::{StatementHook, migrate, tokens};
use crate::health::Health;
use crate::http::{AppState, Parts, metrics_routes, routes};
use crate::service::Locks;
use crate::storage::FileStore;
use crate::telemetry;

/// Interval of the jobs: expired tokens, metrics.
const JOB_INTERVAL: Duration = Duration::from_secs(5);
/// Runs of the jobs between two removals of expired tokens.
const RUNS_PER_CLEANUP: u32 = 12;
/// Expired tokens of each kind removed in one command.
const CLEANUP_ROWS: i64 = 500;
/// How long requests may still run once the server stops accepting them, seconds.
const HTTP_STOP_SECONDS: u64 = 10;
/// Time between requests after which a connection is closed. Client pools must give up earlier.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Reads of operators that wait for the one connection they share before further ones get code 429.
const MANAGER_READS: usize = 64;
/// How long the head of a request may take to arrive; then HTTP 408. The time in which a busy server does not get to
/// read it counts too, and clients that are told 408 in a storm of reconnects come back later still.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// What a connection may hold of encoded answers and frames before it must write; kept after a burst.
const WRITE_BUFFER_BYTES: usize = 16 << 10;

/// What tests replace.
#[derive(Default)]
pub struct Seams {
    pub clock: Option<Clock>,
    /// Called before every statement of the readers.
    pub read_hook: Option<StatementHook>,
}

/// A running server.
pub struct Server {
    state: web::Data<AppState>,
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    http: Vec<ServerHandle>,
    jobs: JoinHandle<()>,
    /// Keeps a second server away from a SQLite database.
    _lock: Option<File>,
}

impl Server {
    /// Migrates the database, starts every part and serves. Must be called on an actix system.
    ///
    /// # Errors
    /// The database cannot be reached or is in use by another server, or an address cannot be bound.
    pub async fn start(config: Config, seams: Seams) -> anyhow::Result<Server> {
        telemetry::init_metrics();
        let source = Source::parse(&config.database_url())?;
        let lock = source.sqlite_path().map(|path| lock_database(&path)).transpose()?;
        migrate::migrate(&source).await.context("the database cannot be prepared")?;
        let files = match &config.files.s3 {
            Some(s3) => FileStore::s3(s3)?,
            None => FileStore::folder(&config.data_dir.join("files"))?,
        };
        let health = Health::default();
        let warnings = durability_warnings(&mut source.connect(Role::Writer).await?).await?;
        for warning in &warnings {
            warn!("{warning}");
        }
        health.set_warnings(warnings);

        let clock = seams.clock.unwrap_or_else(Clock::system);
        let registry = Registry::start(config.websocket.clone());
        let node = config.node.clone().unwrap_or_else(|| format!("{:08x}", rand::rng().random::<u32>()));
        let writer = DbWriter::start(source.clone(), clock.clone(), &config, registry.clone(), health.clone(), &node);
        let read_source = match seams.read_hook {
            Some(hook) => source.clone().with_hook(hook),
            None => source.clone(),
        };
        let readers = DbReaders::start(&read_source, &config.database);
        let for_managers = DatabaseConfig { readers: 1, max_waiting_reads: MANAGER_READS, ..config.database.clone() };
        let manager_readers = DbReaders::start(&read_source, &for_managers);
        let state = web::Data::new(AppState::new(
            config,
            Parts { clock, writer, readers, manager_readers, registry, health, files },
        ));
        serve(state, lock)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Stops in order: not ready; sessions closed over the window; requests finished; what devices have confirmed
    /// written; commands finished.
    pub async fn stop(self) {
        info!("stopping");
        self.state.health.set_stopping();
        self.jobs.abort();
        let window = Duration::from_millis(self.state.config.websocket.shutdown_window_ms);
        self.state.registry.stop(window).await;
        for http in self.http {
            http.stop(true).await;
        }
        self.state.replays.flush().await;
        self.state.writer.drain().await;
        info!("stopped");
    }
}

/// Takes the lock beside a SQLite database; it ends with the process, however that ends.
fn lock_database(path: &Path) -> anyhow::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = File::create(&name).with_context(|| format!("cannot create {}", name.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another server uses {}", path.display()),
        Err(TryLockError::Error(error)) => Err(error).context("cannot lock the database"),
    }
}

fn serve(state: web::Data<AppState>, lock: Option<File>) -> anyhow::Result<Server> {
    let config = state.config.clone();
    let websocket = config.websocket.clone();
    let app_state = state.clone();
    let workers = match config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    };
    let main = HttpServer::new(move || {
        App::new()
            .app_data(app_state.clone())
            .wrap(Cors::permissive())
            .wrap(TracingLogger::<telemetry::RequestSpan>::new())
            .configure(routes)
    })
    .on_connect(move |connection, data| prepare_connection(connection, data, &websocket))
    .workers(workers)
    .backlog(4_096)
    .max_connections(config.websocket.max_connections.div_ceil(workers))
    .keep_alive(KEEP_ALIVE)
    .client_request_timeout(REQUEST_HEAD_TIMEOUT)
    .h1_write_buffer_size(WRITE_BUFFER_BYTES)
    .tcp_nodelay(true)
    .shutdown_timeout(HTTP_STOP_SECONDS)
    .disable_signals()
    .bind(config.listen)
    .with_context(|| format!("cannot listen on {}", config.listen))?;
    let address = main.addrs().first().copied().context("no listen address")?;
    let main = main.run();
    let mut http = vec![main.handle()];
    tokio::spawn(main);

    let mut metrics_address = None;
    if let Some(listen) = config.metrics_listen {
        let metrics_state = state.clone();
        let metrics = HttpServer::new(move || App::new().app_data(metrics_state.clone()).configure(metrics_routes))
            .workers(1)
            .disable_signals()
            .bind(listen)
            .with_context(|| format!("cannot listen on {listen}"))?;
        metrics_address = metrics.addrs().first().copied();
        let metrics = metrics.run();
        http.push(metrics.handle());
        tokio::spawn(metrics);
    }
    let jobs = tokio::spawn(run_jobs(state.clone()));
    Ok(Server { state, address, metrics_address, http, jobs, _lock: lock })
}

/// What happens every few seconds. A failure waits for the next time.
async fn run_jobs(state: web::Data<AppState>) {
    let mut ticks = tokio::time::interval(JOB_INTERVAL);
    let mut run = 0;
    loop {
        ticks.tick().await;
        telemetry::tidy_metrics();
        if !state.registry.is_running() || !state.writer.is_running() {
            error!("a part that everything depends on has died");
            state.health.fail();
            return;
        }
        run += 1;
        if run % RUNS_PER_CLEANUP != 0 {
            continue;
        }
        let cleanup = state.writer.run(None, "tokens.delete_expired", Locks::NONE, async |tx| {
            let now = tx.now;
            Ok(tokens::delete_expired(tx.db, now, CLEANUP_ROWS).await?)
        });
        if let Err(error) = cleanup.await {
            warn!(error = %error, "expired tokens could not be removed");
        }
    }
}
