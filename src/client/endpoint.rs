//! One server and the HTTP connections to it: the result wrapper, and the calls that need no signed-in user.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::Semaphore;
use url::Url;

use super::error::ClientError;
use super::socket::SocketAddress;
use super::types::{ImportedTokens, ImportedUser, NewUser, Tokens};

/// Longest wait for an HTTP answer, the same as in the web client.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Below the 5 s after which the server closes an idle connection: using one in that moment is an error.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// A server's address with a pool of HTTP connections. Clones share the pool; thousands of devices can share one.
#[derive(Clone, Debug)]
pub struct Endpoint {
    http: reqwest::Client,
    base: Arc<str>,
    /// Local address of everything that goes to the server; `None` leaves it to the system.
    source: Option<IpAddr>,
    /// Requests at one time, so connections of the pool.
    permits: Option<Arc<Semaphore>>,
}

impl Endpoint {
    /// The server at `base`, for example `http://127.0.0.1:48080`. Proxies of the environment are not used.
    ///
    /// # Errors
    /// [`ClientError::Address`] for other than a plain `http://` origin (this client has no TLS).
    pub fn new(base: &str) -> Result<Endpoint, ClientError> {
        Endpoint::with_http(base, client().build()?)
    }

    /// As [`Endpoint::new`]; sockets and requests come from the local address `source` (one address has some 28,000
    /// ports). `permits` bounds the requests at one time, of all endpoints that share it; others wait. A request that
    /// is not answered within `request_timeout` fails.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn from_source(
        base: &str,
        source: Option<IpAddr>,
        permits: Arc<Semaphore>,
        request_timeout: Duration,
    ) -> Result<Endpoint, ClientError> {
        let http = client().local_address(source).timeout(request_timeout).build()?;
        let endpoint = Endpoint::with_http(base, http)?;
        Ok(Endpoint { source, permits: Some(permits), ..endpoint })
    }

    /// As [`Endpoint::new`], over a given HTTP client.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn with_http(base: &str, http: reqwest::Client) -> Result<Endpoint, ClientError> {
        let url = Url::parse(base).map_err(|_| ClientError::Address)?;
        let is_origin = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if url.scheme() != "http" || !is_origin {
            return Err(ClientError::Address);
        }
        Ok(Endpoint { http, base: base.trim_end_matches('/').into(), source: None, permits: None })
    }

    /// The socket's address.
    pub(super) fn socket_address(&self, refresh_token: &str, device: &str) -> Result<SocketAddress, ClientError> {
        let base = self.base.replacen("http", "ws", 1);
        let query = [("token", refresh_token), ("device", device), ("resume", "0")];
        let url = Url::parse_with_params(&format!("{base}/infra/ws"), query).map_err(|_| ClientError::Address)?;
        Ok(SocketAddress { url, source: self.source })
    }

    /// A request to this server, with the header that every call carries.
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).header("tenant-id", "1")
    }

    /// Sends a request and takes the result out of its wrapper.
    pub(super) async fn execute<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let _permit = match &self.permits {
            Some(permits) => permits.acquire().await.ok(),
            None => None,
        };
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        parse_answer(status, &answer.bytes().await?)
    }

    /// A page that is no call of the API, such as `/metrics`.
    ///
    /// # Errors
    /// [`ClientError::Status`], or no answer.
    pub async fn get_text(&self, path: &str) -> Result<String, ClientError> {
        let answer = self.request(Method::GET, path).send().await?;
        let status = answer.status();
        if status.is_success() { Ok(answer.text().await?) } else { Err(ClientError::Status(status.as_u16())) }
    }

    /// Creates an account and signs in. Needs a server that allows registration.
    ///
    /// # Errors
    /// The server's refusals (1002003000: name taken), or no answer.
    pub async fn register(&self, username: &str, nickname: &str, password: &str) -> Result<Tokens, ClientError> {
        let body = json!({ "username": username, "nickname": nickname, "password": password });
        self.execute(self.request(Method::POST, "/admin-api/system/auth/register").json(&body)).await
    }

    /// Signs in.
    ///
    /// # Errors
    /// The server's refusals (1002000000: wrong name or password), or no answer.
    pub async fn login(&self, username: &str, password: &str) -> Result<Tokens, ClientError> {
        let body = json!({ "username": username, "password": password });
        self.execute(self.request(Method::POST, "/admin-api/system/auth/login").json(&body)).await
    }

    /// A new access token for the sign-in of this refresh token; the old access token ends.
    ///
    /// # Errors
    /// [`ClientError::SignedOut`] when that sign-in has ended; other refusals, or no answer.
    pub async fn refresh(&self, refresh_token: &str) -> Result<Tokens, ClientError> {
        let request = self.request(Method::POST, "/admin-api/system/auth/refresh-token");
        match self.execute(request.query(&[("refreshToken", refresh_token)])).await {
            Err(ClientError::Refused { code: 400 | 401, .. }) => Err(ClientError::SignedOut),
            other => other,
        }
    }

    /// Server API: creates or updates users of the calling system; the answer is in the order of `users`.
    ///
    /// # Errors
    /// Refusals (a wrong key), or no answer.
    pub async fn import_users(&self, api_key: &str, users: &[NewUser]) -> Result<Vec<ImportedUser>, ClientError> {
        let request = self.request(Method::POST, "/api/v1/users").header("x-api-key", api_key);
        self.execute(request.json(&json!({ "users": users }))).await
    }

    /// Server API: signs in imported users; each call makes new sign-ins.
    ///
    /// # Errors
    /// Refusals (a wrong key, an unknown user), or no answer.
    pub async fn import_tokens(
        &self,
        api_key: &str,
        external_ids: &[&str],
    ) -> Result<Vec<ImportedTokens>, ClientError> {
        let request = self.request(Method::POST, "/api/v1/tokens").header("x-api-key", api_key);
        self.execute(request.json(&json!({ "externalIds": external_ids }))).await
    }
}

/// How requests are made, whatever they ask. Proxies of the environment are not used.
fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .no_proxy()
        .timeout(REQUEST_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
}

/// Takes the result out of the wrapper `{code, msg, data}`; 0, 200 and no code at all are success, as in the web client.
fn parse_answer<T: DeserializeOwned>(status: u16, body: &[u8]) -> Result<T, ClientError> {
    #[derive(Deserialize)]
    struct Outcome {
        #[serde(default)]
        code: i64,
        #[serde(default)]
        msg: Option<String>,
    }
    /// Read apart from the code: the data of a refusal need not have the form of a result.
    #[derive(Deserialize)]
    struct Data<T> {
        data: T,
    }

    let is_good_status = (200..300).contains(&status);
    let outcome: Outcome = match serde_json::from_slice(body) {
        Ok(outcome) => outcome,
        Err(_) if !is_good_status => return Err(ClientError::Status(status)),
        Err(error) => return Err(ClientError::Unexpected(error.to_string())),
    };
    if !matches!(outcome.code, 0 | 200) {
        return Err(ClientError::Refused { code: outcome.code, message: outcome.msg.unwrap_or_default() });
    }
    if !is_good_status {
        return Err(ClientError::Status(status));
    }
    serde_json::from_slice::<Data<T>>(body)
        .map(|answer| answer.data)
        .map_err(|error| ClientError::Unexpected(error.to_string()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::zero(r#"{"code":0,"msg":"","data":7}"#)]
    #[case::two_hundred(r#"{"code":200,"data":7}"#)]
    #[case::missing(r#"{"data":7}"#)]
    fn success(#[case] body: &str) {
        assert_eq!(parse_answer::<i64>(200, body.as_bytes()).unwrap(), 7);
    }

    #[test]
    fn null_is_a_result_where_it_may_be() {
        assert_eq!(parse_answer::<Option<i64>>(200, br#"{"code":0,"data":null}"#).unwrap(), None);
        assert!(matches!(parse_answer::<i64>(200, br#"{"code":0,"data":null}"#), Err(ClientError::Unexpected(_))));
    }

    #[rstest]
    #[case::no(200, r#"{"code":1040600001,"msg":"not friends","data":null}"#, Some(1_040_600_001), false)]
    #[case::busy(200, r#"{"code":429,"msg":null}"#, Some(429), true)]
    #[case::refused_by_status(503, r#"{"code":503,"msg":"stopping"}"#, Some(503), true)]
    #[case::proxy(502, "<html>", None, true)]
    #[case::not_read_in_time(408, "", None, true)]
    #[case::not_found(404, "", None, false)]
    #[case::not_json(200, "hello", None, false)]
    fn failure(#[case] status: u16, #[case] body: &str, #[case] code: Option<i64>, #[case] temporary: bool) {
        let error = parse_answer::<bool>(status, body.as_bytes()).unwrap_err();
        assert_eq!((error.code(), error.is_temporary()), (code, temporary));
    }

    #[test]
    fn the_socket_is_on_the_same_host() {
        let endpoint = Endpoint::new("http://127.0.0.1:1/").unwrap();
        let address = endpoint.socket_address("t", "a b&c").unwrap();
        assert_eq!(address.url.as_str(), "ws://127.0.0.1:1/infra/ws?token=t&device=a+b%26c&resume=0");
    }

    #[rstest]
    #[case("https://x.example")]
    #[case("http://x.example/path")]
    #[case("x.example")]
    fn other_addresses_are_refused(#[case] base: &str) {
        assert!(matches!(Endpoint::new(base), Err(ClientError::Address)));
    }
}
