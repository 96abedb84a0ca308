//! The push path over real sockets: order, limits, cuts, closes, and that nothing is left behind.

#[path = "actors/harness.rs"]
mod harness;

#[path = "actors/closing.rs"]
mod closing;
#[path = "actors/frames.rs"]
mod frames;
#[path = "actors/races.rs"]
mod races;
#[path = "actors/slow.rs"]
mod slow;
