//! A PostgreSQL or MariaDB server of a test's own, for tests that stop, kill or freeze it. For all others the databases
//! of `databases.rs` are enough and much cheaper.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;

use super::databases::Backend;

/// What can be done to a database server.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Start,
    /// In order, as an administrator would.
    Stop,
    Restart,
    /// SIGKILL to all its processes.
    Kill,
    /// SIGSTOP: connections stay open and nothing answers, as with a dead host.
    Freeze,
    /// The end of `Freeze`.
    Thaw,
}

/// A running server with durability on; killed and removed with this value.
pub struct DatabaseServer {
    /// The server's own database, for a role that may create others.
    pub url: String,
    folder: TempDir,
}

impl DatabaseServer {
    /// Panics for SQLite, which has no server, and where the server does not start.
    pub async fn start(backend: Backend) -> DatabaseServer {
        let started = tokio::task::spawn_blocking(move || Self::try_start(backend)).await;
        match started.expect("starting a database server does not panic") {
            Ok(server) => server,
            Err(error) => panic!("no {backend} server: {error:#}"),
        }
    }

    fn try_start(backend: Backend) -> anyhow::Result<DatabaseServer> {
        ensure!(backend != Backend::Sqlite, "there is no such thing");
        // Servers in this folder are stopped at the end of the run, also where a test could not.
        let parent = std::env::var_os("TEST_DATABASES_DIR").context(
            "TEST_DATABASES_DIR is not set; run the tests with ./scripts/test, or eval \"$(./scripts/databases up)\" first",
        )?;
        let folder = tempfile::Builder::new().prefix("server-").tempdir_in(parent)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/databases");
        let url = run(Command::new(script).arg(backend.name()).arg(folder.path()))?;
        Ok(DatabaseServer { url: url.trim().to_owned(), folder })
    }

    /// Returns when it is done: after `Start` the server answers, after `Stop` and `Kill` no process is left.
    pub async fn control(&self, action: Action) {
        let control = self.control_script();
        let done =
            tokio::task::spawn_blocking(move || run(Command::new(control).arg(format!("{action:?}").to_lowercase())));
        done.await.expect("controlling a database server does not panic").unwrap();
    }

    fn control_script(&self) -> PathBuf {
        self.folder.path().join("ctl")
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new(self.control_script()).arg("discard")) {
            eprintln!("{error:#}");
        }
    }
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

mod tests {
    use super::*;
    use std::time::Duration;

    async fn answers(url: &str) -> bool {
        let asked = async {
            if url.starts_with("postgres") {
                tokio_postgres::connect(url, tokio_postgres::NoTls).await.is_ok()
            } else {
                mysql_async::Conn::from_url(url).await.is_ok()
            }
        };
        tokio::time::timeout(Duration::from_secs(2), asked).await.unwrap_or(false)
    }

    async fn obeys(backend: Backend) {
        let server = DatabaseServer::start(backend).await;
        assert!(answers(&server.url).await);
        for (down, up) in [(Action::Stop, Action::Start), (Action::Kill, Action::Start), (Action::Freeze, Action::Thaw)]
        {
            server.control(down).await;
            assert!(!answers(&server.url).await, "answers after {down:?}");
            server.control(up).await;
            assert!(answers(&server.url).await, "does not answer after {up:?}");
        }
        server.control(Action::Restart).await;
        assert!(answers(&server.url).await);

        let url = server.url.clone();
        drop(server);
        assert!(!answers(&url).await);
    }

    #[actix_web::test]
    async fn support_postgres_servers_obey() {
        obeys(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn support_mysql_servers_obey() {
        obeys(Backend::Mysql).await;
    }
}
