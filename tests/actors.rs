//! The push path over real sockets: order, limits, cuts, closes, and that nothing is left behind.

#[cfg(test)]
#[path = "actors/harness.rs"]
mod harness;

#[cfg(test)]
#[path = "actors/closing.rs"]
mod closing;
#[cfg(test)]
#[path = "actors/frames.rs"]
mod frames;
#[cfg(test)]
#[path = "actors/races.rs"]
mod races;
#[cfg(test)]
#[path = "actors/slow.rs"]
mod slow;
