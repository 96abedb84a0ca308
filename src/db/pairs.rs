//! Looking up many rows with one statement, each by a pair of numbers.
//!
//! The text is always the same, or one of a few, so that it stays prepared: that saves a round trip and the parsing of
//! hundreds of constants. PostgreSQL gets the pairs as two arrays, MySQL as JSON, and SQLite, which has no arrays, each as
//! a parameter, the last one repeated until their number is a power of two.

use std::marker::PhantomData;

use diesel::QueryResult;
use diesel::mysql::Mysql;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Text};
use diesel::sqlite::Sqlite;

use super::Backend;

/// A statement that reads a table `pairs` with the columns `a` and `b`. It may hold a pair more than once. `Row` are the types
/// of the statement's columns.
pub(super) struct ByPairs<Row> {
    select: String,
    a: Vec<i64>,
    b: Vec<i64>,
    /// The pairs as MySQL gets them.
    json: String,
    row: PhantomData<Row>,
}

impl<Row> ByPairs<Row> {
    /// `select` is what follows the definition of `pairs`.
    pub fn new(backend: Backend, mut pairs: Vec<(i64, i64)>, select: impl Into<String>) -> ByPairs<Row> {
        pairs.sort_unstable();
        pairs.dedup();
        if backend == Backend::Sqlite
            && let Some(last) = pairs.last().copied()
        {
            pairs.resize(pairs.len().next_power_of_two(), last);
        }
        let mut json = String::new();
        if backend == Backend::Mysql {
            let items: Vec<String> = pairs.iter().map(|(a, b)| format!("[{a},{b}]")).collect();
            json = format!("[{}]", items.join(","));
        }
        let (a, b) = pairs.into_iter().unzip();
        ByPairs { select: select.into(), a, b, json, row: PhantomData }
    }
}

impl<Row> Query for ByPairs<Row> {
    type SqlType = Row;
}

impl<Row> QueryId for ByPairs<Row> {
    type QueryId = ();
    // Prepared statements are found by their text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Row> QueryFragment<Sqlite> for ByPairs<Row> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        // Only 500 terms in a compound SELECT, but any number of VALUES rows.
        out.push_sql("WITH pairs AS (SELECT column1 AS a, column2 AS b FROM (VALUES ");
        for (index, (a, b)) in self.a.iter().zip(&self.b).enumerate() {
            out.push_sql(if index == 0 { "(" } else { "), (" });
            out.push_bind_param::<BigInt, _>(a)?;
            out.push_sql(", ");
            out.push_bind_param::<BigInt, _>(b)?;
        }
        out.push_sql("))) ");
        out.push_sql(&self.select);
        Ok(())
    }
}

impl<Row> QueryFragment<Pg> for ByPairs<Row> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH pairs AS (SELECT a, b FROM unnest(");
        out.push_bind_param::<Array<BigInt>, _>(&self.a)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.b)?;
        out.push_sql(") AS v (a, b)) ");
        out.push_sql(&self.select);
        Ok(())
    }
}

impl<Row> QueryFragment<Mysql> for ByPairs<Row> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Mysql>) -> QueryResult<()> {
        out.push_sql("WITH pairs AS (SELECT a, b FROM JSON_TABLE(");
        out.push_bind_param::<Text, _>(self.json.as_str())?;
        out.push_sql(", '$[*]' COLUMNS (a BIGINT PATH '$[0]', b BIGINT PATH '$[1]')) AS v) ");
        out.push_sql(&self.select);
        Ok(())
    }
}
