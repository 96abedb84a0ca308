//! A server, and people on it whose accounts and friendships are made over HTTP, so that a test begins where it matters.

use std::rc::Rc;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::browser::{Browser, Look, Window};
use super::process::ServerProcess;

pub const PASSWORD: &str = "secret-1";

/// A server with an empty SQLite database.
pub struct Site {
    pub server: ServerProcess,
    http: reqwest::Client,
    _data: TempDir,
}

/// The user name of the person of that nickname.
pub fn username(name: &str) -> String {
    format!("{}01", name.to_lowercase())
}

/// Somebody with an account and a login.
#[derive(Clone)]
pub struct Person {
    pub id: i64,
    pub login: Value,
    base: String,
    http: reqwest::Client,
}

impl Site {
    pub async fn start() -> Site {
        let data = TempDir::new().unwrap();
        let environment = [("RUST_LOG", "warn"), ("NUDGE_WORKERS", "1"), ("NUDGE_WEBSOCKET__SHUTDOWN_WINDOW_MS", "10")];
        let server = ServerProcess::start(data.path(), &environment).await.unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Site { server, http, _data: data }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// A person whose user name is [`username`].
    pub async fn person(&self, name: &str) -> Person {
        let mut person = Person { id: 0, login: Value::Null, base: self.url(), http: self.http.clone() };
        let account = json!({"username": username(name), "nickname": name, "password": PASSWORD});
        person.login = person.call(Method::POST, "/system/auth/register", account).await;
        person.id = person.login["userId"].as_i64().unwrap();
        person
    }

    /// Two friends.
    pub async fn friends(&self, a: &str, b: &str) -> (Person, Person) {
        let (a, b) = (self.person(a).await, self.person(b).await);
        a.befriend(&b).await;
        (a, b)
    }
}

impl Person {
    /// The `data` of the answer to a call, which must succeed.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let mut request = self.http.request(method, format!("{}/admin-api{path}", self.base)).header("tenant-id", "1");
        if let Some(token) = self.login["accessToken"].as_str() {
            request = request.bearer_auth(token);
        }
        if !body.is_null() {
            request = request.json(&body);
        }
        let mut response = request.try_clone().unwrap().send().await.unwrap();
        // The server did not come to read the request in time, and has not run it.
        while response.status() == StatusCode::REQUEST_TIMEOUT {
            response = request.try_clone().unwrap().send().await.unwrap();
        }
        let mut answer: Value = response.json().await.unwrap();
        assert_eq!(answer["code"], 0, "{path}: {}", answer["msg"]);
        answer["data"].take()
    }

    pub async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, Value::Null).await
    }

    pub async fn put(&self, path: &str) -> Value {
        self.call(Method::PUT, path, Value::Null).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.call(Method::POST, path, body).await
    }

    pub async fn befriend(&self, other: &Person) {
        let request = self.post("/im/friend-request/apply", json!({"toUserId": other.id})).await;
        other.put(&format!("/im/friend-request/agree?id={request}")).await;
    }

    /// Sends a text as another client would.
    pub async fn say(&self, receiver: &Person, text: &str) -> Value {
        let content = json!({"content": text}).to_string();
        self.send(receiver, 101, &content).await
    }

    /// Sends a message of any type.
    pub async fn send(&self, receiver: &Person, message_type: i32, content: &str) -> Value {
        let client_id: u128 = rand::random();
        let body = json!({"clientMessageId": format!("{client_id:032x}"), "receiverId": receiver.id, "type": message_type,
                          "content": content});
        self.post("/im/message/private/send", body).await
    }

    /// Makes a group of these people and me.
    pub async fn group(&self, name: &str, members: &[&Person]) -> i64 {
        let ids: Vec<i64> = members.iter().map(|member| member.id).collect();
        let group = self.post("/im/group/create", json!({"name": name, "memberUserIds": ids})).await;
        group["id"].as_i64().unwrap()
    }

    /// A new browser with one window in which this person is signed in and connected.
    pub async fn opens(&self, look: Look) -> Window {
        self.opens_in(&Browser::start(look).await).await
    }

    /// A further window, which is a device of its own.
    pub async fn opens_in(&self, browser: &Rc<Browser>) -> Window {
        let window = browser.window().await;
        window.go(&format!("{}/assets/icon.svg", self.base)).await;
        let store = "localStorage.setItem(`nudge.login.${arguments[0].userId}`, JSON.stringify(arguments[0]));
                     localStorage.setItem('nudge.user', arguments[0].userId)";
        window.run(store, vec![self.login.clone()]).await;
        window.go(&format!("{}/", self.base)).await;
        window.connected().await;
        window
    }
}

/// What people do in the chat.
impl Window {
    /// Waits for an open socket and the end of the pull that follows it.
    pub async fn connected(&self) {
        self.wait_until("document.querySelector('#panel')?.dataset.pulled === 'true'").await;
        self.wait_until("document.querySelector('.banner')?.hidden").await;
    }

    pub async fn open_chat(&self, key: &str) {
        self.click(&format!(".list [data-key='{key}'] button")).await;
        self.see("#composer", "").await;
    }

    pub async fn open_chat_with(&self, person: &Person) {
        self.open_chat(&format!("p{}", person.id)).await;
    }

    pub async fn write(&self, text: &str) {
        self.type_into("#composer", &format!("{text}\n")).await;
    }

    /// Texts of the messages that are shown, in their order.
    pub async fn messages(&self) -> Vec<String> {
        let script = "return [...document.querySelectorAll('.message .text')].map((element) => element.textContent)";
        serde_json::from_value(self.run(script, vec![]).await).unwrap()
    }
}
