//! The load simulator behind `nudge-load`: people who chat over many devices, and a ledger that compares every
//! message that was acknowledged with what every device got. It is built on [`crate::client`] and knows the server by
//! its wire protocol alone.
//!
//! ```text
//! options → scenario (the plan) → run: provision → fleet connects → senders and activity → ledger → report
//! each device: client → recorder → ledger, measure
//! ```
//!
//! `docs/load.md` is the manual.

mod activity;
mod fleet;
mod ledger;
mod measure;
mod monitor;
mod network;
mod options;
mod progress;
mod provision;
mod recorder;
mod report;
mod run;
mod scenario;
mod scrape;
mod sender;
mod victim;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use rustix::process::Signal;
use tokio::net::lookup_host;

use self::network::Relay;
use self::victim::{Server, Violence};
use crate::client::Endpoint;

pub use ledger::Columns;
pub use options::{Options, Scenario};
pub use progress::Progress;
pub use report::{LedgerReport, Report, page, table};
pub use run::{Access, Run};
pub use scenario::Plan;

/// Does what a command line says. The load ends early when `stop` ends.
///
/// # Errors
/// The run was not possible: no server, a refusal, too few descriptors, or a device that could not pull at the end.
pub async fn run(options: &Options, stop: impl Future<Output = ()>) -> anyhow::Result<Report> {
    let plan = Plan::new(options)?;
    let url = options.url.trim_end_matches('/').to_owned();
    let access = Access {
        device_url: url.clone(),
        metrics_url: options.metrics_url.clone().unwrap_or_else(|| format!("{url}/metrics")),
        api_key: options.api_key.clone().or_else(|| std::env::var("NUDGE_API_KEY").ok()),
        url,
    };
    let server = match &options.server_command {
        Some(command) => Some(Server::start(command, Endpoint::new(&access.url)?).await?),
        None => None,
    };
    let report = run_against(plan, access, server.clone(), options, stop).await;
    if let Some(server) = server {
        server.end(Signal::TERM).await;
    }
    report
}

async fn run_against(
    plan: Plan,
    mut access: Access,
    server: Option<Arc<Server>>,
    options: &Options,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Report> {
    let seed = plan.seed;
    let mut relay = match plan.faulty_network {
        true => Some(Relay::start(address_of(&access.url).await?, seed).await?),
        false => None,
    };
    if let Some(relay) = &relay {
        access.device_url = format!("http://{}", relay.address());
    }
    let mut run = Run::prepare(plan, &access, Progress::new(options.quiet)).await?;
    let violence = Violence::begin(server, options.server_pid, seed)?;
    if let Some(relay) = &mut relay {
        relay.begin_faults();
    }
    run.load(stop).await;
    if let Some(relay) = &mut relay {
        run.note_faults(relay.end_faults());
    }
    run.note_faults(violence.end().await?);
    run.settle().await;
    run.conclude().await
}

/// Where a URL leads.
async fn address_of(url: &str) -> anyhow::Result<SocketAddr> {
    let url = url::Url::parse(url).context("the server's address is no URL")?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let mut addresses = lookup_host((host, url.port_or_known_default().unwrap_or(80))).await?;
    addresses.next().context("the server's host has no address")
}
