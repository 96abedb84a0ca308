//! A connection of the test's own beside those of the server: it holds locks, and looks at the tables.

use diesel::connection::SimpleConnection;
use diesel::sql_types::BigInt;
use diesel::{Connection, QueryableByName, RunQueryDsl};
use mysql_async::prelude::Queryable;

/// Panics where the database says no.
pub enum SecondConnection {
    Sqlite(diesel::SqliteConnection),
    Postgres(tokio_postgres::Client),
    Mysql(mysql_async::Conn),
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

impl SecondConnection {
    pub async fn open(url: &str) -> SecondConnection {
        if let Some(path) = url.strip_prefix("sqlite://") {
            let mut connection = diesel::SqliteConnection::establish(path).unwrap();
            connection.batch_execute("PRAGMA busy_timeout = 20000").unwrap();
            return SecondConnection::Sqlite(connection);
        }
        if url.starts_with("mysql") {
            return SecondConnection::Mysql(mysql_async::Conn::from_url(url).await.unwrap());
        }
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        // Ends with the client.
        tokio::spawn(connection);
        SecondConnection::Postgres(client)
    }

    pub async fn execute(&mut self, sql: &str) {
        match self {
            SecondConnection::Sqlite(connection) => connection.batch_execute(sql).unwrap(),
            SecondConnection::Postgres(client) => client.batch_execute(sql).await.unwrap(),
            SecondConnection::Mysql(connection) => connection.query_drop(sql).await.unwrap(),
        }
    }

    /// The one integer of a query that calls it `number`.
    pub async fn number(&mut self, sql: &str) -> i64 {
        match self {
            SecondConnection::Sqlite(connection) => {
                diesel::sql_query(sql).get_result::<Number>(connection).unwrap().number
            }
            SecondConnection::Postgres(client) => client.query_one(sql, &[]).await.unwrap().get(0),
            SecondConnection::Mysql(connection) => connection.query_first(sql).await.unwrap().unwrap(),
        }
    }

    /// How many rows of a table fulfil a condition.
    pub async fn count(&mut self, table: &str, condition: &str) -> i64 {
        self.number(&format!("SELECT COUNT(*) AS number FROM {table} WHERE {condition}")).await
    }

    /// Begins a transaction and takes the lock without which no command commits: a counter row, or all of SQLite.
    pub async fn hold_counter(&mut self, name: &str) {
        match self {
            SecondConnection::Sqlite(_) => self.execute("BEGIN IMMEDIATE").await,
            _ => {
                self.execute("START TRANSACTION").await;
                self.lock_counter(name).await;
            }
        }
    }

    /// Takes the lock of a counter row in the transaction that runs (not for SQLite).
    pub async fn lock_counter(&mut self, name: &str) {
        self.number(&format!("SELECT value AS number FROM im_sequence WHERE name = '{name}' FOR UPDATE")).await;
    }

    /// Ends the transaction of [`SecondConnection::hold_counter`].
    pub async fn release(&mut self) {
        self.execute("ROLLBACK").await;
    }
}
