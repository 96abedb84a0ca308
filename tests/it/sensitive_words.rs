//! Sensitive words: operators keep the list, and texts that hold one are refused (`contract/05` part D and E7).

use futures_util::future::join_all;
use nudge::config::Config;
use serde_json::{Value, json};

use crate::support::app::{
    Person, Setup, TestApp, data, eventually, id_of, ids_of, random_id, start_server, text_message,
};
use crate::support::databases::{Backend, on_every_database};
use crate::support::friends::{check_forms, code_of, nothing_came, unfriend};
use crate::support::groups::{NOT_MEMBER, code, make_group, put, try_say};

on_every_database! {
    texts_with_a_sensitive_word_are_refused_at_once_and_nowhere_else,
    the_permission_to_send_is_asked_for_first_and_repeats_are_not_asked_again,
    words_are_found_in_every_form_of_writing,
    words_are_made_changed_found_and_deleted,
    of_concurrent_makers_of_a_word_one_wins,
    words_of_the_wrong_form_are_refused,
}

const SENSITIVE: i64 = 1_040_300_004;
const NO_SUCH_WORD: i64 = 1_040_700_000;
const WORD_EXISTS: i64 = 1_040_700_001;
const WORDS: &str = "/im/manager/sensitive-word";

async fn create(operator: &Person, word: &str) -> i64 {
    let body = json!({"word": word, "status": 0});
    operator.post(&format!("{WORDS}/create"), body).await.as_i64().unwrap()
}

async fn say_to(from: &Person, to: &Person, text: &str) -> i64 {
    code_of(&from.send_as(to, &random_id(), text).await)
}

async fn texts_with_a_sensitive_word_are_refused_at_once_and_nowhere_else(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let group = make_group(&alice, &[&bob]).await;
    let mut socket = bob.connect().await;
    assert_eq!(say_to(&alice, &bob, "cheap pills").await, 0, "there are no words yet");
    socket.drain().await;
    let stored = alice.pull_all(100).await.len();
    for round in 0..5 {
        let word = format!("pills{round}");
        let text = format!("cheap {word}!");
        assert_eq!(say_to(&alice, &bob, &text).await, 0, "round {round}");
        socket.drain().await;
        let id = create(&operator, &word).await;
        assert_eq!(say_to(&alice, &bob, &text).await, SENSITIVE, "the very next send, round {round}");
        assert_eq!(code_of(&try_say(&bob, group, &text).await), SENSITIVE, "round {round}");
        nothing_came([&mut socket]).await;
        operator.delete(&format!("{WORDS}/delete?id={id}")).await;
        assert_eq!(say_to(&alice, &bob, &text).await, 0, "round {round}");
        socket.drain().await;
        create(&operator, &word).await;
    }
    assert_eq!(alice.pull_all(100).await.len(), stored + 10, "what was refused is not stored");
    // Only what a text says is looked at.
    let image = json!({"url": "/pills0.png"}).to_string();
    let body = json!({"clientMessageId": random_id(), "receiverId": bob.id, "type": 102, "content": image});
    data(alice.call("POST", "/im/message/private/send", Some(body)).await);
    let mut with_more = text_message(bob.id, &random_id(), "");
    with_more["content"] = json!(json!({"content": "hello", "pills0": "pills0"}).to_string());
    data(alice.call("POST", "/im/message/private/send", Some(with_more)).await);
    put(&alice, "/im/group/update", json!({"id": group, "name": "pills0"})).await;
}

async fn the_permission_to_send_is_asked_for_first_and_repeats_are_not_asked_again(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let stranger = app.user("stranger").await;
    let group = make_group(&alice, &[&bob]).await;
    let first = data(alice.send_as(&bob, "once", "buy now").await);
    create(&operator, "buy").await;
    assert_eq!(data(alice.send_as(&bob, "once", "buy now").await)["id"], first["id"], "it is stored already");
    assert_eq!(code_of(&alice.send_as(&bob, "once", "buy more").await), 1_040_300_014);
    assert_eq!(say_to(&stranger, &bob, "buy now").await, 1_040_600_001);
    assert_eq!(code_of(&try_say(&stranger, group, "buy now").await), NOT_MEMBER);
    // Before the quote.
    let mut quoting = text_message(bob.id, &random_id(), "");
    quoting["content"] = json!(json!({"content": "buy", "quote": {"messageId": 987_654_321}}).to_string());
    assert_eq!(code_of(&alice.call("POST", "/im/message/private/send", Some(quoting)).await), SENSITIVE);
    // What was said before the word was one can be quoted: it is a copy of what everybody there has.
    let mut quoting = text_message(bob.id, &random_id(), "");
    quoting["content"] = json!(json!({"content": "this", "quote": {"messageId": id_of(&first)}}).to_string());
    data(alice.call("POST", "/im/message/private/send", Some(quoting)).await);
    unfriend(&bob, &alice).await;
    assert_eq!(say_to(&alice, &bob, "buy now").await, 1_040_600_001);
}

async fn words_are_found_in_every_form_of_writing(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    for word in ["Spam", "赌钱", "線上110"] {
        create(&operator, word).await;
    }
    let refused =
        ["spam", "SPAM", "antiSpAmmer", "ｓｐａｍ", "去賭錢", "赌钱", "线上１１０", "線上①①⓪", "\"spam\"", "a\nspam"];
    for text in refused {
        assert_eq!(say_to(&alice, &bob, text).await, SENSITIVE, "{text}");
    }
    for text in ["spa m", "赌", "content", "线上11", "ham"] {
        assert_eq!(say_to(&alice, &bob, text).await, 0, "{text}");
    }
}

async fn words_are_made_changed_found_and_deleted(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let (one, two) = (create(&operator, "  Spam 100% ").await, create(&operator, "eggs").await);
    let page = async |query: &str| {
        let page = operator.get(&format!("{WORDS}/page?{query}")).await;
        (ids_of(page["list"].as_array().unwrap()), page["total"].as_i64().unwrap())
    };
    let shown = operator.get(&format!("{WORDS}/page")).await["list"][1].clone();
    let mut expected = json!({"id": one, "word": "Spam 100%", "status": 0, "creator": operator.id.to_string(),
        "creatorName": "operator", "createTime": shown["createTime"]});
    assert_eq!(shown, expected);
    expected["creatorName"] = Value::Null;
    assert_eq!(operator.get(&format!("{WORDS}/get?id={one}")).await, expected);
    let update = |id: i64, word: &str, status: i64| json!({"id": id, "word": word, "status": status});
    let change = format!("{WORDS}/update");
    put(&operator, &change, update(two, "eggs", 1)).await;
    assert_eq!(say_to(&alice, &bob, "eggs").await, 0, "a word that is switched off");
    let cases = [
        ("", vec![two, one]),
        ("word=SPAM", vec![one]),
        ("word=%25", vec![one]),
        ("word=%20", vec![two, one]),
        ("status=1", vec![two]),
        ("status=0&word=eggs", vec![]),
        ("createTime=,2020-01-01%2000:00:00", vec![]),
        ("pageSize=1&pageNo=2", vec![one]),
    ];
    for (query, expected) in cases {
        let total = if query.starts_with("page") { 2 } else { expected.len() as i64 };
        assert_eq!(page(query).await, (expected, total), "{query}");
    }
    put(&operator, &change, update(two, "bacon", 0)).await;
    assert_eq!(say_to(&alice, &bob, "eggs").await, 0);
    assert_eq!(say_to(&alice, &bob, "bacon").await, SENSITIVE);

    let again = json!({"word": "bacon", "status": 1});
    let create_path = format!("{WORDS}/create");
    assert_eq!(code(&operator, "POST", &create_path, again).await, WORD_EXISTS);
    assert_eq!(code(&operator, "PUT", &change, update(one, "bacon", 0)).await, WORD_EXISTS);
    put(&operator, &change, update(one, "Spam 100%", 0)).await;
    assert_eq!(code(&operator, "PUT", &change, update(987_654_321, "new", 0)).await, NO_SUCH_WORD);
    assert_eq!(code(&operator, "PUT", &change, update(987_654_321, "bacon", 0)).await, NO_SUCH_WORD);
    let delete = format!("{WORDS}/delete?id={two}");
    assert_eq!(code(&operator, "DELETE", &delete, Value::Null).await, 0);
    assert_eq!(code(&operator, "DELETE", &delete, Value::Null).await, NO_SUCH_WORD);
    assert_eq!(operator.get(&format!("{WORDS}/get?id={two}")).await, Value::Null);
    assert_eq!(say_to(&alice, &bob, "bacon").await, 0);
    let new = create(&operator, "bacon").await;
    assert!(new != two, "a deleted word can be made again");
    assert_eq!(say_to(&alice, &bob, "bacon").await, SENSITIVE);
    operator.delete(&format!("{WORDS}/delete-list?ids={one},{new},987654321")).await;
    assert_eq!(page("").await, (vec![], 0));
    assert_eq!(say_to(&alice, &bob, "bacon and spam 100%").await, 0);
}

async fn of_concurrent_makers_of_a_word_one_wins(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    for round in 0..3 {
        let body = json!({"word": format!("word {round}"), "status": 0});
        let create = format!("{WORDS}/create");
        let codes = join_all((0..5).map(|_| code(&operator, "POST", &create, body.clone()))).await;
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, WORD_EXISTS, WORD_EXISTS, WORD_EXISTS, WORD_EXISTS], "{codes:?}");
    }
}

/// Not on SQLite, which takes no second server.
mod another_server_learns_of_new_words {
    use super::*;

    #[actix_web::test]
    async fn postgres() {
        two_servers(Backend::Postgres).await;
    }

    #[actix_web::test]
    async fn mysql() {
        two_servers(Backend::Mysql).await;
    }
}

async fn two_servers(backend: Backend) {
    let app = TestApp::start(backend).await;
    let second = start_server(&app.database.url, Setup { config: Config::default(), ..Setup::default() }).await;
    let operator = app.operator().await;
    let (alice, bob) = app.friends("alice", "bob").await;
    let elsewhere = alice.on(&format!("http://{}", second.address()));
    assert_eq!(say_to(&elsewhere, &bob, "cheap pills").await, 0);
    let id = create(&operator, "pills").await;
    eventually("the other server refuses the word", async || {
        say_to(&elsewhere, &bob, "cheap pills").await == SENSITIVE
    })
    .await;
    operator.delete(&format!("{WORDS}/delete?id={id}")).await;
    eventually("the other server takes it again", async || say_to(&elsewhere, &bob, "cheap pills").await == 0).await;
}

async fn words_of_the_wrong_form_are_refused(backend: Backend) {
    let app = TestApp::start(backend).await;
    let operator = app.operator().await;
    let [create, update, delete, delete_list] =
        ["create", "update", "delete", "delete-list"].map(|verb| format!("{WORDS}/{verb}"));
    let hundred_and_one = format!("{delete_list}?ids={}", vec!["1"; 101].join(","));
    let (no_list, bad_list) = (format!("{delete_list}?ids="), format!("{delete_list}?ids=1,x"));
    let too_long = "x".repeat(65);
    let malformed = [
        ("POST", create.as_str(), json!({"word": "x"})),
        ("POST", &create, json!({"status": 0})),
        ("POST", &create, json!({"word": " \t", "status": 0})),
        ("POST", &create, json!({"word": too_long, "status": 0})),
        ("POST", &create, json!({"word": "x", "status": 2})),
        ("POST", &create, json!({"word": "x", "status": -1})),
        ("PUT", &update, json!({"word": "x", "status": 0})),
        ("PUT", &update, json!({"id": 1, "word": "", "status": 0})),
        ("DELETE", &delete, Value::Null),
        ("DELETE", &delete_list, Value::Null),
        ("DELETE", &no_list, Value::Null),
        ("DELETE", &bad_list, Value::Null),
        ("DELETE", &hundred_and_one, Value::Null),
    ];
    check_forms(&operator, &malformed, &malformed).await;
    let longest = "长".repeat(64);
    let body = json!({"word": longest, "status": 0});
    assert_eq!(code(&operator, "POST", &create, body).await, 0);
}
