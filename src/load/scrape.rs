//! What the server says about itself at `/metrics`.

use serde::Serialize;

use crate::client::Endpoint;

/// The figures that a run needs; `None` where the server does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scrape {
    pub cpu_seconds: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub descriptors: Option<f64>,
    pub sessions: Option<f64>,
}

impl Scrape {
    fn parse(text: &str) -> Scrape {
        let value = |name: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse().ok())
        };
        Scrape {
            cpu_seconds: value("process_cpu_seconds_total"),
            memory_bytes: value("process_resident_memory_bytes"),
            descriptors: value("process_open_fds"),
            sessions: value("nudge_sessions"),
        }
    }
}

/// Asks the server; all `None` when it does not answer.
pub async fn scrape(endpoint: &Endpoint, path: &str) -> Scrape {
    endpoint.get_text(path).await.map(|text| Scrape::parse(&text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_name() {
        let text = "# TYPE nudge_sessions gauge\nnudge_sessions 12\nprocess_cpu_seconds_total 1.5\n\
                    nudge_sessions_other 3\nprocess_open_fds x\n";
        let expected = Scrape { cpu_seconds: Some(1.5), sessions: Some(12.0), ..Scrape::default() };
        assert_eq!(Scrape::parse(text), expected);
    }
}
