//! The command line. What a scenario sets by its name, every option can override.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  nudge-load                                         15 s against http://127.0.0.1:48080
  nudge-load throughput --duration 30s               how many durable sends a second
  nudge-load chat --rate 500 --html report.html      open loop: honest latencies at 500 sends a second
  nudge-load storm --users 5000 --devices 2 --api-key KEY      10,000 devices come back at once
  nudge-load chaos --server-command 'nudge serve' --seed 7     kills and restarts the server

Ends with 0 when the ledger is clean, 1 when it is not, 2 when the run was not possible.
docs/load.md explains scenarios, ledger and report.";

/// Ready scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// A little of everything, 15 s
    Smoke,
    /// Private chat and small groups at a steady rate
    Chat,
    /// As many private sends as the server takes
    Throughput,
    /// Few senders, large groups
    Fanout,
    /// All devices are cut at once and come back
    Storm,
    /// Everything, for an hour
    Soak,
    /// Everything, over a network that fails
    Chaos,
}

/// Load simulator for Nudge: people who chat over many devices, and a ledger of every message
#[derive(Clone, Debug, Parser)]
#[command(name = "nudge-load", version, args_override_self = true, after_help = EXAMPLES)]
pub struct Options {
    #[arg(value_enum, default_value_t = Scenario::Smoke, hide_possible_values = true,
          help = "smoke, chat, throughput, fanout, storm, soak or chaos")]
    pub scenario: Scenario,
    #[arg(long, default_value = "http://127.0.0.1:48080", help = "The server")]
    pub url: String,
    #[arg(long, value_name = "URL", help = "Where its metrics are [default: <url>/metrics]")]
    pub metrics_url: Option<String>,
    #[arg(long, value_name = "KEY", help = "Provision by the server API [default: $NUDGE_API_KEY, else by password]")]
    pub api_key: Option<String>,
    #[arg(long, help = "Users")]
    pub users: Option<usize>,
    #[arg(long, help = "Devices of each user")]
    pub devices: Option<usize>,
    #[arg(long, help = "Friends of each user, for private chat")]
    pub friends: Option<usize>,
    #[arg(long, value_name = "SHARE", help = "Devices that connect; the others only pull at the end")]
    pub online: Option<f64>,
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help = "Length of the load, such as 30s, 10m, 1h")]
    pub duration: Option<Duration>,
    #[arg(long, value_name = "N", help = "Private sends due each second (open loop)")]
    pub rate: Option<f64>,
    #[arg(long, value_name = "N", help = "Private sends always under way (closed loop)")]
    pub window: Option<usize>,
    #[arg(long, value_name = "N", help = "Groups")]
    pub groups: Option<usize>,
    #[arg(long, value_name = "N", help = "Members of each group")]
    pub group_size: Option<usize>,
    #[arg(long, value_name = "N", help = "Group sends due each second")]
    pub group_rate: Option<f64>,
    #[arg(long, value_name = "SHARE", help = "Messages whose receiver reports that they are read")]
    pub reads: Option<f64>,
    #[arg(long, value_name = "N", help = "Typing signals each second")]
    pub typing: Option<f64>,
    #[arg(long, value_name = "SHARE", help = "Devices that read slowly")]
    pub slow: Option<f64>,
    #[arg(long, value_name = "SHARE", help = "Devices that stop reading once they are connected")]
    pub frozen: Option<f64>,
    #[arg(long, value_name = "N", help = "Devices cut each second; they come back")]
    pub cuts: Option<f64>,
    #[arg(long, value_name = "N", help = "Times that all devices are cut at once")]
    pub storms: Option<usize>,
    #[arg(long, help = "Devices come back with the calls of the web client instead of one")]
    pub web_client: bool,
    #[arg(long, value_name = "SHARE", help = "Pushes that are looked up in the tables at once")]
    pub verify: Option<f64>,
    #[arg(long, value_name = "N", help = "Loopback addresses to come from [default: as many as needed]")]
    pub sources: Option<u8>,
    #[arg(long, value_name = "N", default_value_t = 512, help = "HTTP connections")]
    pub connections: usize,
    #[arg(long, value_name = "N", help = "Threads of this program [default: half of the cores]")]
    pub threads: Option<usize>,
    #[arg(long, help = "Repeats the choices of an earlier run [default: random]")]
    pub seed: Option<u64>,
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", help = "Write the report as JSON")]
    pub json: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = "Write the report as a page with charts")]
    pub html: Option<PathBuf>,
    #[arg(long, value_name = "PID", help = "chaos: stop and continue this server process")]
    pub server_pid: Option<u32>,
    #[arg(long, value_name = "COMMAND", help = "chaos: start the server, kill and restart it")]
    pub server_command: Option<String>,
    #[arg(long, help = "No progress")]
    pub quiet: bool,
}

/// `90`, `90s`, `1.5m`, `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((index, 's')) => (text.get(..index), 1.0),
        Some((index, 'm')) => (text.get(..index), 60.0),
        Some((index, 'h')) => (text.get(..index), 3_600.0),
        _ => (Some(text), 1.0),
    };
    let seconds = number.and_then(|number| number.parse::<f64>().ok()).map(|number| number * unit);
    match seconds.filter(|seconds| (0.1..=1e7).contains(seconds)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err("a time is a number with s, m or h, such as 30s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("90", 90_000)]
    #[case("0.5s", 500)]
    #[case("1.5m", 90_000)]
    #[case("2h", 7_200_000)]
    fn times(#[case] text: &str, #[case] milliseconds: u64) {
        assert_eq!(parse_duration(text).unwrap(), Duration::from_millis(milliseconds));
    }

    #[rstest]
    #[case("")]
    #[case("s")]
    #[case("-1s")]
    #[case("ten")]
    #[case("1e99h")]
    #[case("NaN")]
    fn no_times(#[case] text: &str) {
        assert!(parse_duration(text).is_err());
    }

    #[test]
    fn without_arguments_it_is_smoke() {
        let options = Options::try_parse_from(["nudge-load"]).unwrap();
        assert_eq!((options.scenario, options.url.as_str()), (Scenario::Smoke, "http://127.0.0.1:48080"));
        let options = Options::try_parse_from(["nudge-load", "storm", "--json", "--frozen", "0.001"]).unwrap();
        assert_eq!((options.scenario, options.frozen), (Scenario::Storm, Some(0.001)));
        assert_eq!(options.json, Some(PathBuf::from("-")));
    }

    #[test]
    fn help_fits_on_a_screen() {
        let help = Options::try_parse_from(["nudge-load", "--help"]).unwrap_err().to_string();
        assert!(help.lines().count() <= 60, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 120), "{help}");
        assert!(help.contains("Examples:"));
    }
}
