//! Measurements of Nudge: `cargo bench -- NAME`, one of [`ALL`]; without a name all of them. What they showed, and how to
//! read it, is in docs/performance.md.
//!
//! SQLite is always measured; PostgreSQL and MariaDB where `TEST_POSTGRES_URL` and `TEST_MYSQL_URL` are set
//! (`TMPDIR=/tmp scripts/databases up`: their data must be on a disk, or commits cost nothing). Every figure has its
//! baseline in the same run, because the speed of a shared machine changes from minute to minute.
#![allow(clippy::indexing_slicing)]

mod callers;
mod child;
mod databases;
mod fanout;
mod group_pull;
mod group_sends;
mod http_sends;
mod idle;
mod large_group;
mod machine;
mod memory;
mod people;
mod plan;
mod pull;
mod raw_server;
mod sockets;
mod statements;
mod writer;

use anyhow::bail;

/// What can be measured.
const ALL: [&str; 9] =
    ["writer", "http-sends", "fanout", "memory", "idle", "pull", "group-sends", "group-pull", "large-group"];

fn main() -> anyhow::Result<()> {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [child::ROLE, kind, rest @ ..] = arguments.as_slice() {
        return child::serve(kind, rest);
    }
    let names = if arguments.is_empty() { ALL.to_vec() } else { arguments };
    statements::watch_connections()?;
    actix_web::rt::System::new().block_on(async {
        for name in names {
            println!("\n== {name}; load {}", machine::load());
            match name {
                "writer" => writer::measure().await?,
                "http-sends" => http_sends::measure().await?,
                "idle" => idle::measure().await?,
                "fanout" => fanout::measure().await?,
                "memory" => memory::measure().await?,
                "pull" => pull::measure().await?,
                "group-sends" => group_sends::measure().await?,
                "group-pull" => group_pull::measure().await?,
                "large-group" => large_group::measure().await?,
                other => bail!("nothing is called {other}; there are {ALL:?}"),
            }
        }
        Ok(())
    })
}
