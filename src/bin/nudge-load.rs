//! The `nudge-load` command: a load simulator for Nudge. Its parts are in `nudge::load`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use nudge::load::{self, Options, Report};

const NOT_CLEAN: u8 = 1;
const COULD_NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(report) if report.ledger.is_clean => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(NOT_CLEAN),
        Err(error) => {
            eprintln!("nudge-load: {error:#}");
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

fn run(options: &Options) -> anyhow::Result<Report> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or(cores / 2).max(1);
    let mut runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let report = runtime.worker_threads(threads).enable_all().build()?.block_on(load::run(options, interrupted()))?;
    let json = options.json.as_deref();
    if json == Some(Path::new("-")) {
        println!("{}", report.json()?);
    } else {
        println!("{}", load::table(&report));
    }
    for (path, text) in [(json, report.json()?), (options.html.as_deref(), load::page(&report))] {
        if let Some(path) = path.filter(|path| *path != Path::new("-")) {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
            eprintln!("written: {}", path.display());
        }
    }
    Ok(report)
}

/// Ctrl-C ends the load, and the rest is done in order; another one ends the program.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    tokio::spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    });
}
