//! The arrows between the layers, and the form of files (`design.md` section 9): what the compiler does not check.
//!
//! A violation is told as `file:line: what is wrong`. Code in `#[cfg(test)]` modules may reach anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};

/// What each layer may name of this crate besides itself. Files directly in `src` put the parts together and may name
/// all of them.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("protocol", &["domain"]),
    ("db", &["domain"]),
    ("service", &["db", "domain", "protocol", "config", "error"]),
    ("actors", &["service", "db", "domain", "protocol", "clock", "config", "error", "health"]),
    (
        "http",
        &["actors", "service", "storage", "domain", "protocol", "clock", "config", "error", "health", "telemetry"],
    ),
    ("client", &["domain", "protocol"]),
    ("load", &["client", "domain", "protocol", "process"]),
];
/// The only actors that hold connections, and all that they need of `db`: the connection, its counters, and what an
/// error means. No table, no query.
const CONNECTION_ACTORS: [&str; 2] = ["src/actors/db_writer/", "src/actors/db_reader.rs"];
const CONNECTION_ITEMS: [&str; 6] =
    ["Db", "connect", "sequence", "is_unique_violation", "is_connection_lost", "no_answer"];
/// Layers that run without an actor system.
const NO_ACTIX: [&str; 4] = ["domain", "protocol", "db", "service"];
/// Ways to write SQL that need no string.
const SQL_NAMES: [&str; 6] = ["sql_query", "run_text", "RunQueryDsl", "db::schema", "on_backend", "insert_new_rows"];
const SQL_VERBS: [&str; 12] = [
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    "DELETE ",
    "CREATE ",
    "DROP ",
    "ALTER ",
    "BEGIN",
    "START TRANSACTION",
    "SAVEPOINT",
    "COMMIT",
    "ROLLBACK",
];
const MAX_LINES: usize = 400;

/// One source file, its path relative to the package.
struct File {
    path: String,
    text: String,
}

impl File {
    /// Its lines with their numbers, without comments and without the test modules at its end.
    fn code(&self) -> Vec<(usize, &str)> {
        if self.path.ends_with("/tests.rs") || self.path.starts_with("tests/") {
            return Vec::new();
        }
        let lines = self.text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate();
        lines
            .map(|(index, line)| (index + 1, line.split_once("//").map_or(line, |(code, _)| code)))
            .filter(|(_, line)| !line.trim().is_empty())
            .collect()
    }

    /// The folder or file of `src` that it belongs to.
    fn layer(&self) -> &str {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        inside.split_once('/').map_or(inside, |(layer, _)| layer)
    }

    fn complain(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut folders = vec![root.join("src"), root.join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.push(File { path, text });
            }
        }
    }
    assert!(files.len() > 50, "the sources were not found");
    files
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// What follows every `marker` of a line that stands at the beginning of a path.
fn after<'a>(line: &'a str, marker: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(marker).filter_map(move |(index, _)| {
        let before = line[..index].chars().next_back();
        let starts = !before.is_some_and(|character| is_of_name(character) || character == ':');
        starts.then(|| &line[index + marker.len()..])
    })
}

fn name(path: &str) -> &str {
    path.split(|character| !is_of_name(character)).next().unwrap_or_default()
}

/// A layer names only what its arrows allow, by paths that begin with `crate::`.
fn check_arrows(file: &File) -> Vec<String> {
    let Some((layer, allowed)) = ARROWS.iter().find(|(layer, _)| *layer == file.layer()) else { return Vec::new() };
    // `src/http/users.rs` is two modules deep, `src/http/mod.rs` one.
    let depth = file.path.split('/').filter(|part| *part != "src" && *part != "mod.rs").count();
    let mut found = Vec::new();
    for (number, line) in file.code() {
        for path in after(line, "crate::") {
            let target = name(path);
            if target.is_empty() {
                found.push(file.complain(number, "one layer a `use`, so that the arrow can be seen"));
            } else if target != *layer && !allowed.contains(&target) {
                found.push(file.complain(number, format!("{layer} must not know {target}")));
            }
        }
        for path in after(line, "super::") {
            let ups = 1 + path.match_indices("super::").take_while(|(index, _)| index % 7 == 0).count();
            if ups >= depth {
                found.push(file.complain(number, format!("leaves {layer} by `super`; write `crate::`")));
            }
        }
    }
    found
}

/// Every statement is in `src/db`; others know diesel's results and errors, and only the DB actors a connection.
fn check_sql(file: &File) -> Vec<String> {
    if !file.path.starts_with("src/") || file.layer() == "db" {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in file.code() {
        for path in after(line, "diesel::") {
            if !matches!(name(path), "result" | "QueryResult") {
                found.push(file.complain(number, "diesel is for src/db"));
            }
        }
        let names = SQL_NAMES.iter().filter(|name| line.contains(*name));
        let verbs = SQL_VERBS.iter().filter(|verb| line.contains(&format!("\"{verb}")));
        found.extend(names.chain(verbs).map(|sql| file.complain(number, format!("SQL outside src/db: {sql}"))));
        if file.layer() == "actors" {
            found.extend(check_connection(file, number, line));
        }
    }
    found
}

fn check_connection(file: &File, number: usize, line: &str) -> Vec<String> {
    let may_connect = CONNECTION_ACTORS.iter().any(|path| file.path.starts_with(path));
    let mut found = Vec::new();
    for path in after(line, "crate::db::") {
        let items = match path.strip_prefix('{') {
            Some(items) => {
                items.split('}').next().unwrap_or_default().split(',').map(|item| name(item.trim())).collect()
            }
            None => vec![name(path)],
        };
        let forbidden = items.into_iter().filter(|item| !may_connect || !CONNECTION_ITEMS.contains(item));
        found.extend(forbidden.map(|item| file.complain(number, format!("an actor must not know db::{item}"))));
    }
    found
}

/// `actix_web_actors` stays behind the guarded module, and actors out of the layers below them. Services hand over
/// payloads and frames; how a socket ends is not theirs.
fn check_actors(file: &File) -> Vec<String> {
    let is_transport = file.path.starts_with("src/actors/transport/");
    let mut found = Vec::new();
    for (number, line) in file.code() {
        if line.contains("actix_web_actors") && !is_transport {
            found.push(file.complain(number, "actix_web_actors is for src/actors/transport"));
        }
        if line.contains("actix") && NO_ACTIX.contains(&file.layer()) {
            found.push(file.complain(number, format!("{} must not know actix", file.layer())));
        }
        if line.contains("protocol::close") && file.layer() == "service" {
            found.push(file.complain(number, "a service closes no socket"));
        }
    }
    found
}

fn check_form(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    if !file.text.starts_with("//! ") {
        found.push(file.complain(1, "a file opens with `//!`: what it is for, and what not"));
    }
    let lines = file.text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    if lines > MAX_LINES {
        found.push(file.complain(MAX_LINES + 1, format!("{lines} lines; at most {MAX_LINES}, without tests")));
    }
    found
}

fn assert_none(check: fn(&File) -> Vec<String>) {
    let found: Vec<String> = files().iter().flat_map(check).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn layers_know_only_what_is_below_them() {
    assert_none(check_arrows);
}

#[test]
fn every_statement_is_in_the_database_layer() {
    assert_none(check_sql);
}

#[test]
fn sockets_and_actors_stay_where_they_belong() {
    assert_none(check_actors);
}

#[test]
fn files_say_what_they_are_for_and_stay_small() {
    assert_none(check_form);
}

/// Each check is shown what it must find: one that finds nothing proves nothing.
#[test]
fn violations_are_found_with_file_and_line() {
    let long = format!("//! Long.\n{}", "\n".repeat(MAX_LINES));
    type Case<'a> = (fn(&File) -> Vec<String>, &'a str, &'a str, &'a str);
    let cases: &[Case<'_>] = &[
        (check_arrows, "src/service/a.rs", "\nuse crate::actors::Registry;", "src/service/a.rs:2: "),
        (check_arrows, "src/domain/a.rs", "fn f() { crate::db::f(); }", "src/domain/a.rs:1: "),
        (check_arrows, "src/http/a.rs", "use crate::db::Db;", "src/http/a.rs:1: "),
        (check_arrows, "src/http/a.rs", "use super::super::db::Db;", "src/http/a.rs:1: "),
        (check_arrows, "src/http/mod.rs", "use super::db::Db;", "src/http/mod.rs:1: "),
        (check_arrows, "src/db/a.rs", "use crate::{domain::x, error::y};", "src/db/a.rs:1: "),
        (check_arrows, "src/client/a.rs", "use crate::config::Config;", "src/client/a.rs:1: "),
        (check_sql, "src/http/a.rs", "use diesel::prelude::*;", "src/http/a.rs:1: "),
        (check_sql, "src/service/a.rs", "db.run_text(x)", "src/service/a.rs:1: "),
        (check_sql, "src/server.rs", "let sql = \"SELECT 1\";", "src/server.rs:1: "),
        (check_sql, "src/actors/registry.rs", "use crate::db::Db;", "src/actors/registry.rs:1: "),
        (check_sql, "src/actors/db_reader.rs", "use crate::db::{Db, users};", "src/actors/db_reader.rs:1: "),
        (check_actors, "src/actors/a.rs", "use actix_web_actors::ws;", "src/actors/a.rs:1: "),
        (check_actors, "src/service/a.rs", "use actix::Actor;", "src/service/a.rs:1: "),
        (check_actors, "src/service/a.rs", "use crate::protocol::close::X;", "src/service/a.rs:1: "),
        (check_form, "src/a.rs", "/// Item.", "src/a.rs:1: "),
        (check_form, "tests/a.rs", &long, "tests/a.rs:401: "),
    ];
    for (check, path, text, expected) in cases {
        let found = check(&File { path: path.to_string(), text: text.to_string() });
        assert!(found.len() == 1 && found[0].starts_with(expected), "{path} {text:?}: {found:?}");
    }
}

#[test]
fn what_is_allowed_is_not_found() {
    let cases = [
        ("src/http/a.rs", "//! A.\nuse super::AppState;\nuse crate::service::Tx; // not crate::db\n"),
        ("src/domain/content/a.rs", "//! A.\nuse super::super::ids::UserId;\n"),
        ("src/actors/db_writer/a.rs", "//! A.\nuse crate::db::{Db, sequence};\nuse diesel::result::Error;\n"),
        ("src/service/a.rs", "//! A.\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::actors::X;\n}\n"),
    ];
    for (path, text) in cases {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let found: Vec<_> =
            [check_arrows, check_sql, check_actors, check_form].iter().flat_map(|check| check(&file)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
}
