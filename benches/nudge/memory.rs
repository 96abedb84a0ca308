//! Resident memory of the server for each idle connection, fresh and after a burst.

use std::time::Duration;

use nudge::db::connect::Role;
use nudge::db::tokens::{self, NewLogin, TokenHash};
use nudge::db::users::{self, NewUser, STATUS_ENABLED};
use nudge::domain::ids::UserId;
use sha2::{Digest, Sha256};

use crate::child::ServerChild;
use crate::databases::{self, Database};
use crate::machine;
use crate::sockets::{Crowd, token};

const SOCKETS: i64 = 5_000;
/// Rows of one insert.
const CHUNK: usize = 500;
/// Frames to every socket before the second look.
const BURST: usize = 20;
/// Until freed memory has gone back and statistics are up to date.
const SETTLE: Duration = Duration::from_secs(2);

pub async fn measure() -> anyhow::Result<()> {
    let database = databases::create_sqlite().await?;
    create_users(&database, SOCKETS).await?;
    let sockets = SOCKETS.to_string();
    println!("{SOCKETS} connections; KiB of resident memory for each; {BURST} frames to each socket in a burst");
    println!("{:<8} {:>12} {:>12} {:>14}", "", "before KiB", "idle", "after a burst");
    for arguments in [vec!["nudge", &database.url, &sockets], vec!["raw", &sockets]] {
        let mut server = ServerChild::start(&arguments)?;
        tokio::time::sleep(SETTLE).await;
        let before = machine::rss_kb(server.id())?;
        let publish = server.publish.take().ok_or_else(|| anyhow::anyhow!("connected once"))?;
        let crowd = Crowd::connect(server.address, SOCKETS, publish).await?;
        tokio::time::sleep(SETTLE).await;
        let idle = machine::rss_kb(server.id())?;
        crowd.run(BURST, Duration::ZERO).await?;
        tokio::time::sleep(SETTLE).await;
        let after = machine::rss_kb(server.id())?;
        let each = |now: u64| now.saturating_sub(before) as f64 / SOCKETS as f64;
        println!("{:<8} {before:>12} {:>12.1} {:>14.1}", arguments[0], each(idle), each(after));
    }
    Ok(())
}

/// Makes the users 1 to `count` of an empty database, each with a login whose refresh token is [`token`].
pub async fn create_users(database: &Database, count: i64) -> anyhow::Result<()> {
    let mut db = database.source.connect(Role::Writer).await?;
    let numbers: Vec<i64> = (1..=count).collect();
    db.begin().await?;
    for numbers in numbers.chunks(CHUNK) {
        let rows: Vec<NewUser> = numbers.iter().map(|number| new_user(*number)).collect();
        users::insert_all_if_new(&mut db, &rows).await?;
        let logins: Vec<NewLogin> = numbers.iter().map(|number| new_login(*number)).collect();
        tokens::insert_logins(&mut db, &logins, 1).await?;
    }
    db.commit().await?;
    Ok(())
}

fn new_user(number: i64) -> NewUser {
    NewUser {
        username: None,
        external_id: Some(format!("bench-{number}")),
        password: None,
        nickname: format!("user {number}"),
        avatar: None,
        sex: 0,
        status: STATUS_ENABLED,
        create_time: 1,
        update_time: 1,
    }
}

fn new_login(number: i64) -> NewLogin {
    let hash = |text: &str| -> TokenHash { Sha256::digest(text).into() };
    let expires = i64::MAX >> 11;
    NewLogin {
        user: UserId(number),
        refresh_hash: hash(&token(number)),
        refresh_expires: expires,
        access_hash: hash(&format!("access-{number}")),
        access_expires: expires,
    }
}
