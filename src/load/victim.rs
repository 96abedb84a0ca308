//! The server process as a victim: stopped for longer than a heartbeat and continued, or killed and started again.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::client::Endpoint;

/// Longer than devices of a chaos run wait for a sign of life.
const STOP: (Duration, Duration) = (Duration::from_secs(6), Duration::from_secs(10));
const STOP_GAP: (Duration, Duration) = (Duration::from_secs(8), Duration::from_secs(20));
const KILL_GAP: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(15));
/// How long the server stays away after a kill.
const AWAY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(3));
/// How long a server may take to start, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that this program has started. Its group is killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    command: String,
    endpoint: Endpoint,
    child: Mutex<Option<Child>>,
}

impl Server {
    /// Starts a command by the shell and waits until the server answers.
    ///
    /// # Errors
    /// It does not start, or something else answers there already.
    pub async fn start(command: &str, endpoint: Endpoint) -> anyhow::Result<Arc<Server>> {
        if is_up(&endpoint).await {
            bail!("a server answers already; give --server-pid, or stop it");
        }
        let server = Server { command: command.to_owned(), endpoint, child: Mutex::new(None) };
        server.launch().await?;
        Ok(Arc::new(server))
    }

    async fn launch(&self) -> anyhow::Result<()> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("the server's command cannot be run")?;
        *self.child.lock().await = Some(child);
        self.until_up().await
    }

    async fn until_up(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !is_up(&self.endpoint).await {
            if let Some(child) = self.child.lock().await.as_mut()
                && let Some(status) = child.try_wait()?
            {
                bail!("the server's command ended with {status}");
            }
            if Instant::now() > deadline {
                bail!("the server does not answer");
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Ends the server and whatever its command has started.
    pub async fn end(&self, signal: Signal) {
        let Some(mut child) = self.child.lock().await.take() else { return };
        if let Some(group) = child.id().and_then(pid) {
            let _ = kill_process_group(group, signal);
        }
        if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self.child.get_mut().as_ref();
        if let Some(group) = child.and_then(Child::id).and_then(pid) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn is_up(endpoint: &Endpoint) -> bool {
    endpoint.get_text("/healthz").await.is_ok()
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// What happens to the server while the load runs.
#[derive(Debug, Default)]
pub struct Violence {
    tasks: Vec<JoinHandle<()>>,
    counts: Arc<std::sync::Mutex<BTreeMap<String, u64>>>,
    server: Option<Arc<Server>>,
    stopped: Option<Pid>,
}

impl Violence {
    /// Begins to stop the process of this id, or to kill the server.
    ///
    /// # Errors
    /// There is no such process.
    pub fn begin(server: Option<Arc<Server>>, process: Option<u32>, seed: u64) -> anyhow::Result<Violence> {
        let mut violence = Violence { server, ..Violence::default() };
        if let Some(id) = process {
            let pid = pid(id).filter(|pid| rustix::process::test_kill_process(*pid).is_ok());
            let pid = pid.with_context(|| format!("there is no process {id} of ours"))?;
            violence.stopped = Some(pid);
            violence.tasks.push(tokio::spawn(stop_now_and_then(pid, seed, violence.counts.clone())));
        }
        if let Some(server) = &violence.server {
            let (server, counts) = (server.clone(), violence.counts.clone());
            violence.tasks.push(tokio::spawn(kill_now_and_then(server, seed, counts)));
        }
        Ok(violence)
    }

    /// Ends it, with a server that runs. How often what has happened.
    ///
    /// # Errors
    /// The server does not start again.
    pub async fn end(self) -> anyhow::Result<BTreeMap<String, u64>> {
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
        if let Some(pid) = self.stopped {
            let _ = kill_process(pid, Signal::CONT);
        }
        if let Some(server) = self.server {
            let is_gone = server.child.lock().await.is_none();
            if is_gone { server.launch().await? } else { server.until_up().await? }
        }
        Ok(self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone())
    }
}

type Counts = std::sync::Mutex<BTreeMap<String, u64>>;

fn count(counts: &Counts, kind: &str) {
    *counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).entry(kind.to_owned()).or_default() += 1;
}

fn between((from, to): (Duration, Duration), random: &mut StdRng) -> Duration {
    from + (to - from).mul_f64(random.random())
}

async fn stop_now_and_then(pid: Pid, seed: u64, counts: Arc<Counts>) {
    let mut random = StdRng::seed_from_u64(seed ^ 1);
    loop {
        sleep(between(STOP_GAP, &mut random)).await;
        if kill_process(pid, Signal::STOP).is_err() {
            return;
        }
        count(&counts, "server stopped for a while");
        sleep(between(STOP, &mut random)).await;
        let _ = kill_process(pid, Signal::CONT);
    }
}

async fn kill_now_and_then(server: Arc<Server>, seed: u64, counts: Arc<Counts>) {
    let mut random = StdRng::seed_from_u64(seed ^ 2);
    loop {
        sleep(between(KILL_GAP, &mut random)).await;
        server.end(Signal::KILL).await;
        count(&counts, "server killed and restarted");
        sleep(between(AWAY, &mut random)).await;
        if server.launch().await.is_err() {
            count(&counts, "server did not start again");
            return;
        }
    }
}
