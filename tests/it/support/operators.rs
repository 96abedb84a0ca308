//! Operators: people with permissions, as an administrator gives them.

use nudge::admin::{Account, grant, revoke};
use nudge::db::connect::Source;

use super::app::{Person, TestApp};

/// Gives somebody permissions; all of them where none is named.
pub async fn permit(database_url: &str, person: &Person, permissions: &[&str]) {
    let names: Vec<String> = permissions.iter().map(|name| (*name).to_owned()).collect();
    grant(&source(database_url), &account(person), &names).await.unwrap();
}

/// Takes everything from somebody.
pub async fn forbid(database_url: &str, person: &Person) {
    revoke(&source(database_url), &account(person), &[]).await.unwrap();
}

fn source(url: &str) -> Source {
    Source::parse(&url.to_owned().into()).unwrap()
}

fn account(person: &Person) -> Account {
    Account::ExternalId(person.external_id.clone())
}

impl TestApp {
    /// Somebody new who may do everything that operators can.
    pub async fn operator(&self) -> Person {
        let operator = self.user("operator").await;
        permit(&self.database.url, &operator, &[]).await;
        operator
    }
}
