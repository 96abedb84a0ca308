//! How far devices have confirmed what was pushed to them: looked up when a socket opens, written in bulk by the actors
//! (`design.md` section 7, "resume replay").

use std::collections::HashSet;

use super::Tx;
pub use crate::db::device_positions::NewDevice;
use crate::db::device_positions::{self as table, DevicePositionRow};
use crate::db::sequence::{Counter, horizon};
use crate::db::{Db, tokens};
use crate::domain::device_position::DevicePosition;
use crate::domain::ids::{LoginId, MessageId};
use crate::error::AppError;

/// Devices of one login that are remembered. Their names are the client's, so they are bounded: beyond it those that
/// have come least far are forgotten, and start anew when they come back.
const MAX_DEVICES_OF_LOGIN: i64 = 50;

/// A device whose position is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownDevice {
    /// The row of its position.
    pub row: i64,
    pub stored: DevicePosition,
    /// Where a session of it starts: what is stored, or the counters where they are lower.
    pub start: DevicePosition,
}

impl From<&DevicePositionRow> for KnownDevice {
    fn from(row: &DevicePositionRow) -> KnownDevice {
        KnownDevice { row: row.id, stored: row.position(), start: row.position() }
    }
}

/// What is known of a device, and the present values of the counters, where a new one starts. A position above them,
/// as after the return of an old database, is lowered.
pub async fn look(
    db: &mut Db,
    login: LoginId,
    device: &str,
) -> Result<(Option<KnownDevice>, DevicePosition), AppError> {
    let counters = DevicePosition {
        private: MessageId(horizon(db, Counter::Private).await?),
        group: MessageId(horizon(db, Counter::Group).await?),
        ..DevicePosition::START
    };
    let known = table::get(db, login, device).await?.as_ref().map(KnownDevice::from);
    let known = known.map(|known| KnownDevice { start: known.stored.lowest(counters), ..known });
    Ok((known, counters))
}

/// Stores devices that are seen for the first time. `None` for one whose login has ended meanwhile.
pub async fn remember_all(tx: &mut Tx<'_>, devices: &[NewDevice]) -> Result<Vec<Option<KnownDevice>>, AppError> {
    let mut logins: Vec<LoginId> = devices.iter().map(|new| new.login).collect();
    logins.sort_unstable();
    logins.dedup();
    let existing: HashSet<LoginId> = tokens::list_existing(tx.db, logins).await?.into_iter().collect();
    let mut new: Vec<NewDevice> = devices.iter().filter(|new| existing.contains(&new.login)).cloned().collect();
    new.sort_unstable_by(|a, b| (a.login, &a.device).cmp(&(b.login, &b.device)));
    table::insert_all_if_new(tx.db, &new).await?;
    let logins: Vec<LoginId> = existing.into_iter().collect();
    for login in table::list_crowded(tx.db, &logins, MAX_DEVICES_OF_LOGIN).await? {
        table::delete_furthest_behind(tx.db, login, MAX_DEVICES_OF_LOGIN).await?;
    }
    let rows = table::list_named(tx.db, logins, new.into_iter().map(|new| new.device).collect()).await?;
    let find = |new: &NewDevice| rows.iter().find(|row| row.token_id == new.login && row.device == new.device);
    Ok(devices.iter().map(|new| find(new).map(KnownDevice::from)).collect())
}

/// Writes positions by row, up or down. Rows of logins that have ended are left out.
pub async fn save_all(tx: &mut Tx<'_>, positions: &[(i64, DevicePosition)]) -> Result<(), AppError> {
    Ok(table::update_all(tx.db, positions).await?)
}
