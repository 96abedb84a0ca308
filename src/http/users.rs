//! Other people and my own profile (`contract/01` section 7, rows 13, 14 and 19–21).

use actix_web::web;
use serde::{Deserialize, Serialize};

use super::AppState;
use super::auth::check_password;
use super::caller::Caller;
use super::friends::announce_profiles;
use super::input::{Body, Params, check_length, check_text};
use super::response::{Answer, Reply};
use crate::domain::ids::UserId;
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::protocol::payload::SimpleUserBody;
use crate::service::Locks;
use crate::service::accounts::{self, ProfileChange, User};
use crate::service::passwords::{hash_password, verify_password};

/// Users that a search by nickname gives at most.
const MAX_FOUND: i64 = 100;

#[derive(Deserialize)]
pub struct UserParams {
    id: UserId,
}

#[derive(Deserialize)]
pub struct NicknameParams {
    nickname: String,
}

impl From<User> for SimpleUserBody {
    fn from(user: User) -> Self {
        SimpleUserBody {
            id: user.id,
            nickname: user.nickname,
            avatar: user.avatar,
            sex: user.sex,
            dept_id: None,
            dept_name: None,
        }
    }
}

/// GET `/system/user/get-simple?id=`.
pub async fn get_simple(
    state: web::Data<AppState>,
    _: Caller,
    Params(params): Params<UserParams>,
) -> Answer<Option<SimpleUserBody>> {
    let user = state.readers.run(async move |db| accounts::get_user(db, params.id).await).await?;
    Ok(Reply(user.map(SimpleUserBody::from)))
}

/// GET `/system/user/list-by-nickname?nickname=`: enabled accounts whose nickname contains the text.
pub async fn search(
    state: web::Data<AppState>,
    _: Caller,
    Params(params): Params<NicknameParams>,
) -> Answer<Vec<SimpleUserBody>> {
    check_length("nickname", &params.nickname, 64)?;
    if params.nickname.trim().is_empty() {
        return Ok(Reply(Vec::new()));
    }
    let part = params.nickname;
    let users = state.readers.run(async move |db| accounts::find_by_nickname(db, part.trim(), MAX_FOUND).await).await?;
    Ok(Reply(users.into_iter().map(SimpleUserBody::from).collect()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileBody {
    id: UserId,
    username: String,
    nickname: String,
    email: Option<String>,
    mobile: Option<String>,
    sex: i32,
    avatar: Option<String>,
    login_ip: Option<String>,
    login_date: Option<i64>,
    create_time: i64,
    roles: Vec<String>,
    dept: Option<String>,
    posts: Vec<String>,
}

/// GET `/system/user/profile/get`.
pub async fn get_profile(state: web::Data<AppState>, caller: Caller) -> Answer<Option<ProfileBody>> {
    let id = caller.user;
    let user = state.readers.run(async move |db| accounts::get_user(db, id).await).await?;
    Ok(Reply(user.map(|user| ProfileBody {
        id: user.id,
        username: user.username.unwrap_or_default(),
        nickname: user.nickname,
        email: user.email,
        mobile: user.mobile,
        sex: user.sex,
        avatar: user.avatar,
        login_ip: user.login_ip,
        login_date: user.login_date,
        create_time: user.create_time,
        roles: Vec::new(),
        dept: None,
        posts: Vec::new(),
    })))
}

#[derive(Deserialize)]
pub struct ProfileRequest {
    nickname: Option<String>,
    email: Option<String>,
    mobile: Option<String>,
    sex: Option<i32>,
    avatar: Option<String>,
}

impl ProfileRequest {
    fn check(&self) -> Result<(), AppError> {
        if let Some(nickname) = &self.nickname {
            check_text("nickname", nickname, 30)?;
        }
        let limited = [("email", &self.email, 50), ("mobile", &self.mobile, 32), ("avatar", &self.avatar, 512)];
        for (name, text, max) in limited {
            check_length(name, text.as_deref().unwrap_or_default(), max)?;
        }
        if self.sex.is_some_and(|sex| !(0..=2).contains(&sex)) {
            return Err(AppError::Malformed("parameter incorrect: sex must be 0, 1 or 2".into()));
        }
        Ok(())
    }
}

/// PUT `/system/user/profile/update`.
pub async fn update_profile(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<ProfileRequest>,
) -> Answer<bool> {
    body.check()?;
    let ProfileRequest { nickname, email, mobile, sex, avatar } = body;
    let change = ProfileChange { nickname, avatar, sex, email, mobile, update_time: None };
    let is_visible = state
        .writer
        .run(Some(caller.user), "account.update_profile", Locks::CLOCK, async move |tx| {
            accounts::update_profile(tx, caller.user, &change).await
        })
        .await?;
    if is_visible {
        announce_profiles(state, vec![caller.user]).await;
    }
    Ok(Reply(true))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PasswordRequest {
    old_password: String,
    new_password: String,
}

/// PUT `/system/user/profile/update-password`. Ends every login of the account, this one too.
pub async fn update_password(
    state: web::Data<AppState>,
    caller: Caller,
    Body(body): Body<PasswordRequest>,
) -> Answer<bool> {
    check_password(&body.old_password)?;
    check_password(&body.new_password)?;
    let user = caller.user;
    let stored = state.readers.run(async move |db| accounts::get_password_hash(db, user).await).await?;
    let old_hash = stored.ok_or(Refusal::WrongOldPassword)?;
    let known = old_hash.clone();
    let hashed = state.passwords.run(move || {
        if !verify_password(&body.old_password, &known) {
            return Err(Refusal::WrongOldPassword.into());
        }
        hash_password(&body.new_password)
    });
    let new_hash = hashed.await??;
    state
        .writer
        .run(Some(user), "account.change_password", Locks::NONE, async move |tx| {
            accounts::change_password(tx, user, &old_hash, &new_hash).await
        })
        .await?;
    Ok(Reply(true))
}
