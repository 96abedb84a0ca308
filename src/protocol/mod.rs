//! Wire types: frames, payloads and close codes. No rules, no I/O.

pub mod close;
pub mod frame;
pub mod friend;
pub mod group_payload;
pub mod manager_payload;
pub mod payload;
