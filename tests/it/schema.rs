//! The schema is one: the same tables, columns and indexes on the three databases and in `src/db/schema.rs`, and every
//! migration can be undone.

use std::collections::BTreeSet;

use nudge::db::connect::Source;
use nudge::db::migrate::{migrate, revert_all};

use crate::support::app::SCHEMA;
use crate::support::databases::{Backend, TestDatabase, on_every_database};
use crate::support::tables::{TABLES, lines, open};

on_every_database! {
    columns_are_those_that_diesel_knows,
    state_tables_are_indexed_for_their_pulls,
    migrations_go_up_down_and_up_again,
}

/// A line for each column: table, name, kind as diesel says it, and whether it may be null.
const SQLITE_COLUMNS: &str = "SELECT m.name || ' ' || p.name || ' ' || \
     CASE WHEN p.pk > 0 AND p.type = 'INTEGER' THEN 'BIGINT' ELSE p.type END || ' ' || \
     CASE WHEN p.\"notnull\" THEN 'never null' ELSE 'nullable' END AS line \
     FROM sqlite_schema m JOIN pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite~_%' ESCAPE '~'";
const POSTGRES_COLUMNS: &str = "SELECT (table_name || ' ' || column_name || ' ' || data_type || ' ' || \
     CASE is_nullable WHEN 'NO' THEN 'never null' ELSE 'nullable' END)::text AS line \
     FROM information_schema.columns WHERE table_schema = 'public'";
const MYSQL_COLUMNS: &str = "SELECT CONCAT(table_name, ' ', column_name, ' ', \
     IF(column_type = 'tinyint(1)', 'boolean', data_type), ' ', \
     IF(is_nullable = 'NO', 'never null', 'nullable')) AS line \
     FROM information_schema.columns WHERE table_schema = DATABASE()";

/// A line for each index: table, name (`primary` for the primary key), whether it is unique, and its columns in order.
const SQLITE_INDEXES: &str = "SELECT m.name || ' primary unique ' || \
     (SELECT group_concat(p.name ORDER BY p.pk) FROM pragma_table_info(m.name) p WHERE p.pk > 0) AS line \
     FROM sqlite_schema m WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite~_%' ESCAPE '~' \
     UNION ALL SELECT m.name || ' ' || i.name || CASE WHEN i.\"unique\" THEN ' unique ' ELSE ' plain ' END || \
     (SELECT group_concat(c.name ORDER BY c.seqno) FROM pragma_index_info(i.name) c) \
     FROM sqlite_schema m JOIN pragma_index_list(m.name) i WHERE m.type = 'table' AND i.origin <> 'pk'";
const POSTGRES_INDEXES: &str = "SELECT (t.relname || ' ' || \
     CASE WHEN x.indisprimary THEN 'primary' ELSE i.relname END || \
     CASE WHEN x.indisunique THEN ' unique ' ELSE ' plain ' END || \
     (SELECT string_agg(a.attname, ',' ORDER BY k.position) FROM unnest(x.indkey) WITH ORDINALITY k (number, position) \
     JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number))::text AS line \
     FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid \
     JOIN pg_namespace n ON n.oid = t.relnamespace WHERE n.nspname = 'public'";
const MYSQL_INDEXES: &str = "SELECT CONCAT(table_name, ' ', LOWER(index_name), IF(MIN(non_unique) = 0, ' unique ', ' plain '), \
     GROUP_CONCAT(column_name ORDER BY seq_in_index)) AS line \
     FROM information_schema.statistics WHERE table_schema = DATABASE() GROUP BY table_name, index_name";

/// What a database says about itself, in the words of diesel.
#[derive(Debug, PartialEq)]
struct Schema {
    columns: BTreeSet<String>,
    indexes: BTreeSet<String>,
}

async fn read_schema(database: &TestDatabase) -> Schema {
    let mut db = open(&database.url).await;
    let (columns, indexes) = match database.backend {
        Backend::Sqlite => (SQLITE_COLUMNS, SQLITE_INDEXES),
        Backend::Postgres => (POSTGRES_COLUMNS, POSTGRES_INDEXES),
        Backend::Mysql => (MYSQL_COLUMNS, MYSQL_INDEXES),
    };
    let is_ours = |line: &String| !line.starts_with("__diesel_schema_migrations ");
    let columns = lines(&mut db, columns).await.into_iter().filter(is_ours).map(|line| in_words_of_diesel(&line));
    Schema { columns: columns.collect(), indexes: lines(&mut db, indexes).await.into_iter().filter(is_ours).collect() }
}

/// Replaces the database's name of a type, the third word.
fn in_words_of_diesel(line: &str) -> String {
    let [table, column, kind, null] = line.splitn(4, ' ').collect::<Vec<_>>().try_into().unwrap();
    let kind = match kind.to_lowercase().as_str() {
        "bigint" => "BigInt",
        "integer" | "int" => "Integer",
        "boolean" => "Bool",
        // Key strings are VARBINARY on MySQL: compared byte for byte and without padding.
        "text" | "varchar" | "mediumtext" | "varbinary" => "Text",
        "bytea" | "blob" | "binary" => "Binary",
        other => panic!("{line}: what is {other}?"),
    };
    format!("{table} {column} {kind} {null}")
}

/// The columns in `src/db/schema.rs`, in the same form.
fn diesel_columns() -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    let (mut table, mut sql_name) = (None, None);
    for line in include_str!("../../src/db/schema.rs").lines().map(str::trim) {
        if let Some((name, _)) = line.strip_suffix(") {").and_then(|head| head.split_once(" (")) {
            table = Some(name.to_owned());
        } else if let Some(name) = line.strip_prefix("#[sql_name = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            sql_name = Some(name.to_owned());
        } else if let Some((name, kind)) = line.strip_suffix(',').and_then(|line| line.split_once(" -> ")) {
            let name = sql_name.take().unwrap_or_else(|| name.to_owned());
            let nullable = kind.strip_prefix("Nullable<").and_then(|kind| kind.strip_suffix('>'));
            let null = if nullable.is_some() { "nullable" } else { "never null" };
            columns.insert(format!("{} {name} {} {null}", table.as_deref().unwrap(), nullable.unwrap_or(kind)));
        }
    }
    columns
}

async fn columns_are_those_that_diesel_knows(backend: Backend) {
    let database = TestDatabase::create(backend, SCHEMA).await;
    let known = diesel_columns();
    assert!(known.contains("im_private_message type Integer never null"), "{known:?}");
    assert_eq!(read_schema(&database).await.columns, known);
}

#[actix_web::test]
async fn the_three_databases_have_one_schema() {
    let mut schemas = Vec::new();
    for backend in Backend::ALL {
        schemas.push(read_schema(&TestDatabase::create(backend, SCHEMA).await).await);
    }
    assert!(schemas[0].indexes.contains("im_friend uk_im_friend unique user_id,friend_user_id"), "{schemas:?}");
    assert_eq!(schemas[0], schemas[1]);
    assert_eq!(schemas[0], schemas[2]);
}

/// Whoever pulls states asks "mine, after (update time, id)": each owner needs an index that begins so.
async fn state_tables_are_indexed_for_their_pulls(backend: Backend) {
    let database = TestDatabase::create(backend, SCHEMA).await;
    let schema = read_schema(&database).await;
    let stamped = schema.columns.iter().filter_map(|line| line.strip_suffix(" update_time BigInt never null"));
    let state_tables: Vec<&str> = stamped.filter(|table| table.starts_with("im_")).collect();
    let expected = [
        "im_conversation_read",
        "im_friend",
        "im_friend_request",
        "im_group",
        "im_group_member",
        "im_group_request",
        "im_sensitive_word",
    ];
    assert_eq!(state_tables, expected);
    for table in state_tables {
        let owners: &[&str] = match table {
            "im_friend_request" => &["from_user_id", "to_user_id"],
            "im_group_request" => &["group_id"],
            // Read by id, as part of the list of a user's groups.
            "im_group" => &[],
            // Read as a whole.
            "im_sensitive_word" => &[],
            _ => &["user_id"],
        };
        for owner in owners {
            let columns = format!("{owner},update_time,id");
            let of_table = |line: &&String| line.split(' ').next() == Some(table);
            let found = schema.indexes.iter().filter(of_table).any(|line| {
                line.rsplit(' ')
                    .next()
                    .is_some_and(|index| index == columns || index.starts_with(&format!("{columns},")))
            });
            assert!(found, "{table} has no index on ({columns}): {:?}", schema.indexes);
        }
    }
}

async fn migrations_go_up_down_and_up_again(backend: Backend) {
    let database = TestDatabase::create(backend, SCHEMA).await;
    let source = Source::parse(&database.url.clone().into()).unwrap();
    let first = read_schema(&database).await;
    let tables: BTreeSet<&str> = first.columns.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(tables, TABLES.iter().copied().chain(["im_sequence"]).collect(), "TABLES in support names them all");

    revert_all(&source).await.unwrap();
    let empty = Schema { columns: BTreeSet::new(), indexes: BTreeSet::new() };
    assert_eq!(read_schema(&database).await, empty, "a down.sql leaves something behind");

    assert!(!migrate(&source).await.unwrap().is_empty());
    assert_eq!(read_schema(&database).await, first);
    assert_eq!(migrate(&source).await.unwrap(), Vec::<String>::new(), "a second run finds nothing to do");
}
