//! Whatever is sent to whichever endpoint: HTTP 200 with a code of the contract, nothing changed, and the connection and
//! the server go on. Every case is made from one list, `endpoints.rs`, which a test compares with the route table.
//!
//! `TEST_LONG=1` tries many more random bodies.

mod cases;
mod endpoints;
mod groups;
mod manager;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use self::cases::{Case, cases};
use self::endpoints::{World, endpoints};
use crate::support::app::{API_KEY, TestApp, http_client, id_of, ids_of, random_id, text_message};
use crate::support::databases::{Backend, on_every_database};
use crate::support::process::ServerProcess;
use crate::support::raw::code;
use crate::support::tables::fingerprint;

on_every_database! {
    bad_input_is_refused_by_every_endpoint,
    random_bodies_are_sent_or_refused,
}

/// Codes that say that the server, not the client, is at fault.
const FAULTS: [i64; 2] = [500, 503];

async fn try_all(http: &reqwest::Client, base: &str, database_url: &str) {
    let world = World::create(http, base, database_url).await;
    let mut count = 0;
    for endpoint in endpoints(&world) {
        let before = fingerprint(database_url).await;
        for case in cases(&endpoint, &world) {
            count += 1;
            let what = format!("{} {}: {}", endpoint.method, endpoint.path, case.what);
            let answer = perform(http, base, &case, &what).await;
            let code = code(&answer);
            assert!(!FAULTS.contains(&code), "{what}: {answer}");
            assert!(!case.must_fail || code != 0, "{what} was accepted: {:.300}", answer.to_string());
            assert!(case.expected.is_none_or(|expected| code == expected), "{what}: {answer}");
        }
        assert_eq!(fingerprint(database_url).await, before, "{} {} changed something", endpoint.method, endpoint.path);
        // The valid example, on the same connections: so each case failed for its own reason alone.
        let valid = Case::valid(&endpoint, &world);
        let answer = perform(http, base, &valid, endpoint.path).await;
        assert_eq!(code(&answer), endpoint.answer, "{} {}: {answer}", endpoint.method, endpoint.path);
    }
    assert!(count > 900, "only {count} cases");
}

async fn perform(http: &reqwest::Client, base: &str, case: &Case, what: &str) -> Value {
    let mut request = http.request(case.method.parse().unwrap(), format!("{base}{}", case.path));
    for (name, value) in &case.headers {
        request = request.header(*name, value.as_slice());
    }
    if let Some(body) = &case.body {
        request = request.body(body.clone());
    }
    let response = request.send().await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    assert_eq!(response.status(), 200, "{what}");
    let text = response.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{what}: no wrapper but {text:.300}"))
}

async fn bad_input_is_refused_by_every_endpoint(backend: Backend) {
    let app = TestApp::start(backend).await;
    try_all(&app.http, &app.base, &app.database.url).await;
}

#[actix_web::test]
async fn a_server_process_survives_all_of_it_without_a_panic() {
    let folder = tempfile::TempDir::new().unwrap();
    let url = format!("sqlite://{}", folder.path().join("nudge.db").display());
    let environment = [("NUDGE_API_KEY", API_KEY), ("DATABASE_URL", url.as_str())];
    let mut process = ServerProcess::start(folder.path(), &environment).await.unwrap();
    try_all(&http_client(), &process.url(), &url).await;
    process.sigterm();
    let status = process.wait_for_exit(std::time::Duration::from_secs(20)).await.unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(process.panics(), Vec::<String>::new());
    let errors: Vec<String> = process.log().into_iter().filter(|line| line.contains("\"ERROR\"")).collect();
    assert_eq!(errors, Vec::<String>::new(), "what a client sends is no error of the server");
}

/// Every route: those below `/im` from the table, the others from `src/http/routes.rs` as scope of the surrounding
/// function, path, method.
fn routes() -> BTreeSet<(String, String)> {
    // Uploads and downloads are no JSON: tests/it/files.rs.
    let scopes = BTreeMap::from([
        ("system", "/admin-api/system"),
        ("signed_in", "/admin-api/system"),
        ("file_records", "/admin-api/infra/file"),
        ("server", "/api/v1"),
    ]);
    let of_im = |(method, path): (&str, &str)| (format!("/admin-api/im{path}"), method.to_uppercase());
    let mut found: BTreeSet<(String, String)> = nudge::http::im_endpoints().map(of_im).collect();
    for function in include_str!("../../../src/http/routes.rs").split("\nfn ").skip(1) {
        let Some(scope) = scopes.get(function.split('(').next().unwrap()) else { continue };
        for route in function.split("at(\"").skip(1) {
            let (path, rest) = route.split_once("\", ").unwrap();
            let method = rest.split('(').next().unwrap().to_uppercase();
            found.insert((format!("{scope}{path}"), method));
        }
    }
    found
}

#[actix_web::test]
async fn the_list_of_endpoints_is_the_route_table() {
    let app = TestApp::start(Backend::Sqlite).await;
    let world = World::create(&app.http, &app.base, &app.database.url).await;
    let listed: BTreeSet<(String, String)> =
        endpoints(&world).iter().map(|endpoint| (endpoint.path.to_owned(), endpoint.method.to_owned())).collect();
    assert!(listed.len() > 25);
    assert_eq!(listed, routes());
}

/// Any JSON, with the texts and numbers that break things more often than chance would have them.
fn any_json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![0_i64, 1, 101, 102, -1, 1 << 53]).prop_map(Value::from),
    ];
    let text = prop_oneof![
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec!["", "\0", "{}", "[]", "null", r#"{"content":"x","quote":{"messageId":1}}"#])
            .prop_map(Value::from),
    ];
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number, text];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner.clone(), 0..4)
                .prop_map(|fields| Value::from_iter(fields.into_iter())),
            // As `content`: JSON in a string.
            inner.prop_map(|value| json!({"content": value}).to_string().into()),
        ]
    })
}

async fn random_bodies_are_sent_or_refused(backend: Backend) {
    let rounds = if std::env::var_os("TEST_LONG").is_some() { 20_000 } else { 200 };
    let seed: [u8; 32] = rand::random();
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let mut stored = BTreeSet::from_iter(ids_of(&bob.pull_all(1_000).await));
    let fields = prop::sample::select(vec!["clientMessageId", "receiverId", "type", "content", "receipt", "unknown"]);
    let strategy = (prop::collection::vec((fields, any_json()), 1..4), prop::bool::weighted(0.1), any_json());
    for round in 0..rounds {
        let (changes, replaces_all, replacement) = strategy.new_tree(&mut runner).unwrap().current();
        let mut body = text_message(bob.id, &random_id(), "x");
        for (field, value) in changes {
            body[field] = value;
        }
        let body = if replaces_all { replacement } else { body };
        let answer = alice.call("POST", "/im/message/private/send", Some(body.clone())).await;
        assert!(!FAULTS.contains(&code(&answer)), "round {round}, seed {seed:?}: {body}: {answer}");
        // Some ids are drawn twice, and repeated.
        stored.extend((code(&answer) == 0).then(|| id_of(&answer["data"])));
    }
    assert!(stored.len() > 1, "seed {seed:?}");
    assert_eq!(BTreeSet::from_iter(ids_of(&bob.pull_all(1_000).await)), stored, "seed {seed:?}");
}
