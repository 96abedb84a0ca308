//! The `nudge` command: `serve` (the default), `migrate`, `check-config`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nudge::config::Config;
use nudge::db::connect::Source;
use nudge::db::migrate::migrate;
use nudge::server::{Seams, Server};
use nudge::{process, shutdown, telemetry};

#[derive(Parser)]
#[command(name = "nudge", version, about = "Self-hosted instant-messaging realtime server")]
struct Arguments {
    /// Configuration file (default: nudge.toml in the working folder, if there is one)
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server (the default)
    Serve,
    /// Bring the database schema up to date and exit
    Migrate,
    /// Print the configuration in force, without secrets, and exit
    CheckConfig,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nudge: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let config = Config::load(arguments.config.as_deref())?;
    match arguments.command.unwrap_or(Command::Serve) {
        Command::CheckConfig => println!("{}", serde_json::to_string_pretty(&config)?),
        Command::Migrate => {
            telemetry::init_logs();
            let source = Source::parse(&config.database_url())?;
            let applied = actix_web::rt::System::new().block_on(migrate(&source))?;
            println!("{} migrations applied", applied.len());
        }
        Command::Serve => {
            telemetry::init_logs();
            process::raise_descriptor_limit();
            actix_web::rt::System::new().block_on(serve(config))?;
        }
    }
    Ok(())
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let database = Source::parse(&config.database_url())?;
    let registration = config.registration_open();
    let server = Server::start(config, Seams::default()).await?;
    let address = server.address();
    println!("Nudge {} is ready.", env!("CARGO_PKG_VERSION"));
    println!("  HTTP       http://{address}/admin-api");
    println!("  WebSocket  ws://{address}/infra/ws?token=<refresh token>");
    println!("  Database   {}", describe(&database));
    for warning in server.state().health.warnings() {
        println!("  Warning    {warning}");
    }
    if database.sqlite_path().is_none() {
        println!("  Note       other servers on this database would write safely, but push only to their own sessions");
    }
    if registration {
        println!("Try next: register a user and sign in as README.md shows, or look at http://{address}/readyz");
    }
    let health = server.state().health.clone();
    let failed = tokio::select! {
        requested = shutdown::requested() => { requested?; false }
        () = health.failed() => true,
    };
    server.stop().await;
    anyhow::ensure!(!failed, "a part that everything depends on has died; see the log");
    Ok(())
}

fn describe(database: &Source) -> String {
    match database.sqlite_path() {
        Some(path) => format!("SQLite, {}", path.display()),
        None => format!("{:?}", database.backend()),
    }
}
