//! Users, friends and groups, put straight into the tables.

use nudge::db::Db;
use nudge::db::connect::Role;
use nudge::db::tokens::{self, NewLogin, TokenHash};
use nudge::db::users::{self, NewUser, STATUS_ENABLED};
use nudge::domain::friendship::ACTIVE;
use nudge::domain::group::{GROUP_NORMAL, MEMBER_ACTIVE, Role as GroupRole};
use nudge::domain::ids::{MAX_ID, UserId};
use sha2::{Digest, Sha256};

use crate::databases::Database;
use crate::sockets::token;

/// Rows of one insert.
const CHUNK: usize = 500;

/// The access token of a user of [`create_users`].
pub fn access_token(user: i64) -> String {
    format!("access-{user}")
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
        access_hash: hash(&access_token(number)),
        access_expires: expires,
    }
}

/// Makes a user and others friends.
pub async fn insert_friends(db: &mut Db, user: i64, friends: &[i64]) -> anyhow::Result<()> {
    let pairs = friends.iter().flat_map(|friend| [(user, *friend), (*friend, user)]);
    let rows: Vec<String> =
        pairs.map(|(user, friend)| format!("({user},{friend},false,false,false,{ACTIVE},1,1)")).collect();
    let sql =
        "INSERT INTO im_friend (user_id, friend_user_id, silent, pinned, blocked, status, create_time, update_time)";
    Ok(db.run_text(&format!("{sql} VALUES {}", rows.join(","))).await?)
}

/// Makes a group of these members, from its first message on. The first of them owns it.
pub async fn insert_group(db: &mut Db, group: i64, members: &[i64]) -> anyhow::Result<()> {
    let owner = members.first().copied().unwrap_or_default();
    db.run_text(&format!(
        "INSERT INTO im_group (id, name, owner_user_id, banned, status, muted_all, join_approval, pinned_message_ids, \
         member_version, create_time, update_time) \
         VALUES ({group},'group {group}',{owner},false,{GROUP_NORMAL},false,false,'',1,1,1)"
    ))
    .await?;
    let rows = |row: &dyn Fn(i64) -> String| members.iter().map(|user| row(*user)).collect::<Vec<_>>().join(",");
    let role = |user: i64| if user == owner { GroupRole::Owner.number() } else { GroupRole::Normal.number() };
    let values = rows(&|user| format!("({group},{user},false,{MEMBER_ACTIVE},{},1,1,1)", role(user)));
    let columns = "group_id, user_id, silent, status, role, join_time, create_time, update_time";
    db.run_text(&format!("INSERT INTO im_group_member ({columns}) VALUES {values}")).await?;
    let values = rows(&|user| format!("({user},{group},0,{MAX_ID})"));
    let sql = "INSERT INTO im_group_member_span (user_id, group_id, from_id, to_id) VALUES";
    Ok(db.run_text(&format!("{sql} {values}")).await?)
}
