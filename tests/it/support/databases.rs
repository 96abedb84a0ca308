//! A database of its own for each test, on each of the three engines. Starts no database server: `scripts/test` does.

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail};
use futures_util::future::LocalBoxFuture;
use mysql_async::prelude::Queryable;
use rand::Rng;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use url::Url;

/// The engines that every test of data runs on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Backend {
    Sqlite,
    Postgres,
    Mysql,
}

impl Backend {
    pub const ALL: [Backend; 3] = [Backend::Sqlite, Backend::Postgres, Backend::Mysql];

    /// The name of the engine's folder below `migrations`.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
            Backend::Mysql => "mysql",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Turns async functions that take a `Backend` into three tests each: `name::sqlite`, `name::postgres`, `name::mysql`.
/// The functions stay outside, where rustfmt sees them; one that is not listed is an unused function to the compiler.
macro_rules! on_every_database {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use $crate::support::databases::Backend;

            #[actix_web::test]
            async fn sqlite() {
                super::$name(Backend::Sqlite).await;
                $crate::support::databases::stop_actors().await;
            }

            #[actix_web::test]
            async fn postgres() {
                super::$name(Backend::Postgres).await;
                $crate::support::databases::stop_actors().await;
            }

            #[actix_web::test]
            async fn mysql() {
                super::$name(Backend::Mysql).await;
                $crate::support::databases::stop_actors().await;
            }
        }
    )+};
}
pub(crate) use on_every_database;

/// Stops the actors of a test's servers. Their threads and connections would stay until the process ends, and a
/// thousand tests have more of them than a process may have descriptors.
pub async fn stop_actors() {
    actix::System::current().stop();
    // Its controller is a task of this thread.
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

/// Brings the empty database behind the URL to the schema. All connections to it are closed when it is done.
pub type Migrate = for<'a> fn(&'a str) -> LocalBoxFuture<'a, anyhow::Result<()>>;

/// A schema that databases are made with. It is built once per database server and copied for each test.
#[derive(Clone, Copy)]
pub struct Schema {
    /// Tells this schema's template from those of others.
    pub name: &'static str,
    pub migrate: Migrate,
}

/// A migrated database that exists as long as this value.
pub struct TestDatabase {
    pub backend: Backend,
    pub url: String,
    /// The database's name and where to drop it. None: SQLite, whose folder goes.
    server: Option<(String, Url)>,
    _folder: Option<TempDir>,
}

impl TestDatabase {
    pub async fn create(backend: Backend, schema: Schema) -> TestDatabase {
        match Self::try_create(backend, schema).await {
            Ok(database) => database,
            Err(error) => panic!("no {backend} database: {error:#}"),
        }
    }

    async fn try_create(backend: Backend, schema: Schema) -> anyhow::Result<TestDatabase> {
        if backend == Backend::Sqlite {
            let folder = TempDir::new()?;
            let url = format!("sqlite://{}", folder.path().join("nudge.db").display());
            (schema.migrate)(&url).await.context("migrating")?;
            return Ok(TestDatabase { backend, url, server: None, _folder: Some(folder) });
        }
        let admin = admin_url(backend)?;
        let template = format!("nudge_template_{}_{:.16}", schema.name, migrations_hash(backend)?);
        let name = format!("nudge_test_{:016x}", rand::rng().random::<u64>());
        match backend {
            Backend::Postgres => postgres::copy_template(&admin, &template, &name, schema.migrate).await?,
            _ => mysql::copy_template(&admin, &template, &name, schema.migrate).await?,
        }
        let url = with_database(&admin, &name);
        Ok(TestDatabase { backend, url, server: Some((name, admin)), _folder: None })
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some((name, admin)) = self.server.take() else { return };
        let backend = self.backend;
        // A thread, because this runs inside the test's runtime; joined, because the process may end with the test.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                match backend {
                    Backend::Postgres => postgres::drop_database(&admin, &name).await,
                    _ => mysql::drop_database(&admin, &name).await,
                }
            })
        });
        match dropping.join() {
            Ok(Ok(())) => {}
            // The test may have failed for the same reason, and a second panic would hide it.
            Ok(Err(error)) => eprintln!("cannot drop a {backend} database: {error:#}"),
            Err(_) => eprintln!("cannot drop a {backend} database: panicked"),
        }
    }
}

/// The URL of the database server that `scripts/test` started, with a role that may create databases.
fn admin_url(backend: Backend) -> anyhow::Result<Url> {
    let variable = format!("TEST_{}_URL", backend.name().to_uppercase());
    let Ok(url) = std::env::var(&variable) else {
        bail!("{variable} is not set; run the tests with ./scripts/test, or eval \"$(./scripts/databases up)\" first");
    };
    Url::parse(&url).with_context(|| variable)
}

fn with_database(admin: &Url, name: &str) -> String {
    let mut url = admin.clone();
    url.set_path(name);
    url.into()
}

/// Names and contents of the engine's migrations, so that a template of an older schema is not found.
fn migrations_hash(backend: Backend) -> anyhow::Result<String> {
    let mut hash = Sha256::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(backend.name());
    if folder.exists() {
        hash_folder(&folder, &mut hash)?;
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn hash_folder(folder: &Path, hash: &mut Sha256) -> anyhow::Result<()> {
    let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        hash.update(path.to_string_lossy().as_bytes());
        if path.is_dir() {
            hash_folder(&path, hash)?;
        } else {
            hash.update(std::fs::read(&path)?);
        }
    }
    Ok(())
}

mod postgres {
    use super::*;
    use std::time::Duration;
    use tokio_postgres::error::SqlState;
    use tokio_postgres::{Client, NoTls};

    /// Makes the database `name` from the template, and the template where it does not exist yet.
    pub async fn copy_template(admin: &Url, template: &str, name: &str, migrate: Migrate) -> anyhow::Result<()> {
        let client = connect(admin.as_str()).await?;
        // Held by the connection, so it cannot outlive a test that is killed. Other tests may be other processes.
        client.execute("SELECT pg_advisory_lock(hashtext($1))", &[&template]).await?;
        if client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&template]).await?.is_none() {
            build_template(&client, admin, template, migrate).await.context("building the template")?;
        }
        // Tests copy side by side, so not under the lock.
        client.execute("SELECT pg_advisory_unlock(hashtext($1))", &[&template]).await?;
        client.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await?;
        Ok(())
    }

    /// Under another name until it is complete: a test that is killed meanwhile leaves no half template.
    async fn build_template(client: &Client, admin: &Url, template: &str, migrate: Migrate) -> anyhow::Result<()> {
        let building = format!("{template}_building");
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {building} WITH (FORCE)")).await?;
        client.batch_execute(&format!("CREATE DATABASE {building}")).await?;
        migrate(&with_database(admin, &building)).await?;
        // The server takes a moment to notice that the migration's connections are closed.
        for _ in 0..200 {
            match client.batch_execute(&format!("ALTER DATABASE {building} RENAME TO {template}")).await {
                Err(error) if error.code() == Some(&SqlState::OBJECT_IN_USE) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                result => return Ok(result?),
            }
        }
        bail!("the migration leaves connections open");
    }

    /// Also while the test's server is still connected to it.
    pub async fn drop_database(admin: &Url, name: &str) -> anyhow::Result<()> {
        let client = connect(admin.as_str()).await?;
        Ok(client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?)
    }

    pub async fn connect(url: &str) -> anyhow::Result<Client> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        // Ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }
}

mod mysql {
    use super::*;
    use mysql_async::Conn;

    /// Makes the database `name` from the template, and the template where it does not exist yet. Copying the tables
    /// takes a third of the time of the migrations, which alter them many times over.
    pub async fn copy_template(admin: &Url, template: &str, name: &str, migrate: Migrate) -> anyhow::Result<()> {
        let mut conn = connect(admin.as_str()).await?;
        // Held by the connection, so it cannot outlive a test that is killed. Other tests may be other processes.
        let locked: Option<i64> = conn.exec_first("SELECT GET_LOCK(?, 60)", (template,)).await?;
        if locked != Some(1) {
            bail!("the lock of the template {template} is not to be had");
        }
        build_template(&mut conn, admin, template, migrate).await.context("building the template")?;
        conn.exec_drop("SELECT RELEASE_LOCK(?)", (template,)).await?;
        copy_tables(&mut conn, template, name).await.context("copying the template")?;
        Ok(conn.disconnect().await?)
    }

    /// A second, empty database says that the template is complete: databases cannot be renamed here, and a test that
    /// is killed meanwhile leaves a half template.
    async fn build_template(conn: &mut Conn, admin: &Url, template: &str, migrate: Migrate) -> anyhow::Result<()> {
        let complete = format!("{template}_complete");
        let found: Option<String> = conn.exec_first("SHOW DATABASES WHERE `Database` = ?", (&complete,)).await?;
        if found.is_some() {
            return Ok(());
        }
        conn.query_drop(format!("DROP DATABASE IF EXISTS {template}")).await?;
        conn.query_drop(format!("CREATE DATABASE {template}")).await?;
        migrate(&with_database(admin, template)).await?;
        conn.query_drop(format!("CREATE DATABASE {complete}")).await?;
        Ok(())
    }

    /// Tables with their keys and rows (sequences, the list of migrations that ran); refuses what it would leave out.
    async fn copy_tables(conn: &mut Conn, template: &str, name: &str) -> anyhow::Result<()> {
        let triggers: Vec<mysql_async::Row> = conn.query(format!("SHOW TRIGGERS FROM {template}")).await?;
        if !triggers.is_empty() {
            bail!("triggers are not copied yet");
        }
        conn.query_drop(format!("CREATE DATABASE {name}")).await?;
        // Foreign keys may point at tables that come later.
        conn.query_drop(format!("USE {name}; SET foreign_key_checks = 0")).await?;
        let tables: Vec<(String, String)> = conn.query(format!("SHOW FULL TABLES FROM {template}")).await?;
        for (table, kind) in tables {
            if kind != "BASE TABLE" {
                bail!("{table}: a {kind} is not copied yet");
            }
            let shown: Option<(String, String)> =
                conn.query_first(format!("SHOW CREATE TABLE {template}.`{table}`")).await?;
            let (_, definition) = shown.context("a table without a definition")?;
            conn.query_drop(definition).await?;
            conn.query_drop(format!("INSERT INTO `{table}` SELECT * FROM {template}.`{table}`")).await?;
        }
        Ok(())
    }

    /// Also while the test's server is still connected to it: its open transactions would block the drop.
    pub async fn drop_database(admin: &Url, name: &str) -> anyhow::Result<()> {
        let mut conn = connect(admin.as_str()).await?;
        let users: Vec<u64> = conn.exec("SELECT id FROM information_schema.processlist WHERE db = ?", (name,)).await?;
        for user in users {
            // An error says that this connection has ended by itself.
            let _ = conn.query_drop(format!("KILL {user}")).await;
        }
        conn.query_drop("SET lock_wait_timeout = 10").await?;
        conn.query_drop(format!("DROP DATABASE IF EXISTS {name}")).await?;
        Ok(conn.disconnect().await?)
    }

    pub async fn connect(url: &str) -> anyhow::Result<Conn> {
        Ok(Conn::from_url(url).await?)
    }
}

mod tests {
    use super::*;
    use diesel_async::{AsyncConnection, SimpleAsyncConnection};
    use futures_util::FutureExt;

    const SCHEMA: Schema = Schema { name: "support", migrate };

    fn migrate(url: &str) -> LocalBoxFuture<'_, anyhow::Result<()>> {
        execute(url, "CREATE TABLE seed (id INTEGER PRIMARY KEY); INSERT INTO seed VALUES (1)").boxed_local()
    }

    async fn execute(url: &str, statements: &str) -> anyhow::Result<()> {
        match Url::parse(url)?.scheme() {
            "postgres" => Ok(postgres::connect(url).await?.batch_execute(statements).await?),
            "mysql" => {
                let mut conn = mysql::connect(url).await?;
                conn.query_drop(statements).await?;
                Ok(conn.disconnect().await?)
            }
            _ => {
                let path = url.strip_prefix("sqlite://").context("no SQLite URL")?;
                type Sqlite = diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>;
                Ok(Sqlite::establish(path).await?.batch_execute(statements).await?)
            }
        }
    }

    crate::support::databases::on_every_database! { support_databases_are_isolated, support_databases_are_dropped_while_in_use }

    async fn support_databases_are_isolated(backend: Backend) {
        let (one, other) = tokio::join!(TestDatabase::create(backend, SCHEMA), TestDatabase::create(backend, SCHEMA));
        assert_ne!(one.url, other.url);
        // Refused where the template's row is missing (1) or where the other database's row is seen (2).
        for database in [&one, &other] {
            execute(&database.url, "INSERT INTO seed SELECT id + 1 FROM seed WHERE id = 1").await.unwrap();
            assert!(execute(&database.url, "INSERT INTO seed VALUES (1)").await.is_err());
            assert!(execute(&database.url, "INSERT INTO seed VALUES (2)").await.is_err());
        }
    }

    async fn support_databases_are_dropped_while_in_use(backend: Backend) {
        let database = TestDatabase::create(backend, SCHEMA).await;
        let url = database.url.clone();
        let open_transaction = "BEGIN; INSERT INTO seed VALUES (7)";
        match backend {
            Backend::Sqlite => drop(database),
            Backend::Postgres => {
                let client = postgres::connect(&url).await.unwrap();
                client.batch_execute(open_transaction).await.unwrap();
                drop(database);
            }
            Backend::Mysql => {
                let mut conn = mysql::connect(&url).await.unwrap();
                conn.query_drop(open_transaction).await.unwrap();
                drop(database);
            }
        }
        assert!(execute(&url, "INSERT INTO seed VALUES (8)").await.is_err(), "{url} still exists");
    }

    #[test]
    fn support_names_of_engines_are_those_of_their_urls() {
        for backend in Backend::ALL {
            assert!(matches!(backend.to_string().as_str(), "sqlite" | "postgres" | "mysql"));
        }
    }
}
