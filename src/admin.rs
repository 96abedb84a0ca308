//! `nudge admin`: who are operators, and what they may do. It opens the database itself, beside a server that may be
//! running, which reads permissions anew for every request.

use std::fmt::{self, Write};

use anyhow::{Context, bail, ensure};

use crate::clock::Clock;
use crate::db::connect::{Role, Source};
use crate::db::users::{self, User};
use crate::db::{Db, permissions};
use crate::domain::ids::UserId;
use crate::domain::permission::{KEYS, SUPER_ADMIN, shown_form, stored_form};

/// Rows read at a time.
const PAGE_ROWS: i64 = 500;

/// How an account is named.
#[derive(Clone, Debug)]
pub enum Account {
    Username(String),
    /// By the id of a business system.
    ExternalId(String),
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Account::Username(name) => write!(formatter, "user name {name}"),
            Account::ExternalId(id) => write!(formatter, "external id {id}"),
        }
    }
}

/// Gives a user permissions, or the role of super admin where `names` is empty; what to print.
///
/// # Errors
/// An unknown user or permission; a database that does not exist, cannot be reached, or has an older schema.
pub async fn grant(source: &Source, account: &Account, names: &[String]) -> anyhow::Result<String> {
    let mut wanted = stored_forms(names)?;
    if wanted.is_empty() {
        wanted.extend(stored_form(SUPER_ADMIN));
    }
    let mut db = open(source).await?;
    let user = find(&mut db, account).await?;
    permissions::grant(&mut db, user.id, &wanted, Clock::system().now()).await?;
    show(&mut db, user.id).await
}

/// Takes permissions from a user, or everything where `names` is empty; what to print.
///
/// # Errors
/// As [`grant`]; and a user who holds none of them himself, though his role may include them.
pub async fn revoke(source: &Source, account: &Account, names: &[String]) -> anyhow::Result<String> {
    let unwanted = stored_forms(names)?;
    let mut db = open(source).await?;
    let user = find(&mut db, account).await?;
    let taken = match unwanted.is_empty() {
        true => permissions::revoke_all(&mut db, user.id).await?,
        false => permissions::revoke(&mut db, user.id, &unwanted).await?,
    };
    ensure!(taken > 0, "nothing was revoked, {}", show(&mut db, user.id).await?.trim_end());
    show(&mut db, user.id).await
}

/// Every operator, a line each; what to print.
///
/// # Errors
/// As [`grant`].
pub async fn list(source: &Source) -> anyhow::Result<String> {
    let mut db = open(source).await?;
    let mut lines = String::new();
    let (mut last, mut after) = (None, (UserId(i64::MIN), String::new()));
    loop {
        let page = permissions::list_after(&mut db, (after.0, &after.1), PAGE_ROWS).await?;
        let Some(end) = page.last() else { break };
        after = (end.user, end.permission.clone());
        for row in page {
            if last != Some(row.user) {
                let separator = if last.is_some() { "\n" } else { "" };
                let name = row.username.or(row.external_id).unwrap_or_default();
                write!(lines, "{separator}{} {name}:", row.user)?;
                last = Some(row.user);
            }
            write!(lines, " {}", shown_form(&row.permission))?;
        }
    }
    lines.push_str(if last.is_some() { "\n" } else { "there are no operators\n" });
    Ok(lines)
}

fn stored_forms(names: &[String]) -> anyhow::Result<Vec<&'static str>> {
    let mut forms = Vec::with_capacity(names.len());
    for name in names {
        let Some(form) = stored_form(name) else {
            bail!("there is no permission {name}; there are {SUPER_ADMIN}, {}", KEYS.join(", "));
        };
        forms.push(form);
    }
    Ok(forms)
}

async fn open(source: &Source) -> anyhow::Result<Db> {
    if let Some(path) = source.sqlite_path() {
        // Opening it would make an empty one.
        ensure!(path.is_file(), "there is no database {}; start the server, or run nudge migrate", path.display());
    }
    let mut db = source.connect(Role::Writer).await.context("the database cannot be opened")?;
    let probe = permissions::list_of_user(&mut db, UserId(0)).await;
    probe.context("the schema of the database is of another version; run nudge migrate")?;
    Ok(db)
}

async fn find(db: &mut Db, account: &Account) -> anyhow::Result<User> {
    let user = match account {
        Account::Username(name) => users::get_by_username(db, name).await?,
        Account::ExternalId(id) => users::list_by_external_ids(db, std::slice::from_ref(id)).await?.pop(),
    };
    user.with_context(|| format!("there is no user with the {account}"))
}

/// What a user may do now, as a line.
async fn show(db: &mut Db, user: UserId) -> anyhow::Result<String> {
    let mut held = permissions::list_of_user(db, user).await?;
    held.sort_unstable();
    let held: Vec<&str> = held.iter().map(|held| shown_form(held)).collect();
    Ok(format!("user {user} holds {}\n", if held.is_empty() { "no permission".to_owned() } else { held.join(", ") }))
}
