//! Opening connections: session settings, TLS, time limits, and the check that commits are durable.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, AsyncPgConnection, SimpleAsyncConnection};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};

use super::{Backend, Connection, Db, SqliteConn, StatementHook};

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What a connection is for; decides its session settings (`design.md` section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Writer,
    Reader,
}

/// Where the database is and how to connect to it.
#[derive(Clone)]
pub struct Source {
    backend: Backend,
    url: SecretString,
    hook: Option<StatementHook>,
}

impl Source {
    /// Understands `sqlite://path`, `postgres://…`, `postgresql://…` and `mysql://…`.
    ///
    /// # Errors
    /// Another scheme.
    pub fn parse(url: &SecretString) -> anyhow::Result<Source> {
        let backend = match url.expose_secret().split_once("://").map(|(scheme, _)| scheme) {
            Some("sqlite") => Backend::Sqlite,
            Some("postgres" | "postgresql") => Backend::Postgres,
            Some("mysql") => Backend::Mysql,
            _ => bail!("DATABASE_URL must begin with sqlite://, postgres:// or mysql://"),
        };
        Ok(Source { backend, url: url.clone(), hook: None })
    }

    /// The same database with a hook before every statement (tests only).
    pub fn with_hook(mut self, hook: StatementHook) -> Source {
        self.hook = Some(hook);
        self
    }

    pub fn backend(&self) -> Backend {
        self.backend
    }

    pub(super) fn url(&self) -> &str {
        self.url.expose_secret()
    }

    /// The file of a SQLite database.
    pub fn sqlite_path(&self) -> Option<PathBuf> {
        self.url().strip_prefix("sqlite://").map(PathBuf::from)
    }

    /// Opens a connection and applies the session settings of `role`.
    ///
    /// # Errors
    /// The database cannot be reached within five seconds or refuses the settings.
    pub async fn connect(&self, role: Role) -> anyhow::Result<Db> {
        let connect = async {
            let mut db = Db::new(self.open().await?, self.hook.clone());
            for statement in session_settings(self.backend, role) {
                super::on_backend!(db, conn => conn.batch_execute(statement).await)?;
            }
            if self.backend == Backend::Postgres {
                super::on_backend!(db, conn => conn.batch_execute(POSTGRES_PLANS).await)?;
            }
            anyhow::Ok(db)
        };
        tokio::time::timeout(CONNECT_TIMEOUT, connect).await.context("database did not answer in time")?
    }

    async fn open(&self) -> anyhow::Result<Connection> {
        Ok(match self.backend {
            Backend::Sqlite => {
                let path = self.sqlite_path().context("no path in sqlite:// URL")?;
                Connection::Sqlite(SqliteConn::establish(&path.to_string_lossy()).await?)
            }
            Backend::Postgres => Connection::Postgres(open_postgres(self.url()).await?),
            Backend::Mysql => Connection::Mysql(AsyncMysqlConnection::establish(self.url()).await?),
        })
    }
}

/// The statements that make a fresh connection safe to use.
fn session_settings(backend: Backend, role: Role) -> &'static [&'static str] {
    match (backend, role) {
        (Backend::Sqlite, Role::Writer) => &[
            "PRAGMA busy_timeout = 5000",
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA cache_size = -16384",
            // Every 4 MiB (the default) a batch in two would have to write its pages twice and wait for them.
            "PRAGMA wal_autocheckpoint = 4000",
            // Undo notes of savepoints, at most the pages that a batch changes: not through a file.
            "PRAGMA temp_store = MEMORY",
        ],
        (Backend::Sqlite, Role::Reader) => {
            &["PRAGMA busy_timeout = 5000", "PRAGMA query_only = ON", "PRAGMA cache_size = -16384"]
        }
        (Backend::Postgres, Role::Writer) => &["SET default_transaction_isolation = 'read committed'; \
             SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '5s'; \
             SET statement_timeout = '15s'; SET synchronous_commit = on"],
        (Backend::Postgres, Role::Reader) => &["SET default_transaction_isolation = 'read committed'; \
             SET statement_timeout = '10s'"],
        // wait_timeout: a node that freezes inside a transaction must not keep the counter row for ever.
        (Backend::Mysql, Role::Writer) => &[
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION wait_timeout = 10",
            "SET SESSION innodb_lock_wait_timeout = 5",
            STRICT_MODE,
        ],
        (Backend::Mysql, Role::Reader) => &[
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            STRICT_MODE,
            // MariaDB counts seconds, MySQL milliseconds under another name; each ignores the other's comment.
            "/*M! SET SESSION max_statement_time = 10 */",
        ],
    }
}

const STRICT_MODE: &str = "SET SESSION sql_mode = \
     'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'";

/// Keeps PostgreSQL to the walk along an index that a page asks for: from wrong statistics it can otherwise conclude
/// that reading everything a user ever sent, and sorting it, is cheaper (seen). See `private_messages::Walk`.
const POSTGRES_PLANS: &str = "SET enable_bitmapscan = off; SET enable_incremental_sort = off";

/// Connects to PostgreSQL, with TLS when the URL says `sslmode=require`. `sslrootcert=<pem file>` names a private
/// authority; without it the public ones are trusted. The server's name is always verified.
async fn open_postgres(url: &str) -> anyhow::Result<AsyncPgConnection> {
    let (url, root_certificate) = take_root_certificate(url)?;
    let config: tokio_postgres::Config = url.parse().context("DATABASE_URL is not valid")?;
    if config.get_ssl_mode() != tokio_postgres::config::SslMode::Require {
        let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
        return Ok(AsyncPgConnection::try_from_client_and_connection(client, connection).await?);
    }
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(file) = root_certificate {
        roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(&file).context("sslrootcert cannot be read")? {
            roots.add(certificate?)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (client, connection) = config.connect(tokio_postgres_rustls::MakeRustlsConnect::new(tls)).await?;
    Ok(AsyncPgConnection::try_from_client_and_connection(client, connection).await?)
}

/// Splits `sslrootcert` off the URL, which tokio-postgres does not know.
fn take_root_certificate(url: &str) -> anyhow::Result<(String, Option<String>)> {
    let mut parsed = url::Url::parse(url).context("DATABASE_URL is not valid")?;
    let mut file = None;
    let mut kept = Vec::new();
    for (key, value) in parsed.query_pairs() {
        match &*key {
            "sslrootcert" => file = Some(value.into_owned()),
            _ => kept.push((key.into_owned(), value.into_owned())),
        }
    }
    if file.is_none() {
        return Ok((url.to_owned(), None));
    }
    parsed.set_query(None);
    if !kept.is_empty() {
        parsed.query_pairs_mut().extend_pairs(kept);
    }
    Ok((parsed.into(), file))
}

/// What weakens durability on this server, in words; empty when an acknowledged commit survives a power cut (I10).
///
/// # Errors
/// The database refused to tell.
pub async fn durability_warnings(db: &mut Db) -> anyhow::Result<Vec<String>> {
    let wanted: &[(&str, &[&str], &str)] = match db.backend() {
        Backend::Sqlite => return Ok(Vec::new()),
        Backend::Postgres => &[
            ("fsync", &["on"], "SELECT current_setting('fsync') AS value"),
            ("full_page_writes", &["on"], "SELECT current_setting('full_page_writes') AS value"),
            (
                "synchronous_commit",
                &["on", "remote_write", "remote_apply"],
                "SELECT current_setting('synchronous_commit') AS value",
            ),
        ],
        Backend::Mysql => &[
            (
                "innodb_flush_log_at_trx_commit",
                &["1"],
                "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR) AS value",
            ),
            ("innodb_doublewrite", &["1", "ON"], "SELECT CAST(@@innodb_doublewrite AS CHAR) AS value"),
        ],
    };
    let mut warnings = Vec::new();
    for (name, good, sql) in wanted {
        let query = diesel::sql_query(*sql);
        let row: SettingRow = super::on_backend!(db, conn => diesel_async::RunQueryDsl::get_result(query, conn).await)?;
        if !good.contains(&row.value.as_str()) {
            warnings.push(format!("{name} is {}: acknowledged messages can be lost in a power cut", row.value));
        }
    }
    Ok(warnings)
}

#[derive(QueryableByName)]
struct SettingRow {
    #[diesel(sql_type = Text)]
    value: String,
}
