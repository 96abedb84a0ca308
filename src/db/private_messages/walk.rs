//! A walk along one index of `im_private_message`: the one way in which pages are read.
//!
//! Left to themselves the planners read without bound, each in its own way, because they take messages to be spread
//! evenly over time: PostgreSQL (and SQLite once it has statistics) walks the primary key and filters, which for
//! somebody who was busy a month ago is every message of everybody since; MariaDB walks all of a user's messages before
//! the cursor. So SQLite and MariaDB are told the index. PostgreSQL cannot be told: comparing and ordering by whole keys
//! leaves it no other index (docs/performance.md has the plans).

use diesel::QueryResult;
use diesel::backend::Backend as DieselBackend;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, Binary, HasSqlType, Integer, Text};

use crate::db::Backend;
use crate::domain::ids::{MessageId, UserId};

/// An index that ends with `id`, and the columns before.
#[derive(Clone, Copy)]
pub(super) struct Index {
    name: &'static str,
    columns: &'static [&'static str],
}

pub(super) const SENDER: Index = Index { name: "idx_im_private_message_sender", columns: &["sender_id"] };
pub(super) const RECEIVER: Index = Index { name: "idx_im_private_message_receiver", columns: &["receiver_id"] };
pub(super) const PAIR: Index = Index { name: "idx_im_private_message_pair", columns: &["sender_id", "receiver_id"] };

/// Rows whose columns of the index have these values, with `above < id <= up_to`, by id; at most `limit`.
pub(super) struct Walk {
    pub backend: Backend,
    pub index: Index,
    /// One for each column of the index.
    pub key: Vec<UserId>,
    pub above: MessageId,
    pub up_to: MessageId,
    pub is_newest_first: bool,
    /// Leaves out rows of this type, which must be rare: they are read all the same.
    pub without_type: Option<i32>,
    pub limit: i64,
}

impl Query for Walk {
    type SqlType = (BigInt, Text, BigInt, BigInt, Integer, Text, Binary, Integer, Integer, BigInt);
}

impl QueryId for Walk {
    type QueryId = ();
    // Its text depends on its values; prepared statements are found by the text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB> QueryFragment<DB> for Walk
where
    DB: DieselBackend + HasSqlType<BigInt> + HasSqlType<Integer>,
    i64: ToSql<BigInt, DB>,
    i32: ToSql<Integer, DB>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "SELECT id, client_message_id, sender_id, receiver_id, type, content, content_hash, status, \
             receipt_status, send_time FROM im_private_message",
        );
        match self.backend {
            Backend::Postgres => {
                self.push_key_bound(out.reborrow(), " WHERE ", ") > (", &self.above)?;
                self.push_key_bound(out.reborrow(), " AND ", ") <= (", &self.up_to)?;
            }
            Backend::Sqlite | Backend::Mysql => {
                let (before, after) =
                    if self.backend == Backend::Sqlite { (" INDEXED BY ", "") } else { (" FORCE INDEX (", ")") };
                for part in [before, self.index.name, after, " WHERE"] {
                    out.push_sql(part);
                }
                for (column, value) in self.index.columns.iter().zip(&self.key) {
                    for part in [" ", *column, " = "] {
                        out.push_sql(part);
                    }
                    out.push_bind_param::<BigInt, _>(&value.0)?;
                    out.push_sql(" AND");
                }
                out.push_sql(" id > ");
                out.push_bind_param::<BigInt, _>(&self.above.0)?;
                out.push_sql(" AND id <= ");
                out.push_bind_param::<BigInt, _>(&self.up_to.0)?;
            }
        }
        if let Some(number) = &self.without_type {
            out.push_sql(" AND type <> ");
            out.push_bind_param::<Integer, _>(number)?;
        }
        self.push_order(out.reborrow());
        out.push_sql(" LIMIT ");
        out.push_bind_param::<BigInt, _>(&self.limit)?;
        if self.backend == Backend::Sqlite {
            // A bare parameter makes SQLite plan anew for every value, which is every time.
            out.push_sql(" + 0");
        }
        Ok(())
    }
}

impl Walk {
    /// `(columns…, id) > (values…, id)`: with equal values on both sides of the range it means the same as equality.
    fn push_key_bound<'b, DB>(
        &'b self,
        mut out: AstPass<'_, 'b, DB>,
        start: &str,
        comparison: &str,
        id: &'b MessageId,
    ) -> QueryResult<()>
    where
        DB: DieselBackend + HasSqlType<BigInt>,
        i64: ToSql<BigInt, DB>,
    {
        out.push_sql(start);
        out.push_sql("(");
        for column in self.index.columns {
            out.push_sql(column);
            out.push_sql(", ");
        }
        out.push_sql("id");
        out.push_sql(comparison);
        for value in &self.key {
            out.push_bind_param::<BigInt, _>(&value.0)?;
            out.push_sql(", ");
        }
        out.push_bind_param::<BigInt, _>(&id.0)?;
        out.push_sql(")");
        Ok(())
    }

    fn push_order<DB: DieselBackend>(&self, mut out: AstPass<'_, '_, DB>) {
        let direction = if self.is_newest_first { " DESC" } else { "" };
        out.push_sql(" ORDER BY ");
        if self.backend == Backend::Postgres {
            for column in self.index.columns {
                for part in [*column, direction, ", "] {
                    out.push_sql(part);
                }
            }
        }
        out.push_sql("id");
        out.push_sql(direction);
    }
}
