//! A group of three, from its making to somebody's leaving.

use crate::support::browser::Look;
use crate::support::people::Site;

#[tokio::test]
async fn a_group_is_made_talks_counts_readers_and_is_left() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let carol = site.person("Carol").await;
    alice.befriend(&carol).await;
    let (on_alice, on_bob, on_carol) =
        (alice.opens(Look::DESKTOP).await, bob.opens(Look::DESKTOP).await, carol.opens(Look::PHONE).await);

    on_alice.click("[aria-label='New group']").await;
    on_alice.count("dialog input[type=checkbox]", 2).await;
    on_alice.type_into("#group-name", "Weekend hike").await;
    for person in [&bob, &carol] {
        on_alice.click(&format!("dialog input[value='{}']", person.id)).await;
    }
    on_alice.click("dialog .primary").await;
    on_alice.see("#conversation-title", "Weekend hike").await;
    on_alice.see(".subtitle", "3 members").await;
    on_alice.click("[aria-label='Ask for a read receipt']").await;
    on_alice.write("Saturday at nine?").await;
    on_alice.see(".state.receipt", "Read by 0").await;

    on_bob.see(".item-last", "Alice: Saturday at nine?").await;
    on_bob.click(".list [data-key^=g] button").await;
    on_bob.see(".tip", "Alice created the group").await;
    on_alice.see(".state.receipt", "Read by 1").await;
    on_carol.click(".list [data-key^=g] button").await;
    on_carol.see(".sender", "Alice").await;
    on_alice.see(".state.receipt", "Read by all").await;
    on_alice.click(".state.receipt").await;
    on_alice.see("dialog", "Carol").await;
    on_alice.press("\u{e00c}").await;

    // On a phone's width one pane at a time is shown.
    on_carol.count("#filter", 0).await;
    on_carol.write("fine with me").await;
    on_alice.see(".message", "fine with me").await;
    on_carol.click("[aria-label='Back to the list']").await;
    on_carol.see(".item-last", "You: fine with me").await;

    on_bob.click("[aria-label='Group']").await;
    on_bob.click("dialog .danger").await;
    on_bob.see(".closed", "You are no longer in this group").await;
    on_alice.see(".tip", "Bob left the group").await;
    on_alice.see(".subtitle", "2 members").await;
    on_alice.write("a pity").await;
    on_carol.see(".item-last", "Alice: a pity").await;
    on_bob.miss(".message", "a pity").await;
    for window in [on_alice, on_bob, on_carol] {
        window.browser().assert_no_console_errors(false).await;
    }
}
