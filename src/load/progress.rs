//! What the terminal shows while a run goes on; nothing where there is no terminal, but for one line a phase.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::ProgressBar;

/// The progress line.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    says_phases: bool,
}

impl Progress {
    pub fn new(quiet: bool) -> Progress {
        if quiet || !std::io::stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden(), says_phases: !quiet };
        }
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, says_phases: false }
    }

    /// A new phase begins.
    pub fn phase(&self, text: impl Into<Cow<'static, str>>) {
        let text = text.into();
        if self.says_phases {
            eprintln!("{text}");
        }
        self.bar.set_message(text);
    }

    /// Figures of the present phase.
    pub fn show(&self, text: String) {
        self.bar.set_message(text);
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        if self.says_phases {
            eprintln!("{text}");
        } else {
            self.bar.println(text);
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
