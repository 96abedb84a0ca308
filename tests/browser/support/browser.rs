//! A browser with its windows, and what a person does with a page: click, type, look.

use std::rc::Rc;
use std::time::Duration;

use fantoccini::elements::{Element, ElementRef};
use fantoccini::wd::{WebDriverCompatibleCommand, WindowHandle};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use url::Url;

use super::PATIENCE;
use super::chromedriver::Chromedriver;

/// Without these Chromium does not start on a machine without a screen, a sandbox or a network.
const ARGUMENTS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    // Windows behind others must run like those in front.
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
];

/// How a browser looks.
#[derive(Clone, Copy)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    pub is_dark: bool,
    pub language: &'static str,
}

impl Look {
    pub const DESKTOP: Look = Look { width: 1360, height: 820, is_dark: false, language: "en" };
    pub const PHONE: Look = Look { width: 390, height: 780, is_dark: false, language: "en" };
}

/// A running Chromium with a profile of its own; it ends with this value.
pub struct Browser {
    client: Client,
    look: Look,
    _driver: Chromedriver,
    _profile: TempDir,
}

impl Browser {
    pub async fn start(look: Look) -> Rc<Browser> {
        let driver = Chromedriver::start();
        let profile = TempDir::new().unwrap();
        let own = [
            format!("--user-data-dir={}", profile.path().display()),
            format!("--window-size={},{}", look.width, look.height),
            format!("--lang={}", look.language),
        ];
        let arguments: Vec<&str> = ARGUMENTS.into_iter().chain(own.iter().map(String::as_str)).collect();
        let capabilities = json!({
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments, "prefs": {"intl.accept_languages": look.language}},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": 240_000, "pageLoad": 60_000},
        });
        let Value::Object(capabilities) = capabilities else { unreachable!() };
        let client = ClientBuilder::new(HttpConnector::new()).capabilities(capabilities).connect(&driver.url()).await;
        Rc::new(Browser { client: client.expect("Chromium does not start"), look, _driver: driver, _profile: profile })
    }

    /// A window that was not used yet.
    pub async fn window(self: &Rc<Browser>) -> Window {
        let handles = self.client.windows().await.unwrap();
        let is_fresh = handles.len() == 1 && self.client.current_url().await.unwrap().scheme() == "data";
        let handle = if is_fresh { handles[0].clone() } else { self.client.new_window(false).await.unwrap().handle };
        let window = Window { browser: self.clone(), handle };
        window.apply_look().await;
        window
    }

    /// What the pages wrote to the console as errors, since the last call.
    pub async fn console_errors(&self) -> Vec<String> {
        let entries = self.client.issue_cmd(Chromium("se/log", json!({"type": "browser"}))).await.unwrap();
        let entries = entries.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE");
        entries.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// Fails if a page complained. Of the network's own complaints only where it was not `broken` by the test.
    pub async fn assert_no_console_errors(&self, broken: bool) {
        let network = ["net::ERR_", "WebSocket connection to", "Failed to load resource"];
        let mut errors = self.console_errors().await;
        errors.retain(|error| !broken || !network.iter().any(|text| error.contains(text)));
        assert!(errors.is_empty(), "the console holds errors: {errors:#?}");
    }
}

/// One window of a browser. Calls of different windows of one browser must follow one another.
#[derive(Clone)]
pub struct Window {
    browser: Rc<Browser>,
    handle: WindowHandle,
}

impl Window {
    pub fn browser(&self) -> &Rc<Browser> {
        &self.browser
    }

    async fn client(&self) -> &Client {
        self.browser.client.switch_to_window(self.handle.clone()).await.unwrap();
        &self.browser.client
    }

    async fn apply_look(&self) {
        let look = self.browser.look;
        let size =
            json!({"width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.width < 500});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
        let scheme = if look.is_dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    pub async fn go(&self, url: &str) {
        self.client().await.goto(url).await.unwrap();
    }

    pub async fn reload(&self) {
        self.client().await.refresh().await.unwrap();
    }

    /// Runs the body of a function; `arguments` are its arguments.
    pub async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.client().await.execute(script, arguments).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Runs the body of an async function.
    pub async fn run_async(&self, script: &str, arguments: Vec<Value>) -> Value {
        let body = format!(
            "const done = arguments[arguments.length - 1];
             (async (...arguments) => {{ {script} }})(...arguments)
               .then((value) => done({{ value }}), (error) => done({{ error: String(error?.stack ?? error) }}))"
        );
        let result = self.client().await.execute_async(&body, arguments).await.unwrap();
        assert!(result["error"].is_null(), "{}", result["error"]);
        result["value"].clone()
    }

    /// Waits until an expression holds.
    pub async fn wait_until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        let deadline = Instant::now() + PATIENCE;
        while self.run(&script, vec![]).await != true {
            if Instant::now() > deadline {
                let text = self.run("return document.body.innerText", vec![]).await;
                panic!("not true in time: {expression}; the page shows:\n{}", text.as_str().unwrap_or_default());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until an element that one can see has such a text in it.
    pub async fn see(&self, css: &str, text: &str) {
        self.wait_until(&format!("{}.some((element) => element.innerText.includes({}))", visible(css), json!(text)))
            .await;
    }

    /// Waits until no element that one can see has such a text in it.
    pub async fn miss(&self, css: &str, text: &str) {
        let found = format!("{}.some((element) => element.innerText.includes({}))", visible(css), json!(text));
        self.wait_until(&format!("!{found}")).await;
    }

    /// Waits until exactly so many elements can be seen.
    pub async fn count(&self, css: &str, number: usize) {
        self.wait_until(&format!("{}.length === {number}", visible(css))).await;
    }

    /// Clicks the first element that one can see, once it is there.
    pub async fn click(&self, css: &str) {
        self.wait_until(&format!("{}.length", visible(css))).await;
        let script = format!("return {}[0]", visible(css));
        loop {
            let element = self.run(&script, vec![]).await;
            let element = element_of(&self.browser.client, &element);
            match element.click().await {
                // A list that is drawn anew in this moment; the next look finds the new element.
                Err(error) if error.is_stale_element_reference() => {}
                result => return result.unwrap_or_else(|error| panic!("cannot click {css}: {error}")),
            }
        }
    }

    /// Types into an element; `\n` is the Enter key.
    pub async fn type_into(&self, css: &str, text: &str) {
        self.wait_until(&format!("{}.length", visible(css))).await;
        let element = self.client().await.find(Locator::Css(css)).await.unwrap();
        element.send_keys(text).await.unwrap_or_else(|error| panic!("cannot type into {css}: {error}"));
    }

    /// Presses keys where the focus is.
    pub async fn press(&self, keys: &str) {
        self.client().await.active_element().await.unwrap().send_keys(keys).await.unwrap();
    }

    pub async fn screenshot(&self) -> Vec<u8> {
        self.client().await.screenshot().await.unwrap()
    }

    /// A command of the DevTools protocol.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.client().await.issue_cmd(Chromium("goog/cdp/execute", body)).await.unwrap()
    }

    /// Takes the network away from this window, or gives it back.
    pub async fn set_offline(&self, is_offline: bool) {
        self.devtools("Network.enable", json!({})).await;
        let conditions = json!({"offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        self.devtools("Network.emulateNetworkConditions", conditions).await;
    }
}

/// An expression for the list of elements that are there to be seen.
fn visible(css: &str) -> String {
    format!("[...document.querySelectorAll({})].filter((element) => element.checkVisibility())", json!(css))
}

/// The element that a script returned.
fn element_of(client: &Client, value: &Value) -> Element {
    let id = value.as_object().and_then(|object| object.values().next()).and_then(Value::as_str).expect("an element");
    Element::from_element_id(client.clone(), ElementRef::from(id.to_owned()))
}

/// A POST of chromedriver's own, below the session.
#[derive(Debug)]
struct Chromium(&'static str, Value);

impl WebDriverCompatibleCommand for Chromium {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, url::ParseError> {
        base_url.join(&format!("session/{}/{}", session_id.unwrap_or_default(), self.0))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.1.to_string()))
    }
}
