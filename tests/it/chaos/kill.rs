//! The server is killed with SIGKILL at a random moment and started again (`design.md` I10; field tests C4, D1).

use crate::support::databases::{Backend, on_every_database};

use super::survive::survive;
use super::world::Needs;

on_every_database! { killed_servers_lose_and_repeat_nothing }

async fn killed_servers_lose_and_repeat_nothing(backend: Backend) {
    survive(backend, Needs::Process, async |world, _| {
        world.servers[0].kill9();
        world.servers[0].restart().await.unwrap();
    })
    .await;
}
