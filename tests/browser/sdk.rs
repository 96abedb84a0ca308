//! The SDK by itself, in a page of the server: its store, and four devices on a network that loses and delays.

use rand::Rng;
use serde_json::{Value, json};

use crate::support::browser::{Browser, Look, Window};
use crate::support::people::Site;

/// A page of the server on which nothing runs by itself.
async fn empty_page(site: &Site) -> Window {
    let window = Browser::start(Look::DESKTOP).await.window().await;
    window.go(&format!("{}/assets/sdk/nudge.d.ts", site.url())).await;
    window
}

#[tokio::test]
async fn messages_merge_by_id_whatever_comes_first() {
    let site = Site::start().await;
    let window = empty_page(&site).await;
    let failures = window.run_async(include_str!("store.js"), vec![]).await;
    assert_eq!(failures, json!([]));
}

#[tokio::test]
async fn every_text_is_there_in_both_languages_with_the_same_gaps() {
    let site = Site::start().await;
    let window = empty_page(&site).await;
    let script = r"
        const { texts } = await import('/assets/texts.js')
        const gaps = (text) => (typeof text === 'string' ? (text.match(/\{\w+\}/g) ?? []).sort() : [])
        const shape = (language) => Object.entries(texts[language]).map(([key, text]) => `${key} ${gaps(text)}`).sort()
        return [shape('en'), shape('zh')]";
    let shapes = window.run_async(script, vec![]).await;
    // Functions fill their own gaps; which language needs one is a matter of its grammar.
    let keys = |shape: &Value| -> Vec<String> {
        let lines = shape.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned());
        lines
            .filter(|line| !line.starts_with("panelPull ") && !PLURALS.contains(&line.split(' ').next().unwrap()))
            .collect()
    };
    assert!(keys(&shapes[0]).len() > 100);
    assert_eq!(keys(&shapes[0]), keys(&shapes[1]));
}

/// Texts that English writes in two ways.
const PLURALS: [&str; 3] = ["foundCount", "unread", "memberCount"];

#[tokio::test]
async fn four_devices_on_a_network_that_loses_and_delays_end_with_the_same_messages() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let group = alice.group("both", &[&bob]).await;
    let seed: u32 = std::env::var("SDK_SEED").map_or_else(|_| rand::rng().random(), |seed| seed.parse().unwrap());
    println!("seed: SDK_SEED={seed}");
    let sends = if std::env::var_os("TEST_LONG").is_some() { 100 } else { 12 };
    let window = empty_page(&site).await;
    let arguments = vec![json!([alice.login, bob.login]), json!(group), json!(seed), json!(sends)];
    let report = window.run_async(include_str!("flaky.js"), arguments).await;
    assert_eq!(report["failures"], json!([]), "seed {seed}");
    // The network was as bad as it was meant to be.
    for trouble in ["lostRequests", "lostAnswers", "lostFrames", "lostSockets", "snapshots"] {
        assert!(
            report["troubles"][trouble].as_i64().unwrap() > 0,
            "{trouble} with seed {seed}: {}",
            report["troubles"]
        );
    }
    assert!(report["healed"].as_i64().unwrap() > 0, "{report}");
    println!("{report}");
}
