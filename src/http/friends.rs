//! Friend requests: applying and agreeing (`contract/03` R1, R2).

use actix_web::web;
use serde::Deserialize;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params, check_length};
use super::response::{Answer, Reply};
use crate::domain::ids::{RequestId, UserId};
use crate::error::AppError;
use crate::service::Locks;
use crate::service::friends::{self as service, Application};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyRequest {
    to_user_id: UserId,
    apply_content: Option<String>,
    display_name: Option<String>,
    add_source: Option<i32>,
}

impl ApplyRequest {
    fn into_application(self, from: UserId) -> Result<Application, AppError> {
        check_length("applyContent", self.apply_content.as_deref().unwrap_or_default(), 255)?;
        check_length("displayName", self.display_name.as_deref().unwrap_or_default(), 16)?;
        if self.add_source.is_some_and(|source| !(1..=4).contains(&source)) {
            return Err(AppError::Malformed("parameter incorrect: addSource must be 1 to 4".into()));
        }
        Ok(Application {
            from,
            to: self.to_user_id,
            apply_content: self.apply_content,
            display_name: self.display_name,
            add_source: self.add_source,
        })
    }
}

/// POST `/im/friend-request/apply`. `data` is null when the friendship came back without a request.
pub async fn apply(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<ApplyRequest>,
) -> Answer<Option<RequestId>> {
    let application = body.into_application(caller.user)?;
    let target = application.to;
    let id = state
        .writer
        .run(Some(caller.user), "friend.apply", Locks::CLOCK, async move |tx| service::apply(tx, &application).await)
        .await?;
    if let (true, Some(id)) = (state.config.friend.auto_accept, id) {
        // A failure leaves a request that can be agreed to by hand.
        if let Err(error) = run_agree(&state, target, id).await {
            tracing::warn!(error = %error, "a friend request could not be accepted by itself");
        }
    }
    Ok(Reply(id))
}

#[derive(Deserialize)]
pub struct RequestParams {
    id: RequestId,
}

/// PUT `/im/friend-request/agree?id=`.
pub async fn agree(state: web::Data<AppState>, caller: Caller, Params(params): Params<RequestParams>) -> Answer<bool> {
    run_agree(&state, caller.user, params.id).await?;
    Ok(Reply(true))
}

async fn run_agree(state: &AppState, user: UserId, id: RequestId) -> Result<(), AppError> {
    let locks = Locks::CLOCK.and(Locks::PRIVATE);
    state.writer.run(Some(user), "friend.agree", locks, async move |tx| service::agree(tx, user, id).await).await
}
