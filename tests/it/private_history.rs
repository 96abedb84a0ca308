//! Recalling, pulling and listing private messages (`contract/02` P2, P3, P6).

use nudge::config::{AuthConfig, Config};
use serde_json::{Value, json};

use crate::support::app::{ManualClock, Person, Setup, TestApp, befriend, id_of, ids_of};
use crate::support::barrier::told;
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::{code_of, redacted};
use crate::support::tables::{fingerprint, lines, open};

on_every_database! {
    a_recall_reaches_both_sides_and_takes_the_text_away,
    only_ones_own_recent_message_can_be_recalled,
    a_recall_has_its_time,
    pages_have_limits,
    pages_of_any_size_give_the_same_rows,
    the_pull_window_ends_after_thirty_days,
    history_goes_backwards_and_shows_recalls_in_place,
}

const START: i64 = 1_800_000_000_000;
const DAY: i64 = 86_400_000;

fn recall_path(message: &Value) -> String {
    format!("/im/message/private/recall?id={}", message["id"])
}

async fn history(person: &Person, peer: &Person, rest: &str) -> Vec<Value> {
    let rows = person.get(&format!("/im/message/private/list?receiverId={}{rest}", peer.id)).await;
    rows.as_array().unwrap().clone()
}

async fn app_at(clock: &ManualClock, backend: Backend) -> TestApp {
    TestApp::start_with(backend, Setup { clock: Some(clock.clock()), ..Setup::default() }).await
}

async fn a_recall_reaches_both_sides_and_takes_the_text_away(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let message = alice.send(&bob, "secret").await;
    let mut sockets = [alice.connect().await, bob.connect().await];
    let recall = alice.delete(&recall_path(&message)).await;
    insta::allow_duplicates! {
        insta::assert_snapshot!(
            redacted(&recall, &["id", "clientMessageId", "senderId", "receiverId", "sendTime", "content"]), @r#"
    {
      "clientMessageId": "[clientMessageId]",
      "content": "[content]",
      "id": "[id]",
      "receiptStatus": 0,
      "receiverId": "[receiverId]",
      "sendTime": "[sendTime]",
      "senderId": "[senderId]",
      "status": 0,
      "type": 2101
    }
    "#);
    }
    assert_eq!(recall["content"], json!({"messageId": message["id"]}).to_string());
    assert_eq!((&recall["senderId"], &recall["receiverId"]), (&json!(alice.id), &json!(bob.id)));
    assert!(id_of(&recall) > id_of(&message));
    for (person, socket) in [&alice, &bob].into_iter().zip(&mut sockets) {
        let pushes = told(&app, person, socket).await;
        assert_eq!(pushes.len(), 1);
        assert_eq!((pushes[0].conversation_type, pushes[0].content_type, &pushes[0].payload), (1, 2101, &recall));
        let rows = person.pull_from(id_of(&message) - 1, 100).await;
        let mut blank = message.clone();
        (blank["status"], blank["content"]) = (json!(2), json!("{}"));
        assert_eq!(rows, [blank, recall.clone()]);
    }
    // The text stays for the operator.
    let sql = format!("SELECT content AS line FROM im_private_message WHERE id = {}", message["id"]);
    assert_eq!(lines(&mut open(&app.database.url).await, &sql).await, [message["content"].as_str().unwrap()]);
}

async fn only_ones_own_recent_message_can_be_recalled(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("stranger").await;
    let message = alice.send(&bob, "x").await;
    let event = bob.pull_all(1).await[0].clone();
    let before = fingerprint(&app.database.url).await;
    assert_eq!(code_of(&stranger, "DELETE", &recall_path(&message)).await, 1_040_300_000, "it is not there for her");
    for nothing in ["0", "-1", "9007199254740991", "9223372036854775807"] {
        assert_eq!(code_of(&alice, "DELETE", &format!("/im/message/private/recall?id={nothing}")).await, 1_040_300_000);
    }
    assert_eq!(code_of(&bob, "DELETE", &recall_path(&message)).await, 1_040_300_002);
    assert_eq!(code_of(&alice, "DELETE", &recall_path(&event)).await, 1_040_300_002, "a line that the server made");
    assert_eq!(fingerprint(&app.database.url).await, before);

    let recall = alice.delete(&recall_path(&message)).await;
    let before = fingerprint(&app.database.url).await;
    assert_eq!(code_of(&alice, "DELETE", &recall_path(&message)).await, 1_040_300_003);
    assert_eq!(code_of(&alice, "DELETE", &recall_path(&recall)).await, 1_040_300_002, "a recall itself");
    assert_eq!(code_of(&stranger, "DELETE", &recall_path(&message)).await, 1_040_300_000, "still not there for her");
    assert_eq!(fingerprint(&app.database.url).await, before);
}

async fn a_recall_has_its_time(backend: Backend) {
    let clock = ManualClock::at(START);
    let app = app_at(&clock, backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (in_time, late) = (alice.send(&bob, "in time").await, alice.send(&bob, "late").await);
    assert_eq!(in_time["sendTime"], START);
    clock.jump(5 * 60_000);
    assert_eq!(code_of(&alice, "DELETE", &recall_path(&in_time)).await, 0);
    clock.jump(1);
    assert_eq!(code_of(&alice, "DELETE", &recall_path(&late)).await, 1_040_300_007);
    // The order of the checks: what is recalled is so whatever the time.
    assert_eq!(code_of(&alice, "DELETE", &recall_path(&in_time)).await, 1_040_300_003);
}

async fn pages_have_limits(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let pull = async |query: &str| code_of(&alice, "GET", &format!("/im/message/private/pull?{query}")).await;
    for (query, expected) in [
        ("minId=0&size=1", 0),
        ("minId=0&size=1000", 0),
        ("minId=0&size=1001", 1_040_300_005),
        ("minId=0&size=9223372036854775807", 1_040_300_005),
        ("minId=0&size=0", 400),
        ("minId=0&size=-1", 400),
        ("minId=0&size=", 400),
        ("minId=&size=1", 400),
        ("minId=0", 400),
        ("size=1", 400),
    ] {
        assert_eq!(pull(query).await, expected, "{query}");
    }
    let list = async |query: &str| {
        code_of(&alice, "GET", &format!("/im/message/private/list?receiverId={}{query}", bob.id)).await
    };
    for (query, expected) in [
        ("&limit=1", 0),
        ("&limit=200&maxId=", 0),
        ("&limit=0", 400),
        ("&limit=201", 400),
        ("&limit=-1", 400),
        ("", 400),
    ] {
        assert_eq!(list(query).await, expected, "{query}");
    }
    assert_eq!(code_of(&alice, "GET", "/im/message/private/list?limit=1").await, 400);
}

async fn pages_of_any_size_give_the_same_rows(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    let mut expected = ids_of(&alice.pull_all(100).await);
    for round in 0..20 {
        let text = round.to_string();
        expected.push(id_of(&bob.send(&alice, &text).await));
        expected.push(id_of(&alice.send(&carol, &text).await));
    }
    for size in [1, 2, 7, 41, 42, 43, 1_000] {
        assert_eq!(ids_of(&alice.pull_all(size).await), expected, "size {size}");
    }
    // A cursor beyond the end is answered at once, one before the beginning as the beginning.
    for (min_id, count) in
        [("9007199254740991", 0), ("9223372036854775807", 0), ("-1", 42), ("-9223372036854775808", 42)]
    {
        let rows = alice.get(&format!("/im/message/private/pull?minId={min_id}&size=100")).await;
        assert_eq!(rows.as_array().unwrap().len(), count, "{min_id}");
    }
}

async fn the_pull_window_ends_after_thirty_days(backend: Backend) {
    let clock = ManualClock::at(START);
    // Logins that outlast the window.
    let auth = AuthConfig { access_token_ttl_s: 100 * DAY / 1_000, ..AuthConfig::default() };
    let config = Config { auth, ..Config::default() };
    let app = TestApp::start_with(backend, Setup { config, clock: Some(clock.clock()), ..Setup::default() }).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let old = alice.send(&bob, "old").await;
    clock.jump(DAY);
    let young = alice.send(&bob, "young").await;
    let everything = [&old, &young].map(id_of);
    assert!(ids_of(&bob.pull_all(100).await).ends_with(&everything));
    clock.jump(29 * DAY - 1);
    assert!(ids_of(&bob.pull_all(100).await).ends_with(&everything), "a millisecond before the end of the window");
    // The start of the window may be an hour old.
    clock.jump(3_600_001);
    assert_eq!(ids_of(&bob.pull_all(100).await), [id_of(&young)]);
    clock.jump(2 * DAY);
    assert_eq!(bob.pull_all(100).await, Vec::<Value>::new());
    assert_eq!(ids_of(&history(&bob, &alice, "&limit=2").await), [id_of(&young), id_of(&old)], "history has no window");
}

async fn history_goes_backwards_and_shows_recalls_in_place(backend: Backend) {
    let app = TestApp::start(backend).await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let carol = app.user("carol").await;
    befriend(&alice, &carol).await;
    let one = alice.send(&bob, "one").await;
    alice.send(&carol, "elsewhere").await;
    let two = bob.send(&alice, "two").await;
    alice.delete(&recall_path(&one)).await;
    let three = alice.send(&bob, "three").await;
    for (person, peer) in [(&alice, &bob), (&bob, &alice)] {
        let rows = history(person, peer, "&limit=200").await;
        assert_eq!(rows[..2], [three.clone(), two.clone()]);
        let mut recalled = one.clone();
        (recalled["type"], recalled["status"], recalled["content"]) = (json!(2101), json!(2), json!("{}"));
        assert_eq!(rows[2], recalled, "where the message was, and no line of its own");
        assert_eq!((rows.len(), &rows[3]["type"]), (4, &json!(1204)));
        // Page by page.
        let (mut found, mut max_id) = (Vec::new(), String::new());
        loop {
            let page = history(person, peer, &format!("&limit=3{max_id}")).await;
            found.extend(page.clone());
            match page.last() {
                Some(last) if page.len() == 3 => max_id = format!("&maxId={}", last["id"]),
                _ => break,
            }
        }
        assert_eq!(found, rows);
    }
    assert_eq!(history(&bob, &carol, "&limit=200").await, Vec::<Value>::new(), "not his conversation");
    assert_eq!(history(&bob, &alice, "&limit=200&maxId=0").await, Vec::<Value>::new());
}
