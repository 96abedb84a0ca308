//! Which statements reach the database, and how long each takes: diesel's own instrumentation, so what is counted is
//! what is really sent.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

static RECORDING: AtomicBool = AtomicBool::new(false);
static RECORDED: Mutex<Vec<Statement>> = Mutex::new(Vec::new());

#[derive(Clone, Debug)]
pub struct Statement {
    /// As sent; on SQLite with its values behind `-- binds:`.
    pub text: String,
    pub elapsed: Duration,
}

/// Watches all connections that are opened from now on. Costs next to nothing while nothing is recorded.
pub fn watch_connections() -> anyhow::Result<()> {
    Ok(set_default_instrumentation(watcher)?)
}

fn watcher() -> Option<Box<dyn Instrumentation>> {
    let mut started = Instant::now();
    Some(Box::new(move |event: InstrumentationEvent<'_>| {
        if !RECORDING.load(Ordering::Relaxed) {
            return;
        }
        match event {
            InstrumentationEvent::StartQuery { .. } => started = Instant::now(),
            InstrumentationEvent::FinishQuery { query, .. } => {
                let elapsed = started.elapsed();
                if let Ok(mut recorded) = RECORDED.lock() {
                    recorded.push(Statement { text: query.to_string(), elapsed });
                }
            }
            _ => {}
        }
    }))
}

pub fn start_recording() {
    RECORDING.store(true, Ordering::SeqCst);
}

/// Everything since the start, in order.
pub fn stop_recording() -> Vec<Statement> {
    RECORDING.store(false, Ordering::SeqCst);
    RECORDED.lock().map(|mut recorded| std::mem::take(&mut *recorded)).unwrap_or_default()
}

/// The statement with these values in the places of its parameters, for EXPLAIN.
pub fn with_values(text: &str, values: &[i64]) -> String {
    let mut sql = text.split(" -- binds: ").next().unwrap_or_default().to_owned();
    for (index, value) in values.iter().enumerate() {
        sql = sql.replace(&format!("${}", index + 1), &value.to_string());
        sql = sql.replacen('?', &value.to_string(), 1);
    }
    sql
}
