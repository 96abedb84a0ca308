//! Chaos: people write, read, recall, come and go without a pause, something breaks in a random moment and is mended,
//! and afterwards nothing that was acknowledged is lost, nothing is there twice, order is kept, all devices agree, and
//! the server holds what it held before. What breaks is one file each; what goes on meanwhile (`hands.rs`), who listens
//! (`ears.rs`) and what must hold afterwards (`check.rs`) are the same for all. (Sharper tests of single promises stand
//! beside this folder.)
//!
//! A module of the `it` target and not a target of its own, because a second target could only have the support code by
//! its path: its tests would run twice, and dead code in it would go unnoticed.
//!
//! `TEST_SEED=n` repeats the random choices of a run (what is under way when it breaks, the machine decides);
//! `TEST_LONG=1` breaks it many times over.

mod check;
mod clock;
mod database;
mod ears;
mod freeze;
mod full_disk;
mod hands;
mod kill;
mod ledger;
mod network;
mod survive;
mod weather;
mod world;
