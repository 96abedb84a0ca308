//! Writers that hold their transactions open while a device pulls: nothing is missed, and everything commits in order
//! (`design.md` I3, I4; field tests A1 to A3). `TEST_LONG=1` runs longer, `TEST_SEED` repeats a random run.

use std::collections::BTreeMap;
use std::time::Duration;

use nudge::service::run::RunCommand;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::support::app::{TestApp, ids_of};
use crate::support::cursors::{MessageCursor, PositionCursor};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{DirectWriter, End, is_long, on_own_thread, random_pause, read_report, seed, text_draft};
use crate::support::stored::Tables;

on_every_database! {
    a_pull_misses_nothing_while_transactions_stay_open,
    a_writer_that_pauses_inside_its_transaction_hides_nothing,
    a_rolled_back_write_hides_nothing_and_leaves_no_gap,
    a_position_stamped_early_and_committed_late_is_pulled,
    a_position_of_a_writer_that_pauses_is_pulled,
}

const WRITERS: u64 = 4;
/// How long the writer that pauses does so: below the five seconds after which others give up waiting for it.
const PAUSE: Duration = Duration::from_secs(2);

/// What the writers do.
#[derive(Clone, Copy)]
struct Plan {
    /// Chance that a transaction is rolled back.
    rollback: f64,
    /// Whether one more writer pauses inside its transaction, which is open before the others begin.
    pause: bool,
}

async fn a_pull_misses_nothing_while_transactions_stay_open(backend: Backend) {
    follow_messages(backend, Plan { rollback: 0.0, pause: false }).await;
}

async fn a_writer_that_pauses_inside_its_transaction_hides_nothing(backend: Backend) {
    follow_messages(backend, Plan { rollback: 0.0, pause: true }).await;
}

async fn a_rolled_back_write_hides_nothing_and_leaves_no_gap(backend: Backend) {
    let ids = follow_messages(backend, Plan { rollback: 0.4, pause: false }).await;
    assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1), "a gap in {ids:?}");
}

async fn a_position_stamped_early_and_committed_late_is_pulled(backend: Backend) {
    follow_positions(backend, Plan { rollback: 0.2, pause: false }).await;
}

async fn a_position_of_a_writer_that_pauses_is_pulled(backend: Backend) {
    follow_positions(backend, Plan { rollback: 0.0, pause: true }).await;
}

fn transactions_of_one_writer() -> usize {
    if is_long() { 400 } else { 25 }
}

/// Bob pulls in a tight loop while several writers send him messages; the ids of all of them.
async fn follow_messages(backend: Backend, plan: Plan) -> Vec<i64> {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (sender, receiver) = (alice.id, bob.id);
    let mut tables = Tables::open(&app.database.url).await;
    let known = tables.message_ids().await.len();
    let commands = move |rng: &mut StdRng| {
        let count = rng.random_range(1..=5);
        (0..count).map(|_| RunCommand::SendPrivate(text_draft(sender, receiver, "a text"))).collect()
    };
    let mut cursor = MessageCursor::new(&bob, 7);
    let writers = start_writers(&app.database.url, plan, commands).await;
    while writers.iter().any(|writer| !writer.is_finished()) {
        cursor.page().await;
    }
    let mut committed = 0;
    for writer in writers {
        committed += writer.await.unwrap();
    }
    cursor.finish().await;
    let ids = tables.message_ids_of(bob.id).await;
    assert_eq!(ids.len(), known + committed);
    assert_eq!(ids_of(&cursor.rows), ids);
    ids
}

/// Bob pulls his read positions in a tight loop while several writers raise them.
async fn follow_positions(backend: Backend, plan: Plan) {
    let app = TestApp::start(backend).await;
    let bob = app.user("bob").await;
    let peers: Vec<i64> = (1_000_000..1_000_020).collect();
    let pairs: Vec<_> = peers.iter().flat_map(|peer| [(*peer, bob.id); 50]).collect();
    let ids = DirectWriter::connect(&app.database.url).await.store_messages(&pairs).await;
    let messages: Vec<_> = pairs.iter().map(|(peer, _)| *peer).zip(ids).collect();
    let reader = bob.id;
    let commands = move |rng: &mut StdRng| {
        let (peer, message) = messages[rng.random_range(0..messages.len())];
        vec![read_report(reader, peer, message)]
    };
    let mut cursor = PositionCursor::new(&bob, 3);
    let writers = start_writers(&app.database.url, plan, commands).await;
    while writers.iter().any(|writer| !writer.is_finished()) {
        cursor.page().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    cursor.finish().await;
    let rows = Tables::open(&app.database.url).await.positions_of(bob.id).await;
    let rows: BTreeMap<_, _> =
        rows.into_iter().map(|(id, peer, message, stamp)| (id, (peer, message, stamp))).collect();
    assert!(cursor.count > rows.len(), "no row was ever pulled twice: the writers were too slow for this test");
    assert_eq!(cursor.rows, rows);
}

/// Starts the writers of a plan; each answers with the number of commands that it committed.
async fn start_writers<C>(url: &str, plan: Plan, commands: C) -> Vec<JoinHandle<usize>>
where
    C: Fn(&mut StdRng) -> Vec<RunCommand> + Clone + Send + 'static,
{
    let seed = seed();
    let mut writers = Vec::new();
    if plan.pause {
        let (url, commands) = (url.to_owned(), commands.clone());
        let (has_written, written) = oneshot::channel();
        writers.push(on_own_thread(move || async move {
            let commands = commands(&mut StdRng::seed_from_u64(seed));
            let pause = async {
                has_written.send(()).unwrap();
                sleep(PAUSE).await;
            };
            DirectWriter::connect(&url).await.run(&commands, pause, End::Commit).await;
            commands.len()
        }));
        written.await.unwrap();
    }
    for number in 1..=WRITERS {
        let (url, commands) = (url.to_owned(), commands.clone());
        let rng = StdRng::seed_from_u64(seed.wrapping_add(number));
        writers.push(on_own_thread(move || async move { write(&url, plan, commands, rng).await }));
    }
    writers
}

async fn write(url: &str, plan: Plan, commands: impl Fn(&mut StdRng) -> Vec<RunCommand>, mut rng: StdRng) -> usize {
    let mut writer = DirectWriter::connect(url).await;
    let mut committed = 0;
    for _ in 0..transactions_of_one_writer() {
        let commands = commands(&mut rng);
        let end = if rng.random_bool(plan.rollback) { End::RollBack } else { End::Commit };
        writer.run(&commands, sleep(random_pause(&mut rng, 15)), end).await;
        if end == End::Commit {
            committed += commands.len();
        }
        sleep(random_pause(&mut rng, 20)).await;
    }
    committed
}
