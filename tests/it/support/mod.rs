//! What the tests stand on: databases, database servers and server processes of their own.

pub mod database_server;
pub mod databases;
pub mod ports;
pub mod process;
