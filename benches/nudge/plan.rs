//! How a database runs a statement, and how many rows it reads for it.

use diesel::QueryableByName;
use diesel::connection::SimpleConnection;
use diesel::sql_types::Text;
use mysql_async::prelude::Queryable;
use nudge::db::Backend;

use crate::databases::Database;

/// Lines of a plan above which it is shown in short.
const LONG_PLAN: usize = 8;

/// How the database runs a statement.
pub struct Plan {
    lines: Vec<String>,
    /// None where the database does not tell.
    pub rows_read: Option<u64>,
}

impl Plan {
    /// The plan on one line. Of a long one, each line once, with `N` for every number, and how often it is there.
    pub fn text(&self) -> String {
        if self.lines.len() <= LONG_PLAN {
            return self.lines.join("; ");
        }
        let mut counted: Vec<(String, usize)> = Vec::new();
        for line in self.lines.iter().map(|line| without_numbers(line)) {
            match counted.iter_mut().find(|(known, _)| *known == line) {
                Some((_, count)) => *count += 1,
                None => counted.push((line, 1)),
            }
        }
        let lines: Vec<String> = counted.into_iter().map(|(line, count)| format!("{count} x {line}")).collect();
        lines.join("; ")
    }
}

fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for c in line.chars().map(|c| if c.is_ascii_digit() { 'N' } else { c }) {
        if c != 'N' || !text.ends_with('N') {
            text.push(c);
        }
    }
    text
}

pub async fn explain(database: &Database, sql: &str) -> anyhow::Result<Plan> {
    match database.backend {
        Backend::Sqlite => explain_sqlite(database, sql),
        Backend::Postgres => explain_postgres(&database.url, sql).await,
        Backend::Mysql => explain_mysql(&database.url, sql).await,
    }
}

#[derive(QueryableByName)]
struct Step {
    #[diesel(sql_type = Text)]
    detail: String,
}

fn explain_sqlite(database: &Database, sql: &str) -> anyhow::Result<Plan> {
    use diesel::{Connection, RunQueryDsl};
    let path = database.url.trim_start_matches("sqlite://");
    let mut connection = diesel::SqliteConnection::establish(path)?;
    connection.batch_execute("PRAGMA query_only = ON")?;
    let steps: Vec<Step> = diesel::sql_query(format!("EXPLAIN QUERY PLAN {sql}")).load(&mut connection)?;
    let steps: Vec<String> = steps.into_iter().map(|step| step.detail).collect();
    Ok(Plan { lines: steps, rows_read: None })
}

async fn explain_postgres(url: &str, sql: &str) -> anyhow::Result<Plan> {
    // The settings of our connections.
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    actix_web::rt::spawn(connection);
    client.batch_execute("SET enable_bitmapscan = off; SET enable_incremental_sort = off").await?;
    let answer = client.simple_query(&format!("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) {sql}")).await?;
    let mut lines = Vec::new();
    let mut read = 0;
    let mut loops = 1;
    for message in answer {
        let tokio_postgres::SimpleQueryMessage::Row(row) = message else { continue };
        let line = row.get(0).unwrap_or_default().trim().to_owned();
        let number_after = |mark: &str| -> u64 {
            let tail = line.split_once(mark).map_or("", |(_, tail)| tail);
            tail.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse().unwrap_or(0)
        };
        if line.contains("loops=") {
            loops = number_after("loops=");
        }
        // A scan of a table; the numbers are means of the loops.
        if line.contains(" Scan ") && line.contains(" on im_") {
            read += number_after("actual rows=") * loops;
        }
        if line.starts_with("Rows Removed") {
            read += number_after(": ") * loops;
        }
        lines.push(line);
    }
    lines.retain(|line| !line.starts_with("Planning") && !line.starts_with("Execution"));
    Ok(Plan { lines, rows_read: Some(read) })
}

async fn explain_mysql(url: &str, sql: &str) -> anyhow::Result<Plan> {
    let mut connection = mysql_async::Conn::new(mysql_async::Opts::from_url(url)?).await?;
    connection.query_drop("FLUSH STATUS").await?;
    connection.query_drop(sql).await?;
    let counters: Vec<(String, u64)> = connection.query("SHOW SESSION STATUS LIKE 'Handler_%'").await?;
    let sum = |prefix: &str| counters.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, count)| count).sum();
    // Index entries that a condition rejects inside the engine are counted as attempts only.
    let read: u64 = u64::max(sum("Handler_read"), sum("Handler_icp_attempts"));
    let plan: Vec<mysql_async::Row> = connection.query(format!("EXPLAIN {sql}")).await?;
    let column = |row: &mysql_async::Row, name: &str| -> String {
        row.get_opt::<Option<String>, _>(name).and_then(Result::ok).flatten().unwrap_or_default()
    };
    let lines: Vec<String> = plan
        .iter()
        .map(|row| format!("{} by {}, {}", column(row, "type"), column(row, "key"), column(row, "Extra")))
        .collect();
    connection.disconnect().await?;
    Ok(Plan { lines, rows_read: Some(read) })
}
