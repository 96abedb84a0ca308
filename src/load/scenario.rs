//! What a run does: the numbers behind each scenario's name, with the command line's changes.

use std::time::Duration;

use anyhow::ensure;
use serde::Serialize;

use super::options::{Options, Scenario};

/// Connections that one local address carries, with room for those that were cut within the last minute.
const CONNECTIONS_PER_SOURCE: usize = 20_000;
/// Upper bounds that keep a typing error from taking the machine down.
const MAX_DEVICES: usize = 1_000_000;
const MAX_WINDOW: usize = 100_000;

/// One run in numbers. Rates are per second; shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    pub scenario: String,
    pub users: usize,
    /// Of each user.
    pub devices: usize,
    /// Of each user, for private chat.
    pub friends: usize,
    /// Share of devices that connect.
    pub online: f64,
    #[serde(rename = "durationSeconds", serialize_with = "seconds")]
    pub duration: Duration,
    /// Private sends due each second.
    pub rate: f64,
    /// Private sends under way at any time; 0: none beside those of `rate`.
    pub window: usize,
    pub groups: usize,
    pub group_size: usize,
    pub group_rate: f64,
    pub reads: f64,
    pub typing: f64,
    pub slow: f64,
    pub frozen: f64,
    pub cuts: f64,
    pub storms: usize,
    pub web_client: bool,
    pub verify: f64,
    pub sources: u8,
    pub connections: usize,
    pub seed: u64,
    /// Whether everything goes over a relay that fails.
    pub faulty_network: bool,
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// What every scenario starts from.
fn quiet(scenario: Scenario) -> Plan {
    Plan {
        scenario: format!("{scenario:?}").to_lowercase(),
        users: 100,
        devices: 2,
        friends: 4,
        online: 1.0,
        duration: Duration::from_secs(30),
        rate: 0.0,
        window: 0,
        groups: 0,
        group_size: 10,
        group_rate: 0.0,
        reads: 0.0,
        typing: 0.0,
        slow: 0.0,
        frozen: 0.0,
        cuts: 0.0,
        storms: 0,
        web_client: false,
        verify: 0.01,
        sources: 1,
        connections: 512,
        seed: 0,
        faulty_network: false,
    }
}

fn preset(scenario: Scenario) -> Plan {
    let quiet = quiet(scenario);
    match scenario {
        Scenario::Smoke => Plan {
            users: 20,
            duration: Duration::from_secs(10),
            rate: 50.0,
            groups: 2,
            group_rate: 10.0,
            reads: 0.5,
            typing: 5.0,
            slow: 0.05,
            frozen: 0.05,
            cuts: 2.0,
            storms: 1,
            ..quiet
        },
        Scenario::Chat => {
            Plan { rate: 200.0, groups: 10, group_size: 20, group_rate: 20.0, reads: 0.5, typing: 20.0, ..quiet }
        }
        Scenario::Throughput => Plan {
            users: 40,
            devices: 1,
            friends: 10,
            online: 0.1,
            window: 256,
            duration: Duration::from_secs(15),
            verify: 0.0,
            connections: 256,
            ..quiet
        },
        Scenario::Fanout => Plan {
            users: 1_000,
            devices: 1,
            friends: 0,
            groups: 2,
            group_size: 500,
            group_rate: 20.0,
            verify: 0.0005,
            ..quiet
        },
        Scenario::Storm => Plan { users: 500, rate: 20.0, storms: 3, duration: Duration::from_secs(30), ..quiet },
        Scenario::Soak => Plan {
            users: 500,
            duration: Duration::from_secs(3_600),
            rate: 50.0,
            groups: 20,
            group_size: 50,
            group_rate: 5.0,
            reads: 0.5,
            typing: 10.0,
            slow: 0.01,
            frozen: 0.001,
            cuts: 2.0,
            storms: 4,
            ..quiet
        },
        Scenario::Chaos => Plan {
            users: 50,
            duration: Duration::from_secs(60),
            rate: 50.0,
            groups: 5,
            group_size: 20,
            group_rate: 10.0,
            reads: 0.3,
            typing: 5.0,
            slow: 0.02,
            faulty_network: true,
            ..quiet
        },
    }
}

impl Plan {
    /// The plan of a command line.
    ///
    /// # Errors
    /// Numbers that make no sense together.
    pub fn new(options: &Options) -> anyhow::Result<Plan> {
        let plan = preset(options.scenario);
        // A window replaces the open loop, unless both are asked for.
        let rate = if options.window.is_some() { 0.0 } else { plan.rate };
        let mut plan = Plan {
            users: options.users.unwrap_or(plan.users),
            devices: options.devices.unwrap_or(plan.devices),
            friends: options.friends.unwrap_or(plan.friends),
            online: options.online.unwrap_or(plan.online),
            duration: options.duration.unwrap_or(plan.duration),
            rate: options.rate.unwrap_or(rate),
            window: options.window.unwrap_or(plan.window),
            groups: options.groups.unwrap_or(plan.groups),
            group_size: options.group_size.unwrap_or(plan.group_size),
            group_rate: options.group_rate.unwrap_or(plan.group_rate),
            reads: options.reads.unwrap_or(plan.reads),
            typing: options.typing.unwrap_or(plan.typing),
            slow: options.slow.unwrap_or(plan.slow),
            frozen: options.frozen.unwrap_or(plan.frozen),
            cuts: options.cuts.unwrap_or(plan.cuts),
            storms: options.storms.unwrap_or(plan.storms),
            web_client: options.web_client,
            verify: options.verify.unwrap_or(plan.verify),
            connections: options.connections.clamp(1, 10_000),
            seed: options.seed.unwrap_or_else(|| rand::random::<u32>().into()),
            ..plan
        };
        let sockets = plan.users.saturating_mul(plan.devices).saturating_mul(plan.storms + 1);
        let needed = 1 + (sockets + plan.connections) / CONNECTIONS_PER_SOURCE;
        plan.sources = options.sources.unwrap_or_else(|| u8::try_from(needed).unwrap_or(u8::MAX)).clamp(1, 250);
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> anyhow::Result<()> {
        let shares = [
            ("--online", self.online),
            ("--reads", self.reads),
            ("--slow", self.slow),
            ("--frozen", self.frozen),
            ("--verify", self.verify),
        ];
        for (name, share) in shares {
            ensure!((0.0..=1.0).contains(&share), "{name} is a share, from 0 to 1");
        }
        let rates = [
            ("--rate", self.rate),
            ("--group-rate", self.group_rate),
            ("--typing", self.typing),
            ("--cuts", self.cuts),
        ];
        for (name, rate) in rates {
            ensure!((0.0..=1e6).contains(&rate), "{name} must be from 0 to 1,000,000 a second");
        }
        ensure!(self.users >= 2, "--users must be at least 2");
        ensure!((1..=MAX_DEVICES).contains(&self.users.saturating_mul(self.devices)), "too many or no devices");
        ensure!(self.window <= MAX_WINDOW, "--window must be at most {MAX_WINDOW}");
        ensure!(self.groups == 0 || (2..=self.users).contains(&self.group_size), "a group has 2 to --users members");
        ensure!(self.slow + self.frozen <= 1.0, "--slow and --frozen together are at most 1");
        let chats = self.rate > 0.0 || self.window > 0 || self.typing > 0.0;
        ensure!(!chats || self.friends > 0, "private chat needs --friends");
        ensure!(self.friends < self.users, "a user has fewer --friends than there are users");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::{Parser, ValueEnum};
    use rstest::rstest;

    use super::*;

    fn plan(line: &str) -> anyhow::Result<Plan> {
        Plan::new(&Options::try_parse_from(std::iter::once("nudge-load").chain(line.split(' ')))?)
    }

    #[test]
    fn every_scenario_makes_sense() {
        for scenario in Scenario::value_variants() {
            preset(*scenario).check().unwrap();
        }
    }

    #[test]
    fn options_override_the_scenario() {
        let plan = plan("chat --rate 7 --group-size 5 --duration 3s").unwrap();
        assert_eq!((plan.rate, plan.group_size, plan.duration), (7.0, 5, Duration::from_secs(3)));
        assert_eq!(plan.groups, 10);
        assert_eq!(self::plan("smoke --storms 0 --storms 3").unwrap().storms, 3);
    }

    #[test]
    fn a_window_replaces_the_rate() {
        let closed = plan("chat --window 256").unwrap();
        assert_eq!((closed.rate, closed.window), (0.0, 256));
        let both = plan("chat --window 8 --rate 5").unwrap();
        assert_eq!((both.rate, both.window), (5.0, 8));
    }

    #[test]
    fn many_connections_come_from_many_addresses() {
        assert_eq!(plan("smoke").unwrap().sources, 1);
        assert_eq!(plan("storm --users 5000 --devices 2").unwrap().sources, 3);
        assert_eq!(plan("storm --sources 7").unwrap().sources, 7);
    }

    #[rstest]
    #[case("smoke --online 1.1")]
    #[case("smoke --rate=-1")]
    #[case("smoke --users 1")]
    #[case("smoke --devices 0")]
    #[case("smoke --group-size 21")]
    #[case("smoke --friends 0")]
    #[case("smoke --slow 0.6 --frozen 0.6")]
    #[case("smoke --window 1000000")]
    fn nonsense_is_refused(#[case] line: &str) {
        assert!(plan(line).is_err());
    }
}
