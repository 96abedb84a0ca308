//! Makes the pictures of the documentation anew: `scripts/screenshots`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::browser::{Look, Window};
use crate::support::people::{Person, Site};

const SMALL: Look = Look { width: 1280, height: 780, ..Look::DESKTOP };

async fn save(window: &Window, name: &str) {
    // What appears with the last message, such as read marks, is to be on the picture.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    std::fs::create_dir_all(&folder).unwrap();
    let picture = window.screenshot().await;
    assert!(picture.len() < 200 << 10, "{name} has {} bytes", picture.len());
    std::fs::write(folder.join(name), picture).unwrap();
}

#[tokio::test]
#[ignore = "writes docs/images; run by scripts/screenshots"]
async fn pictures_of_the_web_chat() {
    let site = Site::start().await;
    let (alice, bob) = site.friends("Alice", "Bob").await;
    let (carol, lei) = (site.person("Carol").await, site.person("Lei").await);
    lei.call(reqwest::Method::PUT, "/system/user/profile/update", json!({"nickname": "李雷"})).await;
    for friend in [&carol, &lei] {
        alice.befriend(friend).await;
    }
    let group = alice.group("Weekend hike", &[&bob, &carol, &lei]).await;
    talk(&alice, &bob, &carol, &lei, group).await;

    let on_alice = alice.opens(SMALL).await;
    let on_bob = bob.opens(Look::PHONE).await;
    let on_carol = carol.opens(Look { is_dark: true, ..SMALL }).await;
    let on_lei = lei.opens(Look { language: "zh-CN", is_dark: true, ..Look::PHONE }).await;
    for window in [&on_alice, &on_carol, &on_lei] {
        window.open_chat(&format!("g{group}")).await;
    }
    on_bob.open_chat_with(&alice).await;
    on_alice.write("Perfect. See you there!").await;
    save(&on_alice, "desktop-light.png").await;
    save(&on_carol, "desktop-dark.png").await;
    save(&on_bob, "phone-light.png").await;
    save(&on_lei, "phone-dark-chinese.png").await;

    on_alice.open_chat_with(&bob).await;
    on_alice.click("[data-control=cut]").await;
    on_alice.see(".banner", "cut").await;
    for text in ["Are you there?", "I found the map.", "Never mind, see you on Saturday."] {
        bob.say(&alice, text).await;
    }
    save(&on_alice, "panel-cut.png").await;
    on_alice.click("[data-control=cut]").await;
    on_alice.see(".events .healed", "3 healed").await;
    save(&on_alice, "panel-healed.png").await;
}

/// What was said before.
async fn talk(alice: &Person, bob: &Person, carol: &Person, lei: &Person, group: i64) {
    carol.say(alice, "The photos are on the drive.").await;
    alice.say(lei, "你的帐篷还在吗？").await;
    lei.say(alice, "在的，周五带给你。").await;
    bob.say(alice, "Shall I bring the stove?").await;
    let question = alice.say(bob, "Yes please, and the blue pot. Mine has a hole since last summer.").await;
    let quote = json!({"content": "It is in the car already.", "quote": {"messageId": question["id"]}});
    bob.send(alice, 101, &quote.to_string()).await;
    alice.say(bob, "You are the best.").await;
    say_in(alice, group, "Saturday, nine o'clock at the station?").await;
    say_in(bob, group, "Count me in. The weather should hold until noon, so let us take the ridge first and the valley on the way back.").await;
    say_in(carol, group, "I bring sandwiches.").await;
    say_in(lei, group, "我带热茶。").await;
}

async fn say_in(person: &Person, group: i64, text: &str) -> Value {
    let client_id: u128 = rand::random();
    let content = json!({"content": text}).to_string();
    let body =
        json!({"clientMessageId": format!("{client_id:032x}"), "groupId": group, "type": 101, "content": content});
    person.post("/im/message/group/send", body).await
}
