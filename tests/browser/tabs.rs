//! Two people with two windows each: every window is a device with its own socket, cursors and database.

use crate::support::browser::Look;
use crate::support::people::Site;

#[tokio::test]
async fn every_window_is_a_device_that_shows_everything_once() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let (a1, b1) = (alice.opens(Look::DESKTOP).await, bob.opens(Look::DESKTOP).await);
    let (a2, b2) = (alice.opens_in(a1.browser()).await, bob.opens_in(b1.browser()).await);
    let sockets = alice.get("/im/session/list").await;
    let mut devices: Vec<&str> = sockets.as_array().unwrap().iter().map(|it| it["device"].as_str().unwrap()).collect();
    devices.dedup();
    assert_eq!(devices.len(), 2, "{devices:?}");

    // Windows that are not looked at do not read.
    for window in [&b1, &b2] {
        window.see(".item-last", "You are friends now").await;
    }
    a1.open_chat_with(&bob).await;
    a1.write("from the first").await;
    a2.open_chat_with(&bob).await;
    a2.write("from the second").await;
    for window in [&b1, &b2] {
        window.see(".item .badge", "2").await;
    }
    b1.open_chat_with(&alice).await;
    // Read in one window, read in the other.
    b2.count(".item .badge", 0).await;
    a1.count(".state.read", 2).await;
    a2.count(".state.read", 2).await;
    b2.open_chat_with(&alice).await;
    for window in [&a1, &a2, &b1, &b2] {
        window.count(".message", 2).await;
        assert_eq!(window.messages().await, ["from the first", "from the second"]);
    }

    // The end of a login is the end of all its windows.
    a1.click(".menu summary").await;
    a1.click(".menu-items button:last-child").await;
    a1.see("form h1", "Sign in").await;
    a2.see("form", "You have been signed out").await;
    for window in [a1, b1] {
        window.browser().assert_no_console_errors(false).await;
    }
}

#[tokio::test]
async fn a_window_that_is_opened_again_takes_up_its_former_database() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    alice.say(&bob, "one").await;
    let first = bob.opens(Look::DESKTOP).await;
    let second = bob.opens_in(first.browser()).await;
    let device = "return sessionStorage.getItem('nudge.device')";
    assert_eq!(first.run(device, vec![]).await, "1");
    assert_eq!(second.run(device, vec![]).await, "2");
    second.reload().await;
    second.connected().await;
    assert_eq!(second.run(device, vec![]).await, "2");

    second.go(&format!("{}/assets/icon.svg", site.url())).await;
    let third = bob.opens_in(first.browser()).await;
    assert_eq!(third.run(device, vec![]).await, "2");
    // What the database held needs no pull.
    third.see("#panel [data-value=lastPull]", "connect").await;
    third.see(".events", "0 new").await;
    third.see(".item-last", "one").await;
    first.browser().assert_no_console_errors(false).await;
}
