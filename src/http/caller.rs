//! Who asks: the token, the tenant header, the address (`contract/01` sections 5 and 6.2).

use std::net::{IpAddr, Ipv4Addr};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::middleware::Next;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture, Ready, ready};

use super::AppState;
use crate::domain::ids::{LoginId, UserId};
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::service::tokens::{self, Identity};

/// The one tenant.
pub const TENANT: i64 = 1;

/// A signed-in user.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub user: UserId,
    pub login: LoginId,
}

/// Anybody, with a tenant header that names the one tenant: what open endpoints demand.
pub struct Visitor {
    pub address: IpAddr,
}

impl FromRequest for Caller {
    type Error = AppError;
    type Future = Either<Ready<Result<Self, AppError>>, LocalBoxFuture<'static, Result<Self, AppError>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        if let Some(caller) = known(request) {
            return Either::Left(ready(Ok(caller)));
        }
        let request = request.clone();
        Either::Right(async move { authenticate(&request).await }.boxed_local())
    }
}

/// Lets only those pass who are signed in, before anything else of their request is looked at.
pub async fn demand_login<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    match authenticate(request.request()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            Ok(next.call(request).await?.map_into_left_body())
        }
        Err(error) => Ok(request.error_response(error).map_into_right_body()),
    }
}

/// Who asks. The token is looked up once for each request.
pub async fn authenticate(request: &HttpRequest) -> Result<Caller, AppError> {
    if let Some(caller) = known(request) {
        return Ok(caller);
    }
    let state = state(request)?;
    let token = presented_token(request).ok_or(AppError::Unauthenticated)?;
    let identity = identify(state, &token).await?;
    if tenant(request).is_some_and(|tenant| tenant != TENANT) {
        return Err(AppError::Forbidden("no access to this tenant"));
    }
    tracing::Span::current().record("user.id", identity.user.0);
    Ok(Caller { user: identity.user, login: identity.login })
}

impl FromRequest for Visitor {
    type Error = AppError;
    type Future = LocalBoxFuture<'static, Result<Self, AppError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        async move {
            let state = state(&request)?;
            match tenant(&request) {
                Some(TENANT) => {}
                Some(_) => return Err(Refusal::TenantNotFound.into()),
                None => return Err(AppError::Malformed("tenant id not passed".into())),
            }
            Ok(Visitor { address: client_address(&request, &state.config.trusted_proxies) })
        }
        .boxed_local()
    }
}

/// Who was found to ask, earlier in this request.
fn known(request: &HttpRequest) -> Option<Caller> {
    request.extensions().get::<Caller>().copied()
}

fn state(request: &HttpRequest) -> Result<&web::Data<AppState>, AppError> {
    let state = request.app_data::<web::Data<AppState>>();
    state.ok_or_else(|| AppError::Internal("no application state".into()))
}

/// Whom a token speaks for, read from the database or known since a moment ago.
pub async fn identify(state: &AppState, token: &str) -> Result<Identity, AppError> {
    let hash = tokens::hash_presented(token)?;
    let now = state.clock.now();
    let read = state.readers.run(async move |db| tokens::authenticate(db, &hash, now).await);
    state.writer.tokens().get_or_read(&hash, now, read).await
}

/// Whom a token speaks for, as the database says now.
pub async fn identify_anew(state: &AppState, token: &str) -> Result<Identity, AppError> {
    let hash = tokens::hash_presented(token)?;
    let now = state.clock.now();
    state.readers.run(async move |db| tokens::authenticate(db, &hash, now).await).await
}

/// The token of a request: header `Authorization`, with or without `Bearer`, or else query parameter `token`.
pub fn presented_token(request: &HttpRequest) -> Option<String> {
    if let Some(value) = request.headers().get(AUTHORIZATION) {
        let text = value.to_str().ok()?.trim();
        let is_bearer = text.get(..7).is_some_and(|prefix| prefix.eq_ignore_ascii_case("bearer "));
        let token = if is_bearer { text.get(7..).unwrap_or_default() } else { text };
        return Some(token.trim().to_owned());
    }
    #[derive(serde::Deserialize)]
    struct Query {
        token: Option<String>,
    }
    web::Query::<Query>::from_query(request.query_string()).ok().and_then(|query| query.into_inner().token)
}

/// The tenant header; anything that is no number counts as absent.
fn tenant(request: &HttpRequest) -> Option<i64> {
    request.headers().get("tenant-id")?.to_str().ok()?.trim().parse().ok()
}

/// The address of the client: the peer, or, behind trusted proxies, the nearest one in `X-Forwarded-For` that is none.
pub fn client_address(request: &HttpRequest, trusted_proxies: &[IpAddr]) -> IpAddr {
    let peer = request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip());
    if !trusted_proxies.contains(&peer) {
        return peer;
    }
    let forwarded = request.headers().get_all("x-forwarded-for").filter_map(|value| value.to_str().ok());
    let mut hops: Vec<IpAddr> =
        forwarded.flat_map(|value| value.split(',')).filter_map(|hop| hop.trim().parse().ok()).collect();
    hops.reverse();
    hops.into_iter().find(|hop| !trusted_proxies.contains(hop)).unwrap_or(peer)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_forwarded_address_is_believed_only_from_a_trusted_proxy() {
        let request = || {
            TestRequest::default()
                .peer_addr("10.0.0.1:1".parse().unwrap())
                .insert_header(("x-forwarded-for", "6.6.6.6, 1.2.3.4, 10.0.0.2"))
        };
        let proxies: Vec<IpAddr> = vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        assert_eq!(client_address(&request().to_http_request(), &[]).to_string(), "10.0.0.1");
        assert_eq!(client_address(&request().to_http_request(), &proxies).to_string(), "1.2.3.4");
    }

    #[test]
    fn the_header_wins_over_the_query_and_bearer_is_optional() {
        let with = |header: &str| {
            let request = TestRequest::with_uri("/?token=query").insert_header(("authorization", header));
            presented_token(&request.to_http_request())
        };
        assert_eq!(with("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(with("abc").as_deref(), Some("abc"));
        assert_eq!(presented_token(&TestRequest::with_uri("/?token=q").to_http_request()).as_deref(), Some("q"));
        assert_eq!(presented_token(&TestRequest::with_uri("/").to_http_request()), None);
    }
}
