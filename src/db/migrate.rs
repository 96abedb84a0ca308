//! Embedded migrations, one folder for each database, applied under a lock so that several nodes may start at once.

use anyhow::{Context, anyhow};
use diesel::Connection as _;
use diesel::backend::Backend as DieselBackend;
use diesel_async::async_connection_wrapper::AsyncConnectionWrapper;
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use super::connect::{Role, Source};
use super::{Backend, Connection};

const SQLITE: EmbeddedMigrations = embed_migrations!("migrations/sqlite");
const POSTGRES: EmbeddedMigrations = embed_migrations!("migrations/postgres");
const MYSQL: EmbeddedMigrations = embed_migrations!("migrations/mysql");

/// Brings the schema up to date; the names of the migrations that were applied.
///
/// # Errors
/// The database cannot be reached, or a migration fails; on MySQL, whose DDL commits by itself, a migration that
/// failed halfway must be mended by hand.
pub async fn migrate(source: &Source) -> anyhow::Result<Vec<String>> {
    if let Some(folder) = source.sqlite_path().as_deref().and_then(|path| path.parent())
        && !folder.as_os_str().is_empty()
    {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    // diesel's migration harness is synchronous and drives an async connection by blocking: not on an actix thread.
    let db = source.connect(Role::Writer).await?;
    let path = source.sqlite_path();
    let applied = tokio::task::spawn_blocking(move || match db.connection {
        Connection::Sqlite(_) => {
            let path = path.context("no path in sqlite:// URL")?;
            run(&mut diesel::SqliteConnection::establish(&path.to_string_lossy())?, SQLITE)
        }
        Connection::Postgres(connection) => {
            let mut connection = AsyncConnectionWrapper::<AsyncPgConnection>::from(connection);
            lock(&mut connection, Backend::Postgres)?;
            run(&mut connection, POSTGRES)
        }
        Connection::Mysql(connection) => {
            let mut connection = AsyncConnectionWrapper::<AsyncMysqlConnection>::from(connection);
            lock(&mut connection, Backend::Mysql)?;
            run(&mut connection, MYSQL)
        }
    });
    applied.await?
}

/// Waits for the right to migrate; it ends with the connection.
fn lock(connection: &mut impl diesel::connection::SimpleConnection, backend: Backend) -> anyhow::Result<()> {
    let sql = match backend {
        Backend::Sqlite => return Ok(()),
        Backend::Postgres => {
            "SET statement_timeout = 0; SET lock_timeout = '60s'; \
             SET idle_in_transaction_session_timeout = 0; SELECT pg_advisory_lock(7263443)"
        }
        Backend::Mysql => "SELECT GET_LOCK('nudge.migrate', 60)",
    };
    connection.batch_execute(sql).context("another node is migrating")
}

fn run<C, DB>(connection: &mut C, migrations: EmbeddedMigrations) -> anyhow::Result<Vec<String>>
where
    C: MigrationHarness<DB>,
    DB: DieselBackend,
{
    let applied =
        connection.run_pending_migrations(migrations).map_err(|error| anyhow!("migration failed: {error}"))?;
    Ok(applied.iter().map(ToString::to_string).collect())
}

/// Undoes every migration (for the test that each `down.sql` is right).
///
/// # Errors
/// As [`migrate`].
pub async fn revert_all(source: &Source) -> anyhow::Result<()> {
    let db = source.connect(Role::Writer).await?;
    let path = source.sqlite_path();
    let reverted = tokio::task::spawn_blocking(move || {
        fn revert<DB: DieselBackend>(
            connection: &mut impl MigrationHarness<DB>,
            migrations: EmbeddedMigrations,
        ) -> anyhow::Result<()> {
            connection.revert_all_migrations(migrations).map_err(|error| anyhow!("revert failed: {error}"))?;
            Ok(())
        }
        match db.connection {
            Connection::Sqlite(_) => {
                let path = path.context("no path in sqlite:// URL")?;
                revert(&mut diesel::SqliteConnection::establish(&path.to_string_lossy())?, SQLITE)
            }
            Connection::Postgres(connection) => {
                revert(&mut AsyncConnectionWrapper::<AsyncPgConnection>::from(connection), POSTGRES)
            }
            Connection::Mysql(connection) => {
                revert(&mut AsyncConnectionWrapper::<AsyncMysqlConnection>::from(connection), MYSQL)
            }
        }
    });
    reverted.await?
}
