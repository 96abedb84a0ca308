//! Statistics (`contract/05` E8). A message counts when users send its type and nobody has recalled it; days are those
//! of the operators' zone.

use std::collections::HashMap;

use diesel::QueryResult;

use super::Accounts;
use crate::db::Db;
use crate::db::statistics::{self as table, Messages, Window};
use crate::domain::calendar::{DAY_MS, date_text};
use crate::domain::ids::UserId;
use crate::protocol::manager_payload::{
    GroupSizeBody, MessageSeries, MessageTypeBody, OverviewBody, TopSenderBody, TrendBody, UserSeries,
};
use crate::service::pull_window::PullWindow;

/// Days of the monthly numbers, this one included.
const MONTH: i64 = 30;
/// Days of the weekly number.
const WEEK: i64 = 7;
/// Entries of the list of senders.
const TOP: i64 = 10;
/// Sizes of groups: the label that the web client shows, and the lowest size that belongs there.
const SIZES: [(&str, i64); 4] = [("1-9 人", 0), ("10-49 人", 10), ("50-199 人", 50), ("200+ 人", 200)];

/// A moment, and the zone in which its day is meant.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub now: i64,
    /// Minutes east of UTC.
    pub offset_minutes: i64,
}

impl Moment {
    fn offset_ms(self) -> i64 {
        self.offset_minutes * 60_000
    }

    /// When the day began that lies `ago` days before this one.
    fn day(self, ago: i64) -> i64 {
        self.now - (self.now + self.offset_ms()).rem_euclid(DAY_MS) - ago * DAY_MS
    }

    /// The beginnings of so many days, this one last.
    fn days(self, count: i64) -> Vec<i64> {
        (0..count).rev().map(|ago| self.day(ago)).collect()
    }

    fn dates(self, days: &[i64]) -> Vec<String> {
        days.iter().map(|day| date_text(day + self.offset_ms())).collect()
    }

    /// Both message tables from the beginning of a day on, to the end of today.
    async fn windows(self, db: &mut Db, ago: i64) -> QueryResult<[Window; 2]> {
        let (from, to) = (self.day(ago), self.day(-1));
        let private = PullWindow::private().last_id_until(db, from - 1).await?.0;
        let group = PullWindow::group().last_id_until(db, from - 1).await?.0;
        Ok([
            Window { messages: Messages::Private, floor: private, from, to },
            Window { messages: Messages::Group, floor: group, from, to },
        ])
    }
}

pub async fn overview(db: &mut Db, moment: Moment) -> QueryResult<OverviewBody> {
    let (today, tomorrow) = (moment.day(0), moment.day(-1));
    let mut active = [0; 3];
    for (active, days) in active.iter_mut().zip([1, WEEK, MONTH]) {
        let [private, group] = moment.windows(db, days - 1).await?;
        *active = table::count_senders(db, [&private, &group]).await?;
    }
    let [daily, weekly, monthly] = active;
    let [private_today, group_today] = moment.windows(db, 0).await?;
    let [private, group] = moment.windows(db, 1).await?;
    let [private_yesterday, group_yesterday] = [Window { to: today, ..private }, Window { to: today, ..group }];
    let new_users = table::count_users_by_day(db, today, tomorrow, moment.offset_ms()).await?;
    Ok(OverviewBody {
        total_user: table::count_users(db).await?,
        new_user_today: new_users.iter().map(|(_, count)| count).sum(),
        total_group: table::count_groups(db).await?,
        new_group_today: table::count_new_groups(db, today, tomorrow).await?,
        active_user_daily: daily,
        active_user_weekly: weekly,
        active_user_monthly: monthly,
        private_message_today: table::count_messages(db, &private_today).await?,
        group_message_today: table::count_messages(db, &group_today).await?,
        private_message_yesterday: table::count_messages(db, &private_yesterday).await?,
        group_message_yesterday: table::count_messages(db, &group_yesterday).await?,
    })
}

/// A number for each day, 0 where there is none.
fn fill(days: &[i64], counted: Vec<(i64, i64)>) -> Vec<i64> {
    let counted: HashMap<i64, i64> = counted.into_iter().collect();
    days.iter().map(|day| counted.get(day).copied().unwrap_or(0)).collect()
}

/// Messages of the last `count` days.
pub async fn message_trend(db: &mut Db, moment: Moment, count: i64) -> QueryResult<TrendBody<MessageSeries>> {
    let days = moment.days(count);
    let [private, group] = moment.windows(db, count - 1).await?;
    let private = fill(&days, table::count_messages_by_day(db, &private, moment.offset_ms()).await?);
    let group = fill(&days, table::count_messages_by_day(db, &group, moment.offset_ms()).await?);
    Ok(TrendBody { dates: moment.dates(&days), series: MessageSeries { private, group } })
}

/// New and active users of the last `count` days.
pub async fn user_trend(db: &mut Db, moment: Moment, count: i64) -> QueryResult<TrendBody<UserSeries>> {
    let days = moment.days(count);
    let [private, group] = moment.windows(db, count - 1).await?;
    let new = table::count_users_by_day(db, private.from, private.to, moment.offset_ms()).await?;
    let active = table::count_senders_by_day(db, [&private, &group], moment.offset_ms()).await?;
    let series = UserSeries { register: fill(&days, new), active: fill(&days, active) };
    Ok(TrendBody { dates: moment.dates(&days), series })
}

/// Messages of the last 30 days by type.
pub async fn message_types(db: &mut Db, moment: Moment) -> QueryResult<Vec<MessageTypeBody>> {
    let [private, group] = moment.windows(db, MONTH - 1).await?;
    let counted = table::count_messages_by_type(db, [&private, &group]).await?;
    Ok(counted.into_iter().map(|(r#type, value)| MessageTypeBody { r#type, value }).collect())
}

/// Groups by the number of their members, all four sizes.
pub async fn group_sizes(db: &mut Db) -> QueryResult<Vec<GroupSizeBody>> {
    let mut sizes = SIZES.map(|(range, _)| GroupSizeBody { range, count: 0 });
    for (size, count) in table::count_groups_by_size(db).await? {
        let place = SIZES.iter().rposition(|(_, lowest)| size >= *lowest);
        if let Some(bucket) = place.and_then(|place| sizes.get_mut(place)) {
            bucket.count += count;
        }
    }
    Ok(sizes.into())
}

/// Who sent most in the last 30 days, the first first.
pub async fn top_senders(db: &mut Db, moment: Moment) -> QueryResult<Vec<TopSenderBody>> {
    let [private, group] = moment.windows(db, MONTH - 1).await?;
    let senders = table::list_top_senders(db, [&private, &group], TOP).await?;
    let accounts = Accounts::load(db, senders.iter().map(|(sender, _)| UserId(*sender))).await?;
    let show = |(sender, message_count): (i64, i64)| {
        let user_id = UserId(sender);
        TopSenderBody { user_id, nickname: accounts.nickname(user_id), message_count }
    };
    Ok(senders.into_iter().map(show).collect())
}
