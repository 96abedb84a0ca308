//! Our own client as a device of a person.

use nudge::client::{Device, DeviceConfig, Endpoint, Tokens};
use nudge::domain::ids::UserId;

use super::app::Person;

/// Our own client, with the login of a person.
pub fn device_of(person: &Person, base: &str) -> Device {
    let tokens = Tokens {
        user_id: UserId(person.id),
        access_token: person.access_token.clone(),
        refresh_token: person.refresh_token.clone(),
        expires_time: i64::MAX,
    };
    Device::new(Endpoint::new(base).unwrap(), tokens, DeviceConfig::default())
}
