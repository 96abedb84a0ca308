//! Requests by hand, where the headers, the body or the whole answer matter, and answers made comparable.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::app::{Person, TestApp};

/// The whole answer, which is the wrapper with HTTP status 200 whatever it says.
pub async fn answer(request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let answer: Value = response.json().await.unwrap();
    let keys: Vec<_> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["code", "data", "msg"]);
    assert!(answer["code"] == 0 || answer["data"].is_null(), "an error with data: {answer}");
    answer
}

/// The code of an answer.
pub fn code(answer: &Value) -> i64 {
    answer["code"].as_i64().unwrap_or_else(|| panic!("no code in {answer}"))
}

/// A request to a path under `/admin-api`, with the tenant header and nothing else.
pub fn visit(app: &TestApp, method: &str, path: &str) -> RequestBuilder {
    app.http.request(method.parse().unwrap(), format!("{}/admin-api{path}", app.base)).header("tenant-id", "1")
}

/// The code that a person gets for a request without a body.
pub async fn code_of(person: &Person, method: &str, path: &str) -> i64 {
    code(&person.call(method, path, None).await)
}

/// The code of a token on a path that needs a login.
pub async fn code_of_token(app: &TestApp, token: &str) -> i64 {
    code(&answer(visit(app, "GET", "/system/auth/get-permission-info").bearer_auth(token)).await)
}

/// JSON text with the values of some keys, however deep, replaced by the key's name: what differs from run to run.
pub fn redacted(value: &Value, keys: &[&str]) -> String {
    let mut value = value.clone();
    redact(&mut value, keys);
    serde_json::to_string_pretty(&value).unwrap()
}

fn redact(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, keys)),
        Value::Object(fields) => {
            for (key, field) in fields {
                match keys.contains(&key.as_str()) && !field.is_null() {
                    true => *field = json!(format!("[{key}]")),
                    false => redact(field, keys),
                }
            }
        }
        _ => {}
    }
}
