//! Actors: what is gone when the process is gone. The DB actors run transactions and reads; the push path is
//! registry → user devices → session → socket (`design.md` sections 2 and 6).
//!
//! Whoever pushes holds a [`Registry`]; the HTTP layer opens sockets with [`open_session`] and prepares accepted
//! connections with [`prepare_connection`]. Nothing here knows SQL or routes. What is queued for a session lives in its
//! [`queue`], which any part may close; the actors' messages only say that it changed.

pub mod db_reader;
pub mod db_writer;
mod devices;
mod positions;
pub mod queue;
mod registry;
mod replay;
pub mod session;
mod transport;

pub use positions::Positions;
pub use registry::{Attach, AttachRefused, Counts, HandoverRefused, Registry};
pub use replay::{Replays, Resume};
pub use session::{Attachment, SessionHandle, SessionIdentity, SessionInfo};
pub use transport::{OpenError, OpenSession, open_session, prepare_connection, prepare_socket};
