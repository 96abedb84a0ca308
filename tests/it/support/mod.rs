//! What the tests stand on: databases, database servers, servers inside the test and as processes.

pub mod app;
pub mod barrier;
pub mod database_server;
pub mod databases;
pub mod ports;
pub mod process;
pub mod raw;
pub mod server_api;
pub mod tables;
