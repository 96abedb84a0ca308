//! Two people meet and talk, as the page shows it to both.

use crate::support::browser::{Browser, Look};
use crate::support::people::{PASSWORD, Site, username};

#[tokio::test]
async fn two_people_sign_up_become_friends_and_talk() {
    let site = Site::start().await;
    let (alice, bob) = (Browser::start(Look::DESKTOP).await, Browser::start(Look::DESKTOP).await);
    let (alice, bob) = (alice.window().await, bob.window().await);
    for (window, name) in [(&alice, "Alice"), (&bob, "Bob")] {
        window.go(&site.url()).await;
        window.click("form .link").await;
        window.type_into("#username", &username(name)).await;
        window.type_into("#nickname", name).await;
        window.type_into("#password", PASSWORD).await;
        window.click("form .primary").await;
        window.see("h1", name).await;
        window.connected().await;
    }

    alice.click("#tab-contacts").await;
    alice.type_into("#find-people", "bob").await;
    alice.click("[data-control=ask]").await;
    alice.see(".find", "Request sent").await;
    bob.see("#tab-contacts .badge", "1").await;
    bob.click("#tab-contacts").await;
    bob.click("[data-control=agree]").await;
    bob.click("#tab-chats").await;
    bob.click("[data-control=open]").await;
    bob.see(".tip", "You are friends now").await;

    bob.type_into("#composer", "hi").await;
    alice.see(".find", "Write").await;
    alice.click("#tab-chats").await;
    alice.see(".item-last", "typing").await;
    bob.write(" Alice").await;
    alice.see(".item-last", "hi Alice").await;
    alice.see(".item .badge", "1").await;
    bob.count(".state.read", 0).await;
    alice.click("[data-control=open]").await;
    alice.count(".item .badge", 0).await;
    bob.count(".state.read", 1).await;
    alice.see(".message", "hi Alice").await;

    for window in [alice, bob] {
        window.browser().assert_no_console_errors(false).await;
    }
}

#[tokio::test]
async fn signing_in_tells_what_is_wrong_and_signing_out_removes_what_the_browser_kept() {
    let site = Site::start().await;
    site.person("Alice").await;
    let window = Browser::start(Look::DESKTOP).await.window().await;
    window.go(&site.url()).await;
    window.type_into("#username", &username("Alice")).await;
    window.type_into("#password", "wrong-1").await;
    window.click("form .primary").await;
    window.see("[role=alert]", "Wrong user name or password").await;
    window.run("document.querySelector('#password').value = ''", vec![]).await;
    window.type_into("#password", &format!("{PASSWORD}\n")).await;
    window.see("h1", "Alice").await;
    window.connected().await;
    let databases = "return (await indexedDB.databases()).map((database) => database.name).filter((name) => name.startsWith('nudge-'))";
    assert_eq!(window.run_async(databases, vec![]).await.as_array().unwrap().len(), 1);

    window.click(".menu summary").await;
    window.click(".menu-items button:last-child").await;
    window.see("form h1", "Sign in").await;
    assert_eq!(window.run_async(databases, vec![]).await.as_array().unwrap().len(), 0);
    let logins = "return Object.keys(localStorage).filter((key) => key.startsWith('nudge.login')).length";
    assert_eq!(window.run(logins, vec![]).await, 0);
    window.browser().assert_no_console_errors(false).await;
}

#[tokio::test]
async fn a_reply_quotes_and_a_recall_takes_the_text_away_on_both_sides() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    alice.say(&bob, "lunch at noon?").await;
    let (on_alice, on_bob) = (alice.opens(Look::DESKTOP).await, bob.opens(Look::DESKTOP).await);
    on_alice.open_chat_with(&bob).await;
    on_bob.open_chat_with(&alice).await;

    on_bob.run("document.querySelector('.message').focus()", vec![]).await;
    on_bob.click(".message [data-control=reply]").await;
    on_bob.see(".reply", "Alice: lunch at noon?").await;
    on_bob.write("yes, gladly").await;
    on_alice.see(".mine + .message .quote", "lunch at noon?").await;
    on_alice.see(".mine + .message", "yes, gladly").await;

    on_alice.run("document.querySelector('.message').focus()", vec![]).await;
    on_alice.click(".message.mine [data-control=recall]").await;
    on_alice.see(".tip", "You recalled a message").await;
    on_bob.see(".tip", "Alice recalled a message").await;
    // The quote stays: it was Bob's message that disclosed it.
    assert_eq!(on_alice.messages().await, ["yes, gladly"]);
    assert_eq!(on_bob.messages().await, ["yes, gladly"]);

    on_bob.reload().await;
    on_bob.connected().await;
    on_bob.open_chat_with(&alice).await;
    on_bob.see(".tip", "Alice recalled a message").await;
    assert_eq!(on_bob.messages().await, ["yes, gladly"]);
    for window in [on_alice, on_bob] {
        window.browser().assert_no_console_errors(false).await;
    }
}

#[tokio::test]
async fn texts_are_never_html_and_unknown_kinds_show_a_placeholder() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let window = bob.opens(Look::DESKTOP).await;
    let evil = "<img src=x onerror=\"window.isBroken = true\"><script>window.isBroken = true</script>";
    alice.say(&bob, evil).await;
    alice.send(&bob, 105, r#"{"name":"<b>report</b>.pdf","url":"https://example.org/report.pdf"}"#).await;
    alice.send(&bob, 102, r#"{"url":"https://example.org/tracker.png"}"#).await;
    alice.send(&bob, 107, r#"{"title":"old times","messages":[{}]}"#).await;
    window.open_chat_with(&alice).await;
    window.count(".message", 4).await;
    assert_eq!(window.messages().await[0], evil);
    assert_eq!(
        window
            .run(
                "return [window.isBroken ?? false, document.querySelectorAll('.messages img, .messages b').length]",
                vec![]
            )
            .await,
        serde_json::json!([false, 0])
    );
    window.see(".file[rel~=noopener]", "<b>report</b>.pdf").await;
    window.see(".file", "Picture").await;
    window.see(".text", "Forwarded messages").await;
    window.browser().assert_no_console_errors(false).await;
}

#[tokio::test]
async fn pictures_and_files_are_uploaded_and_reach_the_other_side() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let (on_alice, on_bob) = (alice.opens(Look::DESKTOP).await, bob.opens(Look::DESKTOP).await);
    on_alice.open_chat_with(&bob).await;
    on_bob.open_chat_with(&alice).await;
    let folder = tempfile::TempDir::new().unwrap();
    let (picture, notes) = (folder.path().join("a view.png"), folder.path().join("notes.txt"));
    std::fs::write(&picture, include_bytes!("../../docs/images/phone-light.png")).unwrap();
    std::fs::write(&notes, "bring the map").unwrap();

    on_bob.see("[aria-label='Send pictures or files']", "").await;
    on_bob.type_into("input[type=file]", &format!("{}\n{}", picture.display(), notes.display())).await;
    on_alice.wait_until("document.querySelector('.message img.picture')?.naturalWidth === 390").await;
    on_alice.see(".file", "notes.txt").await;
    let download = "const response = await fetch(document.querySelector('.file').href); return response.text()";
    assert_eq!(on_alice.run_async(download, vec![]).await, "bring the map");
    on_alice.see(".item-last", "File: notes.txt").await;
    for window in [on_alice, on_bob] {
        window.browser().assert_no_console_errors(false).await;
    }
}
