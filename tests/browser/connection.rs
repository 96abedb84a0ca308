//! Sockets that are cut, networks that go away, servers that start again: push stops, pull heals.

use crate::support::PATIENCE;
use crate::support::browser::Look;
use crate::support::people::Site;

/// Returns once the named database holds a draft.
const DRAFT_IS_STORED: &str = "
    const { IndexedDbPersistence } = await import('/assets/sdk/nudge.js')
    for (;;) {
      const persistence = new IndexedDbPersistence(arguments[0])
      const { outbox } = await persistence.load()
      persistence.close()
      if (outbox.length === 1) return
      await new Promise((resolve) => setTimeout(resolve, 20))
    }";

#[tokio::test]
async fn while_the_socket_is_cut_nothing_comes_and_the_pull_after_it_brings_all() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let window = bob.opens(Look::DESKTOP).await;
    window.open_chat_with(&alice).await;
    alice.say(&bob, "pushed").await;
    window.see(".message", "pushed").await;
    window.see("#panel [data-value=healed]", "0").await;

    window.click("[data-control=cut]").await;
    window.see(".banner", "The socket is cut").await;
    window.see("#panel [data-value=socket]", "cut").await;
    for text in ["one", "two", "three"] {
        alice.say(&bob, text).await;
    }
    // The server has stored them and pushed them to nobody.
    assert_eq!(bob.get("/im/session/list").await, serde_json::json!([]));
    assert_eq!(window.messages().await, ["pushed"]);

    window.click("[data-control=cut]").await;
    window.count(".message", 4).await;
    assert_eq!(window.messages().await, ["pushed", "one", "two", "three"]);
    window.see("#panel [data-value=healed]", "3").await;
    window.see(".events .healed", "3 healed").await;
    window.browser().assert_no_console_errors(false).await;
}

#[tokio::test]
async fn what_is_written_without_a_network_is_sent_once_when_it_is_back() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let window = bob.opens(Look::DESKTOP).await;
    window.open_chat_with(&alice).await;
    window.set_offline(true).await;
    window.write("first").await;
    window.write("second").await;
    window.count(".pending", 2).await;
    alice.say(&bob, "meanwhile").await;
    window.see("#panel [data-value=outbox]", "2").await;

    window.set_offline(false).await;
    window.count(".pending", 0).await;
    window.see(".message", "meanwhile").await;
    window.count(".message", 3).await;
    let stored = alice.get(&format!("/im/message/private/list?receiverId={}&limit=50", bob.id)).await;
    let texts: Vec<&str> = stored.as_array().unwrap().iter().rev().filter_map(|row| row["content"].as_str()).collect();
    let written: Vec<&&str> = texts.iter().filter(|text| text.contains("first") || text.contains("second")).collect();
    assert_eq!(written, [&r#"{"content":"first"}"#, &r#"{"content":"second"}"#]);
    window.browser().assert_no_console_errors(true).await;
}

#[tokio::test]
async fn a_server_that_starts_again_finds_its_clients_with_nothing_lost() {
    let mut site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let (on_alice, on_bob) = (alice.opens(Look::DESKTOP).await, bob.opens(Look::DESKTOP).await);
    on_alice.open_chat_with(&bob).await;
    on_bob.open_chat_with(&alice).await;
    on_alice.write("before").await;
    on_bob.see(".message", "before").await;

    site.server.sigterm();
    site.server.wait_for_exit(PATIENCE).await.unwrap();
    on_bob.see(".banner", "The connection is lost").await;
    on_alice.write("during").await;
    on_alice.count(".pending", 1).await;
    on_alice.run_async(DRAFT_IS_STORED, vec![format!("nudge-{}-1", alice.id).into()]).await;
    // Closed before the answer: the draft is in the database, and the next window sends it.
    on_alice.go("about:blank").await;
    site.server.restart().await.unwrap();
    let on_alice = alice.opens_in(on_alice.browser()).await;
    on_alice.open_chat_with(&bob).await;
    on_alice.count(".pending", 0).await;
    on_bob.see(".message", "during").await;
    on_bob.connected().await;
    on_alice.connected().await;
    on_bob.write("after").await;
    on_alice.see(".message", "after").await;
    for window in [&on_alice, &on_bob] {
        assert_eq!(window.messages().await, ["before", "during", "after"]);
        window.browser().assert_no_console_errors(true).await;
    }
}

#[tokio::test]
async fn a_session_closed_from_another_device_stays_away_until_it_is_asked_back() {
    let site = Site::start().await;
    let bob = site.person("Bob").await;
    let window = bob.opens(Look::DESKTOP).await;
    let sessions = bob.get("/im/session/list").await;
    let close = format!("/im/session/close?id={}", sessions[0]["id"]);
    bob.call(reqwest::Method::DELETE, &close, serde_json::Value::Null).await;
    window.see(".banner", "closed from another device").await;
    // Not by itself, and not because the network is back either.
    window.run("dispatchEvent(new Event('online'))", vec![]).await;
    window.see("#panel [data-value=socket]", "closed").await;
    assert_eq!(bob.get("/im/session/list").await, serde_json::json!([]));
    window.click(".banner button").await;
    window.connected().await;
    window.browser().assert_no_console_errors(false).await;
}
