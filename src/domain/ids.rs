//! Identifiers: `i64` newtypes, below 2^53 so that JavaScript keeps them whole (`contract/01` section 3).
//!
//! On the wire an id is a JSON number; as input a number or a numeric string is taken, in JSON bodies and in query
//! strings alike.

use std::fmt;

use diesel_derive_newtype::DieselNewType;
use serde::{Deserialize, Deserializer, Serialize, de};

/// The largest id that JavaScript and every database keep unchanged (2^53 − 1).
pub const MAX_ID: i64 = 9_007_199_254_740_991;

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, DieselNewType)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize_integer(deserializer).map($name)
            }
        }
    )*};
}

id_types! {
    /// A person's account.
    UserId;
    /// A message of one of the message tables; ids of one table rise in commit order (`design.md` I3).
    MessageId;
    /// A group.
    GroupId;
    /// One sign-in: the row of its refresh token. Sessions belong to a login and end with it.
    LoginId;
    /// A friend or group request.
    RequestId;
    /// One open WebSocket; unique within a process.
    SessionId;
}

/// Reads an integer from a JSON number or a numeric string (`contract/01` section 3, "input ids").
pub fn deserialize_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    struct Integer;

    impl de::Visitor<'_> for Integer {
        type Value = i64;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an integer")
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<i64, E> {
            Ok(value)
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<i64, E> {
            i64::try_from(value).map_err(|_| E::custom("integer out of range"))
        }

        fn visit_str<E: de::Error>(self, value: &str) -> Result<i64, E> {
            value.trim().parse().map_err(|_| E::custom("not an integer"))
        }
    }

    deserializer.deserialize_any(Integer)
}

/// [`deserialize_integer`] for optional fields: absent and `null` are `None`.
pub fn deserialize_optional_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    #[derive(Deserialize)]
    struct Wrapper(#[serde(deserialize_with = "deserialize_integer")] i64);

    Ok(Option::<Wrapper>::deserialize(deserializer)?.map(|wrapper| wrapper.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_numeric_strings_are_ids() {
        for text in ["7", "\"7\"", "\" 7 \""] {
            assert_eq!(serde_json::from_str::<UserId>(text).unwrap(), UserId(7), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for text in ["7.5", "\"\"", "\"x\"", "null", "9223372036854775808", "true", "[]"] {
            assert!(serde_json::from_str::<UserId>(text).is_err(), "{text}");
        }
    }
}
