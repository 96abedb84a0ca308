//! What is tried on an endpoint: its valid example with one thing changed.

use serde_json::{Map, Value, json};

use super::endpoints::{Door, Endpoint, Field, Kind, Place, World};
use super::values::{bad_values, harmless_values, odd_values};
use crate::support::app::API_KEY;

/// One request.
pub struct Case {
    pub what: String,
    pub method: &'static str,
    /// With the query string.
    pub path: String,
    pub headers: Vec<(&'static str, Vec<u8>)>,
    pub body: Option<Vec<u8>>,
    /// A success would be wrong. (Otherwise it must only change nothing.)
    pub must_fail: bool,
    /// The code that it must get, where there is only one.
    pub expected: Option<i64>,
}

impl Case {
    pub fn valid(endpoint: &Endpoint, world: &World) -> Case {
        let mut headers = vec![("tenant-id", b"1".to_vec())];
        match endpoint.door {
            Door::Open | Door::Free => {}
            Door::Login => headers.push(("authorization", format!("Bearer {}", world.alice.access_token).into_bytes())),
            Door::Permission => {
                headers.push(("authorization", format!("Bearer {}", world.operator.access_token).into_bytes()));
            }
            Door::Key => headers.push(("x-api-key", API_KEY.as_bytes().to_vec())),
        }
        let mut case = Case {
            what: "valid".into(),
            method: endpoint.method,
            path: endpoint.path.to_owned(),
            headers,
            body: None,
            must_fail: false,
            expected: None,
        };
        match endpoint.place {
            Place::Json => {
                let fields = endpoint.fields.iter().map(|field| (field.name.to_owned(), field.valid.clone()));
                case.headers.push(("content-type", b"application/json".to_vec()));
                case.body = Some(Value::from(Map::from_iter(fields)).to_string().into_bytes());
            }
            Place::Query => {
                let pairs = endpoint.fields.iter().map(|field| (field.name, as_text(&field.valid)));
                case.path = with_query(endpoint, pairs);
            }
        }
        case
    }

    fn without_header(mut self, name: &str) -> Case {
        self.headers.retain(|(header, _)| *header != name);
        self
    }

    fn with_header(self, name: &'static str, value: &[u8]) -> Case {
        let mut case = self.without_header(name);
        case.headers.push((name, value.to_vec()));
        case
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// The values are in the form of a URL already.
fn with_query<'a>(endpoint: &Endpoint, pairs: impl Iterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { endpoint.path.to_owned() } else { format!("{}?{}", endpoint.path, pairs.join("&")) }
}

pub fn cases(endpoint: &Endpoint, world: &World) -> Vec<Case> {
    let valid = || Case::valid(endpoint, world);
    let mut cases = door_cases(endpoint, world);
    for field in &endpoint.fields {
        match endpoint.place {
            Place::Query => cases.extend(query_cases(endpoint, field, valid)),
            Place::Json => cases.extend(field_cases(endpoint, field, valid)),
        }
        if let Some(foreign) = &field.foreign {
            cases.push(Case {
                what: format!("somebody else's {}", field.name),
                ..with_value(endpoint, field, foreign, valid())
            });
        }
    }
    if endpoint.place == Place::Json {
        cases.extend(body_cases(endpoint, valid));
    }
    cases
}

/// The example with one field's value replaced.
fn with_value(endpoint: &Endpoint, field: &Field, value: &Value, valid: Case) -> Case {
    let value_of = |other: &Field| if other.name == field.name { value.clone() } else { other.valid.clone() };
    match endpoint.place {
        Place::Query => {
            let pairs = endpoint.fields.iter().map(|other| (other.name, as_text(&value_of(other))));
            Case { path: with_query(endpoint, pairs), ..valid }
        }
        Place::Json => {
            let fields = endpoint.fields.iter().map(|other| (other.name.to_owned(), value_of(other)));
            Case { body: Some(Value::from(Map::from_iter(fields)).to_string().into_bytes()), ..valid }
        }
    }
}

fn door_cases(endpoint: &Endpoint, world: &World) -> Vec<Case> {
    let valid = || Case::valid(endpoint, world);
    let name = match endpoint.door {
        Door::Login | Door::Permission => "authorization",
        Door::Key => "x-api-key",
        Door::Open => {
            let no_tenant =
                Case { what: "no tenant".into(), expected: Some(400), ..valid().without_header("tenant-id") };
            let wrong = Case { what: "wrong tenant".into(), must_fail: true, ..valid().with_header("tenant-id", b"2") };
            return vec![no_tenant, wrong];
        }
        Door::Free => return Vec::new(),
    };
    let refused = |what: &str, case: Case| Case { what: what.into(), expected: Some(401), ..case };
    let mut cases = vec![refused("no token", valid().without_header(name))];
    let long = "x".repeat(50_000);
    for token in ["", "0123456789abcdef0123456789abcdef", &world.expired_token, &long, "' OR 1=1 --", "Bearer "] {
        cases.push(refused(&format!("token {token:.40}"), valid().with_header(name, token.as_bytes())));
    }
    cases.push(refused("token of bytes", valid().with_header(name, &[0xff, 0xfe, 0x80])));
    // Strangers learn nothing of what a request should be.
    let nothing_else = Case { path: endpoint.path.to_owned(), body: Some(b"{".to_vec()), ..valid() };
    cases.push(refused("no token and a broken request", nothing_else.without_header(name)));
    if matches!(endpoint.door, Door::Login | Door::Permission) {
        for token in ["", "%FF%FE", "x"] {
            let valid = valid().without_header(name);
            let separator = if valid.path.contains('?') { '&' } else { '?' };
            let path = format!("{}{separator}token={token}", valid.path);
            cases.push(refused(&format!("query token {token}"), Case { path, ..valid }));
        }
        let other = valid().with_header("tenant-id", b"2");
        cases.push(Case { what: "another tenant".into(), expected: Some(403), ..other });
    }
    if endpoint.door == Door::Permission {
        let user = format!("Bearer {}", world.alice.access_token);
        let user = valid().with_header("authorization", user.as_bytes());
        cases.push(Case { what: "no operator".into(), expected: Some(403), ..user });
    }
    cases
}

fn query_cases(endpoint: &Endpoint, field: &Field, valid: impl Fn() -> Case) -> Vec<Case> {
    let others: Vec<(&str, String)> = endpoint
        .fields
        .iter()
        .filter(|other| other.name != field.name)
        .map(|other| (other.name, as_text(&other.valid)))
        .collect();
    let name = field.name;
    // A URL has at most 64 KiB.
    let long = "x".repeat(60_000);
    // No number, in any reading.
    let words = [
        "null",
        "x",
        "1.5",
        "1e3",
        "true",
        "[]",
        "%5B%5D",
        "9223372036854775808",
        "-9223372036854775809",
        "0x1",
        "%00",
        "1%00",
        "%FF%FE",
        "%u0000",
        "%",
        "--1",
        "1,2",
        &long,
    ];
    // Numbers that are nobody's id, or no sensible limit.
    let numbers = ["0", "-1", "9007199254740992", "9223372036854775807", "-9223372036854775808"];
    let is_integer = matches!(field.kind, Kind::Integer | Kind::Ids);
    // Only of ids there may be several.
    let is_one = field.kind != Kind::Ids;
    let mut queries = vec![
        ("missing".to_owned(), vec![], field.required),
        ("twice".to_owned(), vec![(name.to_owned(), "1".to_owned()), (name.to_owned(), "2".to_owned())], is_one),
        ("as a list".to_owned(), vec![(format!("{name}[0]"), "1".to_owned())], field.required && is_one),
        ("empty".to_owned(), vec![(name.to_owned(), String::new())], field.required && is_integer),
    ];
    for word in words {
        // A text may be any of these; only what no text may hold must fail.
        let must_fail = match field.kind {
            Kind::Flag => word != "true",
            Kind::Times => true,
            Kind::Ids => word != "1,2",
            kind => kind == Kind::Integer || word.contains("%00"),
        };
        queries.push((format!("{word:.40}"), vec![(name.to_owned(), word.to_owned())], must_fail));
    }
    for number in numbers {
        queries.push((
            number.to_owned(),
            vec![(name.to_owned(), number.to_owned())],
            matches!(field.kind, Kind::Flag | Kind::Times),
        ));
    }
    let case = |(what, pairs, must_fail): (String, Vec<(String, String)>, bool)| {
        let all = others.iter().map(|(name, value)| (*name, value.clone()));
        let all = all.chain(pairs.iter().map(|(name, value)| (name.as_str(), value.clone())));
        Case { what: format!("{name} {what}"), path: with_query(endpoint, all), must_fail, ..valid() }
    };
    let mut cases: Vec<Case> = queries.into_iter().map(case).collect();
    if endpoint.method != "GET" && field.kind != Kind::Integer {
        // Any other value is as good as the valid one, and would change what that changes.
        cases.retain(|case| case.must_fail);
    }
    cases
}

fn field_cases(endpoint: &Endpoint, field: &Field, valid: impl Fn() -> Case) -> Vec<Case> {
    let body = |members: &str| {
        let others = endpoint.fields.iter().filter(|other| other.name != field.name);
        let mut all: Vec<String> = others.map(|other| format!("{}:{}", json!(other.name), other.valid)).collect();
        all.extend((!members.is_empty()).then(|| members.to_owned()));
        Some(format!("{{{}}}", all.join(",")).into_bytes())
    };
    let member = |value: &str| format!("{}:{value}", json!(field.name));
    let mut cases = Vec::new();
    for value in bad_values(field) {
        let what = format!("{} is {value:.40}", field.name);
        cases.push(Case { what, body: body(&member(&value)), must_fail: true, ..valid() });
    }
    for value in odd_values(field) {
        let what = format!("{} is {value}", field.name);
        cases.push(Case { what, body: body(&member(value)), must_fail: true, ..valid() });
    }
    for value in harmless_values(field) {
        let what = format!("{} is {value}", field.name);
        cases.push(Case { what, body: body(&member(value)), ..valid() });
    }
    let twice = format!("{},{}", member(&field.valid.to_string()), member(&field.valid.to_string()));
    cases.push(Case { what: format!("{} twice", field.name), body: body(&twice), must_fail: true, ..valid() });
    if field.required {
        cases.push(Case { what: format!("no {}", field.name), body: body(""), must_fail: true, ..valid() });
    }
    cases
}

fn body_cases(endpoint: &Endpoint, valid: impl Fn() -> Case) -> Vec<Case> {
    let example = valid().body.unwrap_or_default();
    // The example with one more member, which would be ignored if it were well-formed and small.
    let with_member = |member: &[u8]| {
        let inside = example.strip_suffix(b"}").unwrap_or(&example);
        let separator: &[u8] = if inside == b"{" { b"" } else { b"," };
        [inside, separator, b"\"more\":", member, b"}"].concat()
    };
    let deep = [b"[".repeat(60_000), b"]".repeat(60_000)].concat();
    let large = format!("\"{}\"", "x".repeat(257 << 10));
    let values: Vec<Value> = endpoint.fields.iter().map(|field| field.valid.clone()).collect();
    let list_of_fields = Value::from(values).to_string().into_bytes();
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("blank", b"  ".to_vec()),
        ("null", b"null".to_vec()),
        ("a list", b"[]".to_vec()),
        ("a list of it", [b"[".as_slice(), &example, b"]"].concat()),
        ("a list of its fields", list_of_fields),
        ("a number", b"5".to_vec()),
        ("a text", br#""x""#.to_vec()),
        ("plain words", b"hello".to_vec()),
        ("form fields", b"a=1&b=2".to_vec()),
        ("cut off", example[..example.len() - 1].to_vec()),
        ("followed by more", [&example, b"x".as_slice()].concat()),
        ("with a raw U+0000", with_member(b"\"\0\"")),
        ("with an escaped U+0000", with_member(br#""\u0000""#)),
        ("only bytes", vec![0xff; 100]),
        ("with bytes that are no UTF-8", with_member(b"\"\xff\xfe\"")),
        ("of deep lists", deep),
        ("too large", with_member(large.as_bytes())),
    ];
    let broken = bodies.into_iter();
    let mut cases: Vec<Case> = broken
        .map(|(what, body)| Case { what: format!("body {what}"), body: Some(body), must_fail: true, ..valid() })
        .collect();
    cases.push(Case { what: "no body".into(), body: None, must_fail: true, ..valid() });
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
        let case = valid().with_header("content-type", content_type.as_bytes());
        cases.push(Case { what: format!("content type {content_type}"), expected: Some(400), ..case });
    }
    cases.push(Case { what: "no content type".into(), expected: Some(400), ..valid().without_header("content-type") });
    if endpoint.fields.iter().any(|field| field.required) {
        cases.push(Case { what: "body {}".into(), body: Some(b"{}".to_vec()), must_fail: true, ..valid() });
    }
    cases
}
