//! What axe finds in the pages: nothing serious, in both colour schemes, on a desktop and on a phone, in both languages.

use serde_json::{Value, json};

use crate::support::browser::{Browser, Look, Window};
use crate::support::people::Site;

/// Fetched by `scripts/test` from the npm registry: axe-core is under another licence than this project.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/axe-core/axe.min.js");

/// Checks everything that is shown now.
async fn check(window: &Window, what: &str) {
    let axe = std::fs::read_to_string(AXE).expect("axe-core is missing; ./scripts/test fetches it");
    window.run(&format!("if (!window.axe) {{ {axe} }}"), vec![]).await;
    let script = "
        const { violations, passes } = await axe.run(document)
        const describe = ({ id, impact, nodes }) => ({ id, impact, where: nodes.map((node) => `${node.target}: ${node.failureSummary}`) })
        return { violations: violations.map(describe), passes: passes.length }";
    let result = window.run_async(script, vec![]).await;
    assert!(result["passes"].as_i64().unwrap() > 10, "{what}: axe has looked at nothing");
    let serious = |violation: &&Value| matches!(violation["impact"].as_str(), Some("serious" | "critical"));
    let found: Vec<&Value> = result["violations"].as_array().unwrap().iter().filter(serious).collect();
    assert!(found.is_empty(), "{what}: {found:#?}");
}

#[tokio::test]
async fn the_checker_finds_what_is_wrong() {
    let site = Site::start().await;
    let window = Browser::start(Look::DESKTOP).await.window().await;
    window.go(&site.url()).await;
    window.see("form h1", "Sign in").await;
    window.run("document.querySelector('label').replaceWith(document.querySelector('#username'))", vec![]).await;
    let failed = tokio::task::LocalSet::new();
    let result =
        failed.run_until(async { tokio::task::spawn_local(async move { check(&window, "broken").await }).await });
    assert!(result.await.is_err_and(|error| error.is_panic()));
}

#[tokio::test]
async fn nothing_serious_on_a_desktop_in_english() {
    everywhere(Look::DESKTOP).await;
}

#[tokio::test]
async fn nothing_serious_on_a_dark_phone_in_chinese() {
    everywhere(Look { is_dark: true, language: "zh-CN", ..Look::PHONE }).await;
}

/// Goes through the page as a person would, and checks at every stop.
async fn everywhere(look: Look) {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let carol = site.person("Carol").await;
    let group = alice.group("Weekend hike", &[&bob]).await;
    carol.post("/im/friend-request/apply", json!({"toUserId": bob.id})).await;
    alice.say(&bob, "hello").await;
    alice.send(&bob, 105, r#"{"name":"map.pdf","url":"https://example.org/map.pdf","size":20480}"#).await;
    alice.send(&bob, 125, r#"{"title":"an article"}"#).await;

    let fresh = Browser::start(look).await.window().await;
    fresh.go(&site.url()).await;
    fresh.count("form h1", 1).await;
    check(&fresh, "sign-in").await;
    fresh.click("form .link").await;
    check(&fresh, "registration").await;
    drop(fresh);

    let window = bob.opens(look).await;
    window.count(".item .badge", 1).await;
    check(&window, "list").await;
    window.click("#tab-contacts").await;
    window.type_into("#find-people", "a").await;
    window.count("[data-control=ask]", 2).await;
    check(&window, "contacts").await;
    window.click("#tab-chats").await;
    window.open_chat_with(&alice).await;
    window.count(".message", 3).await;
    window.type_into("#composer", "hi\n").await;
    window.count(".message.mine .state", 1).await;
    window.run("document.querySelector('.message').focus()", vec![]).await;
    window.click("[data-control=reply]").await;
    check(&window, "conversation").await;
    window.set_offline(true).await;
    window.type_into("#composer", "waiting\n").await;
    window.count(".pending", 1).await;
    check(&window, "without a network").await;
    window.set_offline(false).await;
    window.count(".pending", 0).await;
    if look.width < 720 {
        window.click(".conversation [aria-controls=panel]").await;
    }
    window.click("[data-control=cut]").await;
    window.count(".banner", 1).await;
    check(&window, "panel and banner").await;
    window.click("[data-control=cut]").await;
    window.connected().await;
    if look.width < 720 {
        window.click("#panel .icon-button").await;
        window.click(".conversation .icon-button").await;
    }
    window.open_chat(&format!("g{group}")).await;
    window.count(".tip", 1).await;
    window.click(".conversation .bar .icon-button:nth-of-type(2)").await;
    window.count("dialog", 1).await;
    check(&window, "group").await;
    window.press("\u{e00c}").await;
    window.browser().assert_no_console_errors(true).await;
}
