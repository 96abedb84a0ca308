//! `im_device_position`: how far each device of a login has confirmed what was pushed to it. Rows end with their login.
//! They carry no stamp, since no client pulls them, and a lost or old value only means that more is replayed.

use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::schema::im_device_position::{self, table};
use super::schema::system_oauth2_refresh_token as refresh;
use super::{Columns, Db, RunQueryDsl, on_backend};
use crate::domain::device_position::DevicePosition;
use crate::domain::ids::{LoginId, MessageId, UserId};

/// A stored position.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = im_device_position)]
pub struct DevicePositionRow {
    pub id: i64,
    pub token_id: LoginId,
    pub device: String,
    private_id: MessageId,
    group_id: MessageId,
    channel_id: MessageId,
}

impl DevicePositionRow {
    pub fn position(&self) -> DevicePosition {
        DevicePosition { private: self.private_id, group: self.group_id, channel: self.channel_id }
    }
}

/// A device that is seen for the first time, and where it starts.
#[derive(Clone, Debug)]
pub struct NewDevice {
    pub login: LoginId,
    /// The client's name for it, at most 64 characters; may be empty.
    pub device: String,
    pub position: DevicePosition,
}

#[derive(Clone, Insertable)]
#[diesel(table_name = im_device_position, treat_none_as_default_value = false)]
struct NewRow {
    token_id: LoginId,
    device: String,
    private_id: MessageId,
    group_id: MessageId,
    channel_id: MessageId,
}

pub async fn get(db: &mut Db, login: LoginId, device: &str) -> QueryResult<Option<DevicePositionRow>> {
    table
        .filter(im_device_position::token_id.eq(login))
        .filter(im_device_position::device.eq(device))
        .select(DevicePositionRow::columns())
        .first(db)
        .await
        .optional()
}

/// Adds devices and skips those that are known; the number of new ones.
pub async fn insert_all_if_new(db: &mut Db, devices: &[NewDevice]) -> QueryResult<usize> {
    let rows: Vec<NewRow> = devices
        .iter()
        .map(|new| NewRow {
            token_id: new.login,
            device: new.device.clone(),
            private_id: new.position.private,
            group_id: new.position.group,
            channel_id: new.position.channel,
        })
        .collect();
    if rows.is_empty() { Ok(0) } else { super::insert_new_rows!(db, table, &rows) }
}

/// Devices of these names of these logins (any combination of them).
pub async fn list_named(
    db: &mut Db,
    logins: Vec<LoginId>,
    devices: Vec<String>,
) -> QueryResult<Vec<DevicePositionRow>> {
    if logins.is_empty() {
        return Ok(Vec::new());
    }
    table
        .filter(im_device_position::token_id.eq_any(logins))
        .filter(im_device_position::device.eq_any(devices))
        .select(DevicePositionRow::columns())
        .load(db)
        .await
}

/// Sets positions by row id with one statement; rows that have gone meanwhile are left out.
pub async fn update_all(db: &mut Db, positions: &[(i64, DevicePosition)]) -> QueryResult<()> {
    if positions.is_empty() {
        return Ok(());
    }
    let mut rows = positions.to_vec();
    rows.sort_unstable_by_key(|(id, _)| *id);
    let cases = |value: fn(&DevicePosition) -> MessageId| -> String {
        rows.iter().map(|(id, position)| format!(" WHEN {id} THEN {}", value(position))).collect()
    };
    let ids: Vec<String> = rows.iter().map(|(id, _)| id.to_string()).collect();
    let sql = format!(
        "UPDATE im_device_position SET private_id = CASE id{} ELSE private_id END, \
         group_id = CASE id{} ELSE group_id END, channel_id = CASE id{} ELSE channel_id END WHERE id IN ({})",
        cases(|position| position.private),
        cases(|position| position.group),
        cases(|position| position.channel),
        ids.join(",")
    );
    db.run_text(&sql).await
}

#[derive(QueryableByName)]
struct LoginRow {
    #[diesel(sql_type = BigInt)]
    token_id: LoginId,
}

/// Those of the logins that have more than `limit` devices.
pub async fn list_crowded(db: &mut Db, logins: &[LoginId], limit: i64) -> QueryResult<Vec<LoginId>> {
    if logins.is_empty() {
        return Ok(Vec::new());
    }
    let logins: Vec<String> = logins.iter().map(LoginId::to_string).collect();
    let query = diesel::sql_query(format!(
        "SELECT token_id FROM im_device_position WHERE token_id IN ({}) GROUP BY token_id HAVING COUNT(*) > {limit}",
        logins.join(",")
    ));
    db.before_statement().await;
    let rows: Vec<LoginRow> = on_backend!(db, conn => diesel_async::RunQueryDsl::load(query, conn).await)?;
    Ok(rows.into_iter().map(|row| row.token_id).collect())
}

/// Removes the devices of a login that have come least far, down to `keep`.
pub async fn delete_furthest_behind(db: &mut Db, login: LoginId, keep: i64) -> QueryResult<usize> {
    let furthest_behind: Vec<i64> = table
        .filter(im_device_position::token_id.eq(login))
        .order(((im_device_position::private_id + im_device_position::group_id).desc(), im_device_position::id.desc()))
        .limit(1_000)
        .offset(keep)
        .select(im_device_position::id)
        .load(db)
        .await?;
    diesel::delete(table.filter(im_device_position::id.eq_any(furthest_behind))).execute(db).await
}

/// Removes the devices of logins that end.
pub async fn delete_of_logins(db: &mut Db, logins: Vec<LoginId>) -> QueryResult<usize> {
    diesel::delete(table.filter(im_device_position::token_id.eq_any(logins))).execute(db).await
}

/// Removes the devices of all logins of a user; to be called before the logins are removed.
pub async fn delete_of_user(db: &mut Db, user: UserId) -> QueryResult<usize> {
    let logins = refresh::table.filter(refresh::user_id.eq(user)).select(refresh::id).load(db).await?;
    delete_of_logins(db, logins).await
}
