//! Who may use the endpoints of operators: whoever holds the permission that the endpoint names (`contract/05` part E).

use actix_web::HttpMessage;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web;

use super::AppState;
use super::caller::Caller;
use crate::error::AppError;
use crate::service::permissions;

/// Lets only those pass who hold the permission, before anything else of their request is looked at. What they hold is
/// read from the database each time.
pub async fn demand_permission<B: MessageBody + 'static>(
    key: &'static str,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    match check(key, &request).await {
        Ok(()) => Ok(next.call(request).await?.map_into_left_body()),
        Err(error) => Ok(request.error_response(error).map_into_right_body()),
    }
}

async fn check(key: &'static str, request: &ServiceRequest) -> Result<(), AppError> {
    let caller = request.extensions().get::<Caller>().copied().ok_or(AppError::Unauthenticated)?;
    let state = request.app_data::<web::Data<AppState>>().cloned();
    let state = state.ok_or_else(|| AppError::Internal("no application state".into()))?;
    let held = state.readers.run(async move |db| Ok(permissions::of_user(db, caller.user).await?)).await?;
    if held.holds(key) { Ok(()) } else { Err(AppError::Forbidden("no permission")) }
}
