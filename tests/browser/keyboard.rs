//! The keyboard alone: what Enter means, where the arrows go, and what a screen reader is told.

use serde_json::json;

use crate::support::browser::Look;
use crate::support::people::Site;

#[tokio::test]
async fn enter_sends_shift_enter_breaks_the_line_and_input_methods_keep_their_enter() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let window = bob.opens(Look::DESKTOP).await;
    window.open_chat_with(&alice).await;
    // Shift down, Enter, Shift up.
    window.type_into("#composer", "two\u{e008}\n\u{e008}lines").await;
    assert_eq!(window.run("return document.querySelector('#composer').value", vec![]).await, "two\nlines");

    // Enter that ends a composition chooses what the input method offers.
    let composing = "const key = new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true });
                     document.querySelector('#composer').dispatchEvent(key);
                     return key.defaultPrevented";
    assert_eq!(window.run(composing, vec![]).await, false);
    window.count(".message", 0).await;
    window.press("\n").await;
    window.count(".message", 1).await;
    assert_eq!(window.messages().await, ["two\nlines"]);
    window.browser().assert_no_console_errors(false).await;
}

#[tokio::test]
async fn messages_are_reached_by_arrows_and_new_ones_are_read_out() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    for text in ["one", "two", "three"] {
        alice.say(&bob, text).await;
    }
    let window = bob.opens(Look::DESKTOP).await;
    // From the list to the conversation without a mouse.
    window.run("document.querySelector('.list [data-control=open]').focus()", vec![]).await;
    window.press("\n").await;
    window.count(".message", 3).await;
    assert_eq!(window.run("return document.activeElement.id", vec![]).await, "composer");

    // Shift and Tab lead to one message, the arrows to the others.
    window.run("document.querySelector('.messages li[tabindex=\"0\"]').focus()", vec![]).await;
    window.press("\u{e013}").await;
    let focused = "return document.activeElement.querySelector('.text')?.textContent";
    assert_eq!(window.run(focused, vec![]).await, "two");
    assert_eq!(
        window
            .run("return document.activeElement.querySelector('[data-control=reply]').checkVisibility()", vec![])
            .await,
        true
    );
    window.press("\u{e004}").await;
    window.press("\n").await;
    window.see(".reply", "Alice: two").await;
    window.press("\u{e00c}").await;
    window.miss(".reply", "two").await;

    alice.say(&bob, "look here").await;
    window
        .wait_until("document.querySelector('#announcer[aria-live=polite]').textContent === 'Alice: look here'")
        .await;
    // The log itself stays silent, or a whole conversation would be read out when it is opened.
    let live = "return document.querySelector('[role=log]').getAttribute('aria-live')";
    assert_eq!(window.run(live, vec![]).await, json!("off"));
    window.browser().assert_no_console_errors(false).await;
}
