//! The tables behind a server: changed and looked at directly, for what no endpoint does or shows.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text};
use nudge::db::connect::{Role, Source};
use nudge::db::{Db, RunQueryDsl};

/// Tables that hold what people have; counters and writers are not among them.
pub const TABLES: &[&str] = &[
    "system_users",
    "system_oauth2_refresh_token",
    "system_oauth2_access_token",
    "system_user_permission",
    "im_friend",
    "im_friend_request",
    "im_private_message",
    "im_conversation_read",
    "im_group",
    "im_group_member",
    "im_group_member_span",
    "im_group_message",
    "im_group_request",
    "im_sensitive_word",
    "infra_file",
    "im_device_position",
];

/// A connection beside those of the server.
pub async fn open(url: &str) -> Db {
    Source::parse(&url.to_owned().into()).unwrap().connect(Role::Writer).await.unwrap()
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// The rows of a query with one text column, `line`.
pub async fn lines(db: &mut Db, sql: &str) -> Vec<String> {
    let rows: Vec<Line> = RunQueryDsl::load(diesel::sql_query(sql), db).await.unwrap();
    rows.into_iter().map(|row| row.line).collect()
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// The one row of a query with one integer column, `number`.
pub async fn number(db: &mut Db, sql: &str) -> i64 {
    let row: Number = RunQueryDsl::get_result(diesel::sql_query(sql), db).await.unwrap();
    row.number
}

/// Rows of each table, with the newest change where the table notes it: equal before and after means untouched.
pub async fn fingerprint(url: &str) -> Vec<(&'static str, i64, i64)> {
    let mut db = open(url).await;
    let mut found = Vec::new();
    for table in TABLES.iter().copied() {
        // A token that a test has let expire is removed by the server in time.
        let rows = if table == "system_oauth2_access_token" { "WHERE expires_time > 1" } else { "" };
        let count = number(&mut db, &format!("SELECT COUNT(*) AS number FROM {table} {rows}")).await;
        let has_stamp = matches!(
            table,
            "system_users"
                | "im_friend"
                | "im_friend_request"
                | "im_conversation_read"
                | "im_group"
                | "im_group_member"
                | "im_group_request"
                | "im_sensitive_word"
        );
        let newest = if has_stamp { "MAX(update_time)" } else { "0" };
        let newest = format!("SELECT COALESCE({newest}, 0) AS number FROM {table}");
        let newest = if has_stamp { number(&mut db, &newest).await } else { 0 };
        found.push((table, count, newest));
    }
    found
}
