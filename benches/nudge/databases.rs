//! A migrated database for a measurement, on each engine that there is.

use anyhow::Context;
use nudge::db::connect::{Role, Source};
use nudge::db::{Backend, migrate};
use tempfile::TempDir;
use url::Url;

pub struct Database {
    pub name: &'static str,
    pub backend: Backend,
    pub url: String,
    pub source: Source,
    /// The server, and what to drop there. None: SQLite, whose folder goes.
    server: Option<(Source, String)>,
    _folder: Option<TempDir>,
}

/// Fresh databases, SQLite first. The file of SQLite is in the target folder: on a disk, as in real life.
pub async fn create_all() -> anyhow::Result<Vec<Database>> {
    let mut databases = vec![create_sqlite().await?];
    for (name, backend, variable) in
        [("PostgreSQL", Backend::Postgres, "TEST_POSTGRES_URL"), ("MariaDB", Backend::Mysql, "TEST_MYSQL_URL")]
    {
        match std::env::var(variable) {
            Ok(url) => databases.push(create_on_server(name, backend, &url).await?),
            Err(_) => println!("{variable} is not set: {name} is left out"),
        }
    }
    Ok(databases)
}

pub async fn create_sqlite() -> anyhow::Result<Database> {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let url = format!("sqlite://{}", folder.path().join("bench.db").display());
    let source = Source::parse(&url.clone().into())?;
    migrate::migrate(&source).await?;
    Ok(Database { name: "SQLite", backend: Backend::Sqlite, url, source, server: None, _folder: Some(folder) })
}

async fn create_on_server(name: &'static str, backend: Backend, admin: &str) -> anyhow::Result<Database> {
    let database = format!("nudge_bench_{:08x}", rand::random::<u32>());
    let server = Source::parse(&admin.to_owned().into())?;
    let mut db = server.connect(Role::Writer).await.with_context(|| format!("connecting to {name}"))?;
    db.run_text(&format!("CREATE DATABASE {database}")).await?;
    let mut url = Url::parse(admin)?;
    url.set_path(&database);
    let url: String = url.into();
    let source = Source::parse(&url.clone().into())?;
    migrate::migrate(&source).await?;
    Ok(Database { name, backend, url, source, server: Some((server, database)), _folder: None })
}

impl Database {
    /// Removes it; every connection must be closed or idle.
    pub async fn remove(self) -> anyhow::Result<()> {
        let Some((server, database)) = self.server else { return Ok(()) };
        let force = if self.backend == Backend::Postgres { " WITH (FORCE)" } else { "" };
        server.connect(Role::Writer).await?.run_text(&format!("DROP DATABASE {database}{force}")).await?;
        Ok(())
    }
}
