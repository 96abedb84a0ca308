//! Calls of the server API whose whole answer matters.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::app::{API_KEY, TestApp, data};
use super::raw::answer;

/// A request to a path under `/api/v1` with a key.
pub fn request(app: &TestApp, key: &str, method: &str, path: &str, body: &Value) -> RequestBuilder {
    let url = format!("{}/api/v1{path}", app.base);
    app.http.request(method.parse().unwrap(), url).header("x-api-key", key).json(body)
}

/// The whole answer to a request with the right key.
pub async fn call(app: &TestApp, method: &str, path: &str, body: &Value) -> Value {
    answer(request(app, API_KEY, method, path, body)).await
}

/// Enables or disables an account.
pub async fn set_enabled(app: &TestApp, external_id: &str, enabled: bool) {
    let body = json!({"externalId": external_id, "enabled": enabled});
    assert_eq!(data(call(app, "PUT", "/users/status", &body).await), true);
}
