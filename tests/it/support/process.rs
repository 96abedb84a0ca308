//! The real server as a process of its own, for tests that kill it, freeze it or watch its memory. Tests of behaviour
//! need no process.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::ports::ReservedPort;

/// A debug build on a busy machine migrates an empty database in a few seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Lines kept per process. A test that logs more looks at its end.
const MAX_LOG_LINES: usize = 20_000;

/// A server process; killed with this value.
pub struct ServerProcess {
    launch: Launch,
    port: ReservedPort,
    child: Child,
    /// End when the process has ended and everything it wrote is in the log.
    readers: Vec<JoinHandle<()>>,
    log: Arc<Mutex<Log>>,
}

/// How the process is started, again after `restart`.
#[derive(Clone)]
struct Launch {
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    data_dir: PathBuf,
}

#[derive(Default)]
struct Log {
    lines: VecDeque<String>,
    panics: Vec<String>,
}

impl ServerProcess {
    /// Starts the server with its data in `data_dir` and its settings in `environment` (`DATABASE_URL`, `NUDGE_…`), and
    /// waits until it is ready. The error holds the end of its log.
    pub async fn start(data_dir: &Path, environment: &[(&str, &str)]) -> anyhow::Result<ServerProcess> {
        Launch {
            program: env!("CARGO_BIN_EXE_nudge").into(),
            arguments: Vec::new(),
            environment: environment.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            data_dir: data_dir.to_owned(),
        }
        .start()
        .await
    }

    /// The same for a server that [`ServerProcess::limit_file_size`] is to meet: writes beyond the limit fail, where
    /// without this the kernel would end the process.
    pub async fn start_with_file_limits(
        data_dir: &Path,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<ServerProcess> {
        let command = format!("trap '' XFSZ; exec '{}'", env!("CARGO_BIN_EXE_nudge"));
        Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), command],
            environment: environment.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            data_dir: data_dir.to_owned(),
        }
        .start()
        .await
    }

    /// Lets no file of the process grow beyond so many bytes.
    pub fn limit_file_size(&self, bytes: Option<u64>) {
        let limit = bytes.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.to_string());
        // Only the soft limit, which can be lifted again.
        let arguments = [format!("--pid={}", self.child.id()), format!("--fsize={limit}:")];
        assert!(Command::new("prlimit").args(&arguments).status().unwrap().success(), "prlimit {arguments:?}");
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number)
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.finish_log();
    }

    /// Asks it to stop; see `wait_for_exit`.
    pub fn sigterm(&self) {
        self.signal("TERM");
    }

    /// Freezes it: connections stay open and nothing answers.
    pub fn sigstop(&self) {
        self.signal("STOP");
        // The signal takes a moment to reach every thread.
        while self.has_running_threads() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn has_running_threads(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let mut statuses = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
        statuses.any(|status| !status.contains("\nState:\tT") && !status.contains("\nState:\tZ"))
    }

    /// The end of `sigstop`.
    pub fn sigcont(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        // The shell's own kill: Debian has the program only in a package that may be missing.
        let command = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success(), "{command}");
    }

    /// How it ended, or an error with the end of its log where it has not within the limit.
    pub async fn wait_for_exit(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.finish_log();
                return Ok(status);
            }
            ensure!(Instant::now() < deadline, "still running after {limit:?}; its log:\n{}", self.log_tail());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Starts it again on the same port and data, after it has ended. The log goes on.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        ensure!(self.child.try_wait()?.is_some(), "the process has not ended");
        self.finish_log();
        (self.child, self.readers) = self.launch.spawn(self.port.number, &self.log)?;
        self.wait_until_ready().await
    }

    /// Resident memory.
    pub fn rss_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a running process has VmRSS");
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Open files and sockets.
    pub fn open_fds(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// The first kept line that contains the text. A running process's lines arrive a moment after they are written.
    pub async fn wait_for_line(&self, text: &str, limit: Duration) -> anyhow::Result<String> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(line) = self.log().into_iter().find(|line| line.contains(text)) {
                return Ok(line);
            }
            ensure!(Instant::now() < deadline, "no line with {text:?} within {limit:?}; its log:\n{}", self.log_tail());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What it wrote to stdout and stderr, as far as kept, in the order in which the lines were read. Complete once the
    /// process has ended.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().lines.iter().cloned().collect()
    }

    /// The lines that tell of a panic, since the first start and whether still in the log or not.
    pub fn panics(&self) -> Vec<String> {
        self.log.lock().unwrap().panics.clone()
    }

    fn finish_log(&mut self) {
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
    }

    fn log_tail(&self) -> String {
        let lines = self.log();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        // A proxy of the developer's environment must not be asked for 127.0.0.1.
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(1)).build()?;
        let ready_url = format!("{}/readyz", self.url());
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let response = client.get(&ready_url).send().await;
            // Looked at second: a process that ended says why, and one that runs holds the port.
            if let Some(status) = self.child.try_wait()? {
                self.finish_log();
                bail!("ended before it was ready ({status}); its log:\n{}", self.log_tail());
            }
            if response.is_ok_and(|response| response.status() == 200) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "not ready after {START_TIMEOUT:?}; its log:\n{}", self.log_tail());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Errors say that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Launch {
    async fn start(self) -> anyhow::Result<ServerProcess> {
        let mut attempts_left = 5;
        loop {
            let port = ReservedPort::find()?;
            let log = Arc::default();
            let (child, readers) = self.spawn(port.number, &log)?;
            let mut process = ServerProcess { launch: self.clone(), port, child, readers, log };
            attempts_left -= 1;
            match process.wait_until_ready().await {
                Ok(()) => return Ok(process),
                // Another program took the port between our look and the server's.
                Err(_) if attempts_left > 0 && process.log_tail().to_lowercase().contains("address already in use") => {
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn spawn(&self, port: u16, log: &Arc<Mutex<Log>>) -> anyhow::Result<(Child, Vec<JoinHandle<()>>)> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Neither the developer's environment nor a nudge.toml of the checkout may reach the server.
        for (key, _) in std::env::vars_os() {
            if let Some(key) = key.to_str().filter(|key| key.starts_with("NUDGE_") || key.ends_with("_URL")) {
                command.env_remove(key);
            }
        }
        command.current_dir(&self.data_dir).env("NUDGE_DATA_DIR", &self.data_dir);
        command.envs(self.environment.iter().cloned()).env("NUDGE_LISTEN", format!("127.0.0.1:{port}"));
        let mut child = command.spawn().with_context(|| format!("starting {}", self.program.display()))?;
        let readers = vec![
            collect_lines(child.stdout.take().context("piped above")?, log),
            collect_lines(child.stderr.take().context("piped above")?, log),
        ];
        Ok((child, readers))
    }
}

/// Reads to the end on a thread of its own: a full pipe would block the server.
fn collect_lines(output: impl Read + Send + 'static, log: &Arc<Mutex<Log>>) -> JoinHandle<()> {
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            let mut log = log.lock().unwrap();
            if line.contains("panicked at") && log.panics.len() < 100 {
                log.panics.push(line.clone());
            }
            if log.lines.len() == MAX_LOG_LINES {
                log.lines.pop_front();
            }
            log.lines.push_back(line);
        }
    })
}

mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;
    use tempfile::TempDir;

    /// Set in a process that plays the server.
    const ROLE: &str = "NUDGE_STAND_IN";

    /// Plays the server in a process of its own; in the test run proper it does nothing.
    #[test]
    fn support_stand_in() {
        let Ok(role) = std::env::var(ROLE) else { return };
        if role == "unlucky" && std::fs::File::create_new("first-attempt").is_ok() {
            eprintln!("Error: Address already in use (os error 98)");
            std::process::exit(1);
        }
        let listener = TcpListener::bind(std::env::var("NUDGE_LISTEN").unwrap()).unwrap();
        println!("stand-in is listening");
        eprintln!("thread 'main' panicked at a line of this test");
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /readyz "));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        }
    }

    async fn start_stand_in(data_dir: &TempDir, role: &str) -> anyhow::Result<ServerProcess> {
        let launch = Launch {
            program: std::env::current_exe()?,
            arguments: ["support::process::tests::support_stand_in", "--exact", "--nocapture"].map(String::from).into(),
            environment: vec![(ROLE.to_owned(), role.to_owned())],
            data_dir: data_dir.path().to_owned(),
        };
        launch.start().await
    }

    #[actix_web::test]
    async fn support_processes_obey_and_tell() {
        let data_dir = TempDir::new().unwrap();
        let mut process = start_stand_in(&data_dir, "server").await.unwrap();
        let url = process.url();
        assert!(process.rss_kb() > 100);
        assert!(process.open_fds() > 3);
        process.wait_for_line("stand-in is listening", Duration::from_secs(10)).await.unwrap();

        process.sigstop();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_millis(200)).build().unwrap();
        assert!(client.get(format!("{url}/readyz")).send().await.is_err());
        assert!(process.wait_for_exit(Duration::from_millis(50)).await.is_err());
        process.sigcont();
        process.wait_until_ready().await.unwrap();

        process.kill9();
        assert_eq!(process.panics().len(), 1);
        process.restart().await.unwrap();
        assert_eq!(process.url(), url);
        process.sigterm();
        let status = process.wait_for_exit(Duration::from_secs(10)).await.unwrap();
        assert!(!status.success());
        assert_eq!(process.panics().len(), 2);
    }

    #[actix_web::test]
    async fn support_processes_try_another_port() {
        let data_dir = TempDir::new().unwrap();
        start_stand_in(&data_dir, "unlucky").await.unwrap();
        assert!(data_dir.path().join("first-attempt").exists());
    }

    #[actix_web::test]
    async fn support_a_server_that_does_not_start_tells_why() {
        let data_dir = TempDir::new().unwrap();
        let Err(error) = ServerProcess::start(data_dir.path(), &[("NUDGE_NO_SUCH_KEY", "1")]).await else {
            panic!("the server takes an unknown key");
        };
        assert!(error.to_string().contains("ended before it was ready"), "{error:#}");
    }
}
