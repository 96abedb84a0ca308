//! The chromedriver of one browser: a child process on a port of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::PATIENCE;

/// A running chromedriver. Dropping it ends it, and the browser that it started.
pub struct Chromedriver {
    child: Child,
    port: u16,
}

impl Chromedriver {
    pub fn start() -> Chromedriver {
        let mut command = Command::new("chromedriver");
        command.args(["--port=0"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("chromedriver is missing; ./scripts/test installs it");
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        // "ChromeDriver was started successfully on port 41313."
        let line =
            lines.find(|line| line.contains("started successfully on port")).expect("chromedriver did not start");
        let port = line.trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap();
        // Read to the end, or chromedriver blocks once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        Chromedriver { child, port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends its browsers, then itself.
    fn shut_down(&mut self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        write!(stream, "GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Chromedriver {
    fn drop(&mut self) {
        let _ = self.shut_down();
        // Errors say that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
