//! Pages of management lists: filtered rows of one table by descending id, with offset and total, as operators leaf
//! through them. Users' lists are walks along an index instead.
//!
//! A page costs what the filter leaves to be counted and passed over. So these run on a connection of their own, and the
//! database ends a statement that takes longer than its session allows (`db::connect`).

use std::fmt::Display;

use diesel::sql_types::{BigInt, Text};
use diesel::{QueryResult, QueryableByName};

use super::{Backend, Db, RunQueryDsl};
use crate::domain::page::{Page, Paged, TimeRange};

/// What a page shows. Numbers are written into the statement; the one text is bound.
pub(super) struct PageQuery {
    table: &'static str,
    conditions: Vec<String>,
    text: Option<(&'static str, String)>,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

impl PageQuery {
    /// All rows of a table with a column `id`.
    pub fn of(table: &'static str) -> PageQuery {
        PageQuery { table, conditions: Vec::new(), text: None }
    }

    /// Only rows that fulfil a condition, which must not hold anything that a user wrote.
    fn only(mut self, condition: Option<String>) -> PageQuery {
        self.conditions.extend(condition);
        self
    }

    pub fn equals(self, column: &str, value: Option<i64>) -> PageQuery {
        self.compare(column, "=", value)
    }

    pub fn is(self, column: &str, value: Option<bool>) -> PageQuery {
        self.compare(column, "=", value.map(|value| if value { "TRUE" } else { "FALSE" }))
    }

    pub fn between(self, column: &str, range: TimeRange) -> PageQuery {
        self.compare(column, ">=", range.from).compare(column, "<=", range.to)
    }

    pub fn one_of(self, column: &str, values: [i64; 2]) -> PageQuery {
        let [one, other] = values;
        self.only(Some(format!("{column} IN (({one}), ({other}))")))
    }

    fn compare(self, column: &str, operator: &str, value: Option<impl Display>) -> PageQuery {
        self.only(value.map(|value| format!("{column} {operator} ({value})")))
    }

    /// Only rows whose column contains a text, in whatever case (on SQLite that is so for ASCII letters only). One for a
    /// query; a blank one is no filter.
    pub fn contains(mut self, column: &'static str, part: Option<&str>) -> PageQuery {
        self.text = part.map(str::trim).filter(|part| !part.is_empty()).map(|part| (column, contains(part)));
        self
    }

    /// The ids of a page, descending, and how many rows there are.
    pub async fn load(self, db: &mut Db, page: Page) -> QueryResult<Paged<i64>> {
        let filter = self.filter(db.backend());
        let table = self.table;
        let pattern = self.text.map(|(_, pattern)| pattern);
        let count = format!("SELECT COUNT(*) AS number FROM {table}{filter}");
        let total = numbers(db, count, pattern.as_deref()).await?.first().copied().unwrap_or(0);
        if page.offset() >= total {
            return Ok(Paged { list: Vec::new(), total });
        }
        let (size, offset) = (page.size, page.offset());
        let ids = format!("SELECT id AS number FROM {table}{filter} ORDER BY id DESC LIMIT {size} OFFSET {offset}");
        Ok(Paged { list: numbers(db, ids, pattern.as_deref()).await?, total })
    }

    fn filter(&self, backend: Backend) -> String {
        let mut conditions = self.conditions.clone();
        if let Some((column, _)) = &self.text {
            let place = if backend == Backend::Postgres { "$1" } else { "?" };
            conditions.push(format!("LOWER({column}) LIKE LOWER({place}) ESCAPE '!'"));
        }
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
    }
}

async fn numbers(db: &mut Db, sql: String, pattern: Option<&str>) -> QueryResult<Vec<i64>> {
    let query = diesel::sql_query(sql);
    let rows: Vec<Number> = match pattern {
        Some(pattern) => query.bind::<Text, _>(pattern.to_owned()).load(db).await?,
        None => query.load(db).await?,
    };
    Ok(rows.into_iter().map(|row| row.number).collect())
}

/// A pattern for texts that contain `part` as it is written; its escape character is `!`.
pub(super) fn contains(part: &str) -> String {
    let mut pattern = String::from("%");
    for character in part.chars() {
        if matches!(character, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}
