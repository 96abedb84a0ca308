//! What the tests stand on: databases, database servers, servers inside the test and as processes.

pub mod app;
pub mod background;
pub mod bare;
pub mod barrier;
pub mod chats;
pub mod clock;
pub mod crowd;
pub mod cursors;
pub mod database_server;
pub mod databases;
pub mod devices;
pub mod direct;
pub mod friends;
pub mod groups;
pub mod jumping;
pub mod line;
pub mod operators;
pub mod ports;
pub mod process;
pub mod push;
pub mod raw;
pub mod relay;
pub mod second_connection;
pub mod server_api;
pub mod stored;
pub mod tables;
