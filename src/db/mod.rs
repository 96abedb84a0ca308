//! The database layer: every SQL statement of the server, written once for SQLite, PostgreSQL and MySQL/MariaDB.
//!
//! [`Db`] is one connection to whichever database is configured; [`RunQueryDsl`] runs a diesel query on it. The
//! methods demand that the query is valid on all three, so SQL that one of them lacks does not compile. This module
//! and [`connect`] are the only ones that know the backends; the other files hold one table's statements each.

pub mod connect;
pub mod conversation_reads;
pub mod device_positions;
pub mod files;
pub mod friend_requests;
pub mod friends;
pub mod group_members;
pub mod group_messages;
pub mod group_requests;
pub mod group_spans;
pub mod groups;
pub mod migrate;
pub mod page;
mod pairs;
pub mod permissions;
pub mod private_messages;
pub mod schema;
pub mod sensitive_words;
pub mod sequence;
pub mod statistics;
pub mod tokens;
pub mod unread;
pub mod users;

use std::error::Error as StdError;
use std::future::{Future, ready};
use std::sync::Arc;

use diesel::dsl::Limit;
use diesel::query_builder::QueryId;
use diesel::query_dsl::methods::LimitDsl;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sqlite::{Sqlite, SqliteConnection};
use diesel::{QueryResult, Selectable};
use diesel_async::methods::{ExecuteDsl, LoadQuery};
use diesel_async::sync_connection_wrapper::{SpawnBlocking, SyncConnectionWrapper};
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection, SimpleAsyncConnection};
use futures_util::future::BoxFuture;

/// Runs SQLite on the calling thread: each DB actor has a thread of its own, and a hop to a blocking pool for every
/// statement costs more than the statement (`db-notes` measured 1.6 to 5 times).
pub struct Inline;

impl SpawnBlocking for Inline {
    fn spawn_blocking<'a, R: Send + 'static>(
        &mut self,
        task: impl FnOnce() -> R + Send + 'static,
    ) -> BoxFuture<'a, Result<R, Box<dyn StdError + Send + Sync>>> {
        Box::pin(ready(Ok(task())))
    }

    fn get_runtime() -> Self {
        Inline
    }
}

pub type SqliteConn = SyncConnectionWrapper<SqliteConnection, Inline>;

/// The connection of one backend.
#[allow(clippy::large_enum_variant, reason = "there are a handful of connections, and they are not moved in bulk")]
pub enum Connection {
    Sqlite(SqliteConn),
    Postgres(AsyncPgConnection),
    Mysql(AsyncMysqlConnection),
}

/// Called before every statement of a connection. Tests use it to commit something between two statements of a read;
/// the server never sets one.
pub type StatementHook = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// One connection to the configured database.
pub struct Db {
    pub(crate) connection: Connection,
    hook: Option<StatementHook>,
}

/// Which database a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
    Mysql,
}

/// Evaluates one expression with the connection of the backend in use.
macro_rules! on_backend {
    ($db:expr, $conn:ident => $body:expr) => {
        match &mut $db.connection {
            $crate::db::Connection::Sqlite($conn) => $body,
            $crate::db::Connection::Postgres($conn) => $body,
            $crate::db::Connection::Mysql($conn) => $body,
        }
    };
}
pub(crate) use on_backend;

/// Inserts many rows and skips those whose key exists already; the number of rows that were new. One statement, and on
/// SQLite, where there is no round trip to save, the same prepared one for each row: a statement for all of them would
/// be made anew for every number of rows.
///
/// Rows must be valid: MySQL's `INSERT IGNORE` turns other errors into warnings as well. Their type must say
/// `treat_none_as_default_value = false`, otherwise statements depend on what is absent and are not kept prepared.
macro_rules! insert_new_rows {
    ($db:expr, $table:expr, $rows:expr) => {{
        $db.before_statement().await;
        match &mut $db.connection {
            $crate::db::Connection::Sqlite(conn) => {
                let rows = $rows.to_vec();
                conn.spawn_blocking(move |conn| {
                    let mut count = 0;
                    for row in &rows {
                        count += diesel::RunQueryDsl::execute(diesel::insert_or_ignore_into($table).values(row), conn)?;
                    }
                    Ok(count)
                })
                .await
            }
            $crate::db::Connection::Postgres(conn) => {
                let insert = diesel::insert_into($table).values($rows).on_conflict_do_nothing();
                diesel_async::RunQueryDsl::execute(insert, conn).await
            }
            $crate::db::Connection::Mysql(conn) => {
                let insert = diesel::insert_or_ignore_into($table).values($rows);
                diesel_async::RunQueryDsl::execute(insert, conn).await
            }
        }
    }};
}
pub(crate) use insert_new_rows;

/// A query that every backend can load.
pub trait Load<'q, U>:
    LoadQuery<'q, SqliteConn, U> + LoadQuery<'q, AsyncPgConnection, U> + LoadQuery<'q, AsyncMysqlConnection, U> + Send + 'q
{
}

impl<'q, U, Q> Load<'q, U> for Q where
    Q: LoadQuery<'q, SqliteConn, U>
        + LoadQuery<'q, AsyncPgConnection, U>
        + LoadQuery<'q, AsyncMysqlConnection, U>
        + Send
        + 'q
{
}

/// A statement that every backend can execute.
pub trait Execute:
    ExecuteDsl<SqliteConn> + ExecuteDsl<AsyncPgConnection> + ExecuteDsl<AsyncMysqlConnection> + Send
{
}

impl<Q> Execute for Q where
    Q: ExecuteDsl<SqliteConn> + ExecuteDsl<AsyncPgConnection> + ExecuteDsl<AsyncMysqlConnection> + Send
{
}

/// diesel's run methods, for [`Db`]. Each is one statement.
pub trait RunQueryDsl: Sized {
    /// All rows.
    fn load<'q, U: Send + 'q>(self, db: &mut Db) -> impl Future<Output = QueryResult<Vec<U>>> + Send
    where
        Self: Load<'q, U>,
    {
        async move {
            db.before_statement().await;
            on_backend!(db, conn => diesel_async::RunQueryDsl::load(self, conn).await)
        }
    }

    /// The first row of a query that gives at least one, as aggregates do.
    fn get_result<'q, U: Send + 'q>(self, db: &mut Db) -> impl Future<Output = QueryResult<U>> + Send
    where
        Self: Load<'q, U>,
    {
        async move {
            db.before_statement().await;
            on_backend!(db, conn => diesel_async::RunQueryDsl::get_result(self, conn).await)
        }
    }

    /// The first row, with `LIMIT 1`.
    fn first<'q, U: Send + 'q>(self, db: &mut Db) -> impl Future<Output = QueryResult<U>> + Send
    where
        Self: LimitDsl + Send,
        Limit<Self>: Load<'q, U>,
    {
        async move {
            db.before_statement().await;
            let query = LimitDsl::limit(self, 1);
            on_backend!(db, conn => diesel_async::RunQueryDsl::get_result(query, conn).await)
        }
    }

    /// Runs a statement; the number of rows it matched.
    fn execute(self, db: &mut Db) -> impl Future<Output = QueryResult<usize>> + Send
    where
        Self: Execute,
    {
        async move {
            db.before_statement().await;
            on_backend!(db, conn => diesel_async::RunQueryDsl::execute(self, conn).await)
        }
    }
}

// Not for every type: a blanket impl would make `load` of atomics ambiguous wherever the trait is imported.
impl<Q: QueryId> RunQueryDsl for Q {}

/// The columns of a `Selectable`, not tied to one backend as diesel's `as_select()` is.
pub trait Columns: Selectable<Sqlite> {
    fn columns() -> Self::SelectExpression {
        Self::construct_selection()
    }
}

impl<T: Selectable<Sqlite>> Columns for T {}

impl Db {
    pub(crate) fn new(connection: Connection, hook: Option<StatementHook>) -> Db {
        Db { connection, hook }
    }

    pub fn backend(&self) -> Backend {
        match self.connection {
            Connection::Sqlite(_) => Backend::Sqlite,
            Connection::Postgres(_) => Backend::Postgres,
            Connection::Mysql(_) => Backend::Mysql,
        }
    }

    pub(crate) async fn before_statement(&mut self) {
        if let Some(hook) = self.hook.clone() {
            hook().await;
        }
    }

    /// Runs SQL text without parameters (and on PostgreSQL without a prepare round trip).
    pub async fn run_text(&mut self, sql: &str) -> QueryResult<()> {
        self.before_statement().await;
        on_backend!(self, conn => conn.batch_execute(sql).await)
    }

    /// Begins a transaction. SQLite takes its write lock at once: a deferred one that reads first can fail with
    /// "database is locked" when it comes to write, whatever the busy timeout.
    pub async fn begin(&mut self) -> QueryResult<()> {
        let sql = match self.backend() {
            Backend::Sqlite => "BEGIN IMMEDIATE",
            Backend::Postgres => "BEGIN",
            Backend::Mysql => "START TRANSACTION",
        };
        self.run_text(sql).await
    }

    pub async fn commit(&mut self) -> QueryResult<()> {
        self.run_text("COMMIT").await
    }

    pub async fn rollback(&mut self) -> QueryResult<()> {
        self.run_text("ROLLBACK").await
    }

    /// Begins a transaction that [`Db::commit_batch`] ends.
    pub async fn begin_batch(&mut self) -> QueryResult<()> {
        let sql = match self.backend() {
            Backend::Sqlite => "BEGIN IMMEDIATE",
            Backend::Postgres | Backend::Mysql => "START TRANSACTION; SAVEPOINT nudge_batch",
        };
        self.run_text(sql).await
    }

    /// Commits what [`Db::begin_batch`] began. Databases end a transaction by themselves after some errors. MariaDB still
    /// answers OK to COMMIT then, but the savepoint set first is gone. SQLite refuses COMMIT outside of a transaction; a
    /// savepoint would cost it a copy of every page that the batch changes. See [`Db::is_transaction_gone`].
    pub async fn commit_batch(&mut self) -> QueryResult<()> {
        let sql = match self.backend() {
            Backend::Sqlite => "COMMIT",
            Backend::Postgres | Backend::Mysql => "RELEASE SAVEPOINT nudge_batch; COMMIT",
        };
        self.run_text(sql).await
    }

    /// Whether an error of [`Db::commit_batch`] says that the transaction had ended by itself before: nothing was committed
    /// now, but later statements may have been, each by itself.
    pub fn is_transaction_gone(error: &Error) -> bool {
        let Error::DatabaseError(_, about) = error else { return false };
        let message = about.message().to_lowercase();
        // PostgreSQL and MariaDB name the savepoint that they miss.
        message.contains("savepoint") || message.contains("no transaction is active")
    }

    /// Sets the savepoint of one command; it must be released or rolled back before the next.
    pub async fn set_savepoint(&mut self) -> QueryResult<()> {
        self.run_text("SAVEPOINT nudge_command").await
    }

    pub async fn release_savepoint(&mut self) -> QueryResult<()> {
        self.run_text("RELEASE SAVEPOINT nudge_command").await
    }

    pub async fn rollback_to_savepoint(&mut self) -> QueryResult<()> {
        self.run_text("ROLLBACK TO SAVEPOINT nudge_command; RELEASE SAVEPOINT nudge_command").await
    }

    /// A round trip that proves the connection alive.
    pub async fn ping(&mut self) -> QueryResult<()> {
        self.run_text("SELECT 1").await
    }
}

/// Whether the error says that a unique key exists already; the transaction goes on after a savepoint rollback.
pub fn is_unique_violation(error: &Error) -> bool {
    matches!(error, Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _))
}

/// The error of a database that cannot be reached or does not answer.
pub fn no_answer() -> Error {
    let text = "the database does not answer".to_owned();
    Error::DatabaseError(DatabaseErrorKind::UnableToSendCommand, Box::new(text))
}

/// An index that ends with `id`, and the values of the columns before: where a walk along it begins.
struct Walk<'a> {
    table: &'a str,
    index: &'a str,
    key: &'a [(&'a str, i64)],
}

impl Walk<'_> {
    /// `table WHERE …` for the rows with this key and `above < id <= up_to`, read from this index and no other, whatever
    /// the planner thinks of it (`db::private_messages` tells why).
    fn rows(&self, backend: Backend, above: i64, up_to: i64) -> String {
        let Walk { table, index, key } = self;
        if backend == Backend::Postgres {
            let columns: String = key.iter().map(|(column, _)| format!("{column}, ")).collect();
            let values: String = key.iter().map(|(_, value)| format!("{value}, ")).collect();
            return format!("{table} WHERE ({columns}id) > ({values}{above}) AND ({columns}id) <= ({values}{up_to})");
        }
        let hint =
            if backend == Backend::Sqlite { format!("INDEXED BY {index}") } else { format!("FORCE INDEX ({index})") };
        let key: String = key.iter().map(|(column, value)| format!("{column} = {value} AND ")).collect();
        format!("{table} {hint} WHERE {key}id > {above} AND id <= {up_to}")
    }

    /// The order of the walk.
    fn order(&self, backend: Backend, is_newest_first: bool) -> String {
        let direction = if is_newest_first { " DESC" } else { "" };
        let key = if backend == Backend::Postgres { self.key } else { &[] };
        let columns: String = key.iter().map(|(column, _)| format!("{column}{direction}, ")).collect();
        format!("ORDER BY {columns}id{direction}")
    }
}
