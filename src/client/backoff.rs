//! How long to wait before the next try.

use std::time::Duration;

/// Waits that double from `base` up to `max`, plus a random part up to `jitter` that keeps many clients from coming
/// back in the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub base: Duration,
    pub max: Duration,
    pub jitter: Duration,
}

impl Backoff {
    /// The contract's waits for reconnecting (`contract/01` section 9.6): 1 s, 2 s, … 30 s, each plus up to 1 s.
    pub const RECONNECT: Backoff =
        Backoff { base: Duration::from_secs(1), max: Duration::from_secs(30), jitter: Duration::from_secs(1) };

    /// Waits between two tries of one send: a person is looking at the message.
    pub const RESEND: Backoff =
        Backoff { base: Duration::from_millis(200), max: Duration::from_secs(5), jitter: Duration::from_millis(200) };

    /// The wait before try `attempt` (from 0); `random` is in 0.0–1.0.
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let doubled = self.base.saturating_mul(2_u32.saturating_pow(attempt));
        doubled.min(self.max) + self.jitter.mul_f64(random.clamp(0.0, 1.0))
    }

    /// [`Backoff::delay`] with a random number of its own.
    pub fn random_delay(&self, attempt: u32) -> Duration {
        self.delay(attempt, rand::random())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, 0.0, 1_000)]
    #[case(1, 0.0, 2_000)]
    #[case(4, 0.0, 16_000)]
    #[case(5, 0.0, 30_000)]
    #[case(0, 0.5, 1_500)]
    #[case(9, 1.0, 31_000)]
    #[case(u32::MAX, 0.0, 30_000)]
    #[case(0, 7.0, 2_000)]
    fn waits_double_up_to_a_limit(#[case] attempt: u32, #[case] random: f64, #[case] milliseconds: u64) {
        assert_eq!(Backoff::RECONNECT.delay(attempt, random), Duration::from_millis(milliseconds));
    }
}
