//! Actors: what is gone when the process is gone. Sockets, queues and the connections that serve them.

pub mod db_reader;
pub mod db_writer;
pub mod registry;
