//! Statistics for operators (`contract/05` E8).

use actix_web::web;
use serde::Deserialize;

use crate::error::AppError;
use crate::http::AppState;
use crate::http::input::{Params, optional_integer};
use crate::http::response::{Answer, Reply};
use crate::protocol::manager_payload::{
    GroupSizeBody, MessageSeries, MessageTypeBody, OverviewBody, TopSenderBody, TrendBody, UserSeries,
};
use crate::service::manager::statistics::{self as service, Moment};

/// Days of a trend, where nothing else is asked for.
const DEFAULT_DAYS: i64 = 7;
/// Days of a trend at most.
const MAX_DAYS: i64 = 90;

#[derive(Deserialize)]
pub struct TrendParams {
    #[serde(default, deserialize_with = "optional_integer")]
    days: Option<i64>,
}

impl TrendParams {
    fn days(&self) -> Result<i64, AppError> {
        let days = self.days.unwrap_or(DEFAULT_DAYS);
        if (1..=MAX_DAYS).contains(&days) {
            return Ok(days);
        }
        Err(AppError::Malformed(format!("parameter incorrect: days must be 1 to {MAX_DAYS}")))
    }
}

fn moment(state: &AppState) -> Moment {
    Moment { now: state.clock.now(), offset_minutes: state.utc_offset() }
}

/// GET `/im/manager/statistics/overview`.
pub async fn overview(state: web::Data<AppState>) -> Answer<OverviewBody> {
    let moment = moment(&state);
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::overview(db, moment).await?)).await?))
}

/// GET `/im/manager/statistics/message-trend?days=`.
pub async fn message_trend(
    state: web::Data<AppState>,
    Params(params): Params<TrendParams>,
) -> Answer<TrendBody<MessageSeries>> {
    let (moment, days) = (moment(&state), params.days()?);
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::message_trend(db, moment, days).await?)).await?))
}

/// GET `/im/manager/statistics/user-trend?days=`.
pub async fn user_trend(
    state: web::Data<AppState>,
    Params(params): Params<TrendParams>,
) -> Answer<TrendBody<UserSeries>> {
    let (moment, days) = (moment(&state), params.days()?);
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::user_trend(db, moment, days).await?)).await?))
}

/// GET `/im/manager/statistics/message-type-distribution`.
pub async fn message_types(state: web::Data<AppState>) -> Answer<Vec<MessageTypeBody>> {
    let moment = moment(&state);
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::message_types(db, moment).await?)).await?))
}

/// GET `/im/manager/statistics/group-size-distribution`.
pub async fn group_sizes(state: web::Data<AppState>) -> Answer<Vec<GroupSizeBody>> {
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::group_sizes(db).await?)).await?))
}

/// GET `/im/manager/statistics/top-senders`.
pub async fn top_senders(state: web::Data<AppState>) -> Answer<Vec<TopSenderBody>> {
    let moment = moment(&state);
    Ok(Reply(state.manager_readers.run(async move |db| Ok(service::top_senders(db, moment).await?)).await?))
}
