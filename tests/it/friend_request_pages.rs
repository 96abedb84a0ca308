//! Reading friend requests: the list that goes back in pages, the incremental pull, and the form of every call.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use nudge::db::StatementHook;
use serde_json::{Value, json};

use crate::support::app::{Person, Setup, TestApp, ids_of};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{REQUEST, apply, check_forms, position, pull_states, request};

on_every_database! {
    the_list_goes_back_page_by_page_from_ones_own_request,
    a_pull_gives_requests_of_both_directions_in_order_of_change,
    a_pull_skips_nothing_that_is_committed_while_it_reads,
    request_calls_check_their_form,
}

/// Alice with requests that she made and got in turns, of which some were changed since. In order of their change.
async fn alice_and_requests(app: &TestApp) -> (Person, Vec<Person>, Vec<i64>) {
    let alice = app.user("alice").await;
    let (mut others, mut ids) = (Vec::new(), Vec::new());
    for number in 0..6 {
        let other = app.user(&format!("other {number}")).await;
        ids.push(if number % 2 == 0 { apply(&alice, &other).await } else { apply(&other, &alice).await });
        others.push(other);
    }
    others[2].put(&format!("/im/friend-request/agree?id={}", ids[2])).await;
    alice.put(&format!("/im/friend-request/refuse?id={}", ids[1])).await;
    assert_eq!(apply(&alice, &others[0]).await, ids[0]);
    let order = [3, 4, 5, 2, 1, 0].map(|index: usize| ids[index]).to_vec();
    // Requests between others are nobody else's business.
    apply(&others[0], &others[1]).await;
    (alice, others, order)
}

async fn list(person: &Person, limit: usize, max_id: Option<i64>) -> Vec<Value> {
    let max_id = max_id.map_or(String::new(), |id| id.to_string());
    let page = person.get(&format!("/im/friend-request/list?limit={limit}&maxId={max_id}")).await;
    page.as_array().unwrap().clone()
}

async fn the_list_goes_back_page_by_page_from_ones_own_request(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, others, mut order) = alice_and_requests(&app).await;
    order.reverse();
    let all = list(&alice, 200, None).await;
    assert_eq!(ids_of(&all), order);
    for row in &all {
        assert_eq!(*row, request(&alice, row["id"].as_i64().unwrap()).await);
    }
    for limit in 1..=7 {
        let mut pages = list(&alice, limit, None).await;
        loop {
            let page = list(&alice, limit, pages.last().and_then(|row| row["id"].as_i64())).await;
            pages.extend(page.iter().cloned());
            if page.len() < limit {
                break;
            }
        }
        assert_eq!(pages, all, "limit {limit}");
    }
    // A request that is not mine, or that does not exist, is no place to go on from.
    let foreign = list(&others[1], 1, None).await[0]["id"].as_i64().unwrap();
    assert_eq!(request(&alice, foreign).await, Value::Null);
    for unknown in [foreign, foreign + 1, -1] {
        assert_eq!(list(&alice, 10, Some(unknown)).await, [] as [Value; 0]);
    }
}

async fn a_pull_gives_requests_of_both_directions_in_order_of_change(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, others, order) = alice_and_requests(&app).await;
    let all = pull_states(&alice, REQUEST, None, 200).await;
    assert_eq!(ids_of(&all), order);
    assert!(all.is_sorted_by_key(position));
    for limit in 1..=7 {
        assert_eq!(pull_states(&alice, REQUEST, None, limit).await, all, "limit {limit}");
    }
    let (time, id) = position(&all[2]);
    assert_eq!(pull_states(&alice, REQUEST, Some((time, id)), 2).await, all[3..]);
    assert_eq!(pull_states(&alice, REQUEST, Some((i64::MAX, 0)), 2).await, [] as [Value; 0]);
    for half in [format!("lastUpdateTime={time}"), format!("lastId={id}")] {
        assert_eq!(alice.get(&format!("/im/friend-request/pull?limit=3&{half}")).await, json!(all[..3]), "{half}");
    }

    // Each change brings its row once more, for both sides, also when the client goes back five seconds.
    let end = position(&all[5]);
    alice.put(&format!("/im/friend-request/agree?id={}", order[0])).await;
    let changed = request(&alice, order[0]).await;
    assert_eq!(pull_states(&alice, REQUEST, Some(end), 2).await, std::slice::from_ref(&changed));
    assert_eq!(pull_states(&others[3], REQUEST, None, 2).await, std::slice::from_ref(&changed));
    let overlap = pull_states(&alice, REQUEST, Some((end.0 - 5_000, 0)), 2).await;
    assert_eq!(overlap.iter().filter(|row| row["id"] == changed["id"]).count(), 1);
    assert_eq!(overlap.last(), Some(&changed));
}

/// Runs something before the statement with a certain number of those that follow.
#[derive(Clone, Default)]
struct Interruption(Arc<Mutex<Option<(usize, StatementHook)>>>);

impl Interruption {
    fn hook(&self) -> StatementHook {
        let state = self.0.clone();
        Arc::new(move || {
            let mut state = state.lock().unwrap();
            match state.take() {
                Some((0, action)) => action(),
                Some((left, action)) => {
                    *state = Some((left - 1, action));
                    async {}.boxed()
                }
                None => async {}.boxed(),
            }
        })
    }

    fn before_statement(&self, number: usize, action: StatementHook) {
        *self.0.lock().unwrap() = Some((number, action));
    }

    /// Whether the statement was reached.
    fn has_happened(&self) -> bool {
        self.0.lock().unwrap().take().is_none()
    }
}

/// A request that Alice made and then one that she got are committed between any two statements of her pull. Without
/// a horizon the pull can show the second, later one, and the cursor then passes over the first.
async fn a_pull_skips_nothing_that_is_committed_while_it_reads(backend: Backend) {
    let interruption = Interruption::default();
    let setup = Setup { read_hook: Some(interruption.hook()), ..Setup::default() };
    let app = TestApp::start_with(backend, setup).await;
    let (alice, bob, carol) = (app.user("alice").await, app.user("bob").await, app.user("carol").await);
    let mut cursor = None;
    let mut interrupted = 0;
    for number in 0..8 {
        let parties = (alice.clone(), bob.clone(), carol.clone());
        interruption.before_statement(
            number,
            Arc::new(move || {
                let (alice, bob, carol) = parties.clone();
                async move {
                    apply(&alice, &bob).await;
                    apply(&carol, &alice).await;
                }
                .boxed()
            }),
        );
        let page = pull_states(&alice, REQUEST, cursor, 100).await;
        cursor = page.last().map(position).or(cursor);
        if !interruption.has_happened() {
            continue;
        }
        interrupted += 1;
        let later = pull_states(&alice, REQUEST, cursor, 100).await;
        cursor = later.last().map(position).or(cursor);
        let newest = list(&alice, 2, None).await;
        for row in newest {
            assert!(page.contains(&row) || later.contains(&row), "statement {number}: {row} was skipped");
        }
    }
    // The horizon and the two directions, the accounts; the token where it is not known from the pull before.
    assert!(interrupted >= 3, "{interrupted}");
}

async fn request_calls_check_their_form(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = (app.user("alice").await, app.user("bob").await);
    let id = apply(&bob, &alice).await;
    let row = request(&alice, id).await;
    let none = Value::Null;
    let path = |verb: &str| format!("/im/friend-request/{verb}?id={id}");
    let (agree, refuse, get) = (path("agree"), path("refuse"), path("get"));
    let calls = [
        ("POST", "/im/friend-request/apply", json!({"toUserId": bob.id})),
        ("PUT", &agree, none.clone()),
        ("PUT", &refuse, none.clone()),
        ("GET", "/im/friend-request/list?limit=10", none.clone()),
        ("GET", "/im/friend-request/pull?limit=10", none.clone()),
        ("GET", &get, none.clone()),
    ];
    let long_reason = format!("{refuse}&handleContent={}", "a".repeat(256));
    let apply_with = |key: &str, value: Value| {
        let mut body = json!({"toUserId": bob.id});
        body[key] = value;
        ("POST", "/im/friend-request/apply", body)
    };
    let malformed = [
        ("POST", "/im/friend-request/apply", none.clone()),
        ("POST", "/im/friend-request/apply", json!({"applyContent": "hello"})),
        apply_with("applyContent", json!("ä".repeat(256))),
        apply_with("displayName", json!("ä".repeat(17))),
        apply_with("addSource", json!(0)),
        apply_with("addSource", json!(5)),
        ("PUT", "/im/friend-request/agree", none.clone()),
        ("PUT", "/im/friend-request/agree?id=x", none.clone()),
        ("PUT", "/im/friend-request/refuse", none.clone()),
        ("PUT", &long_reason, none.clone()),
        ("GET", "/im/friend-request/list", none.clone()),
        ("GET", "/im/friend-request/list?limit=0", none.clone()),
        ("GET", "/im/friend-request/list?limit=201", none.clone()),
        ("GET", "/im/friend-request/list?limit=10&maxId=x", none.clone()),
        ("GET", "/im/friend-request/pull", none.clone()),
        ("GET", "/im/friend-request/pull?limit=0", none.clone()),
        ("GET", "/im/friend-request/pull?limit=201", none.clone()),
        ("GET", "/im/friend-request/get", none.clone()),
    ];
    check_forms(&alice, &calls, &malformed).await;
    assert_eq!(request(&alice, id).await, row);
    assert_eq!(pull_states(&bob, REQUEST, None, 10).await.len(), 1);
}
