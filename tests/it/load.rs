//! The load simulator against the server: what works is clean, and what is made to go wrong is found.

use clap::Parser;
use nudge::load::{self, Access, Options, Plan, Progress, Report, Run};

use crate::support::app::{API_KEY, TestApp};
use crate::support::databases::{Backend, on_every_database};
use crate::support::tables;

on_every_database! {
    a_short_run_is_clean,
    devices_come_back_like_the_web_client,
    a_deleted_message_is_lost,
    a_network_that_fails_loses_nothing,
}

const PEOPLE: &str = "--seed 7 --users 8 --devices 2 --friends 2 --connections 32";

fn options(line: &str) -> Options {
    let line = format!("nudge-load {line}");
    Options::try_parse_from(line.split_whitespace()).unwrap()
}

/// A run whose devices are connected.
async fn prepare(app: &TestApp, line: &str) -> Run {
    let plan = Plan::new(&options(&format!("smoke --storms 0 {PEOPLE} {line}"))).unwrap();
    let access = Access {
        url: app.base.clone(),
        device_url: app.base.clone(),
        metrics_url: format!("{}/metrics", app.base),
        api_key: Some(API_KEY.to_owned()),
    };
    Run::prepare(plan, &access, Progress::new(true)).await.unwrap()
}

async fn drive(run: &mut Run) {
    run.load(std::future::pending()).await;
    run.settle().await;
}

fn assert_sent(report: &Report) {
    let load = &report.load;
    assert!(load.acknowledged > 0 && load.refused == 0, "{report:#?}");
    assert!(load.deliveries > load.acknowledged, "{report:#?}");
    assert!(report.ledger.columns.expected > load.acknowledged, "{report:#?}");
}

async fn a_short_run_is_clean(backend: Backend) {
    let app = TestApp::start(backend).await;
    let options = "--duration 2s --rate 40 --groups 1 --group-size 5 --group-rate 10 --reads 0.5 --typing 5 \
                   --slow 0.07 --frozen 0.07 --cuts 5 --verify 0.2";
    let mut run = prepare(&app, options).await;
    drive(&mut run).await;
    let report = run.conclude().await.unwrap();
    assert!(report.ledger.is_clean, "{report:#?}");
    assert_sent(&report);
    assert!(report.load.reports > 0 && report.load.verified > 0, "{report:#?}");
    // Those who are cut, and a device that does not read.
    assert!(report.load.connects > 0 && report.ledger.columns.healed > 0, "{report:#?}");
    assert_eq!(report.connections.devices, 16);
    assert_eq!(report.send_to_ack.count, report.load.acknowledged);
}

async fn devices_come_back_like_the_web_client(backend: Backend) {
    let app = TestApp::start(backend).await;
    let mut run = prepare(&app, "--duration 3s --rate 20 --groups 0 --group-rate 0 --storms 1 --web-client").await;
    drive(&mut run).await;
    let report = run.conclude().await.unwrap();
    assert!(report.ledger.is_clean, "{report:#?}");
    assert_sent(&report);
    let storm = &report.storms[0];
    assert!(storm.complete && storm.devices >= 14, "{report:#?}");
}

async fn a_deleted_message_is_lost(backend: Backend) {
    let app = TestApp::start(backend).await;
    let mut run = prepare(&app, "--duration 1s --rate 40 --groups 0 --group-rate 0 --cuts 0").await;
    drive(&mut run).await;
    let mut db = tables::open(&app.database.url).await;
    let newest = "SELECT MAX(id) AS number FROM im_private_message WHERE type = 101";
    let newest = tables::number(&mut db, newest).await;
    db.run_text(&format!("DELETE FROM im_private_message WHERE id = {newest}")).await.unwrap();
    let report = run.conclude().await.unwrap();
    assert!(!report.ledger.is_clean);
    // Two devices of the sender, two of the receiver.
    assert_eq!(report.ledger.columns.lost, 4, "{report:#?}");
    let columns = &report.ledger.columns;
    assert_eq!((columns.duplicated, columns.out_of_order, columns.wrongly_delivered), (0, 0, 0), "{report:#?}");
    assert!(report.ledger.examples[0].contains(&format!("message {newest}")), "{report:#?}");
}

async fn a_network_that_fails_loses_nothing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let line = format!("chaos {PEOPLE} --groups 1 --group-size 5 --duration 4s --quiet --url {}", app.base);
    let options = Options { api_key: Some(API_KEY.to_owned()), ..options(&line) };
    let report = load::run(&options, std::future::pending()).await.unwrap();
    assert!(report.ledger.is_clean, "{report:#?}");
    assert_sent(&report);
    assert!(!report.faults.is_empty() && report.notes.is_empty(), "{report:#?}");
}
