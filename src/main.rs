//! The `nudge` command: `serve` (the default), `migrate`, `check-config`, `admin`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use nudge::admin::{self, Account};
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
    /// Say who are operators and what they may do; works beside a running server
    #[command(subcommand)]
    Admin(Admin),
}

#[derive(Subcommand)]
enum Admin {
    /// Give a user permissions: all of them (super_admin) where none is named
    Grant(AdminArguments),
    /// Take permissions from a user: everything that he holds where none is named
    Revoke(AdminArguments),
    /// Show the operators and what each may do
    List,
}

#[derive(Args)]
struct AdminArguments {
    /// User name, or with --external-id the id that a business system knows the user by
    name: String,
    /// NAME is the id that a business system knows the user by
    #[arg(long)]
    external_id: bool,
    /// A permission such as im:manager:group:query, or super_admin; may be given several times
    #[arg(long = "permission", value_name = "KEY")]
    permissions: Vec<String>,
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
        Command::Admin(command) => {
            let source = Source::parse(&config.database_url())?;
            print!("{}", actix_web::rt::System::new().block_on(administer(&source, command))?);
        }
        Command::Serve => {
            telemetry::init_logs();
            process::raise_descriptor_limit();
            actix_web::rt::System::new().block_on(serve(config))?;
        }
    }
    Ok(())
}

/// What to print.
async fn administer(source: &Source, command: Admin) -> anyhow::Result<String> {
    let account = |arguments: &AdminArguments| match arguments.external_id {
        true => Account::ExternalId(arguments.name.clone()),
        false => Account::Username(arguments.name.clone()),
    };
    match command {
        Admin::Grant(arguments) => admin::grant(source, &account(&arguments), &arguments.permissions).await,
        Admin::Revoke(arguments) => admin::revoke(source, &account(&arguments), &arguments.permissions).await,
        Admin::List => admin::list(source).await,
    }
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
