//! Uploads and downloads (`contract/01` section 7): what goes in comes out, nothing that could run is shown, nothing
//! is left of what was refused.

use std::path::Path;

use nudge::config::{Config, FilesConfig};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, IF_NONE_MATCH, RANGE};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::app::{Person, Setup, TestApp, data, eventually};
use crate::support::databases::{Backend, on_every_database};
use crate::support::raw::{answer, code, visit};

on_every_database! {
    an_uploaded_file_is_downloaded_unchanged,
    only_pictures_are_shown_everything_else_is_saved,
    a_part_of_a_file_is_served,
    what_a_browser_has_is_not_sent_again,
    two_uploads_of_one_name_have_two_paths,
    a_directory_is_part_of_the_path,
    what_is_refused_leaves_nothing_behind,
    an_upload_that_breaks_off_leaves_nothing_behind,
    uploads_beyond_the_limit_are_told_to_wait,
    paths_that_no_upload_has_given_lead_nowhere,
    strangers_download_but_do_not_upload,
    urls_begin_as_configured,
    a_direct_upload_needs_a_store_that_knows_such,
    a_stored_file_is_noted_once,
}

const BOUNDARY: &str = "a-boundary-that-no-file-holds";

/// A server whose uploads are in a folder of its own.
async fn start(backend: Backend, files: FilesConfig) -> (TestApp, TempDir) {
    let folder = TempDir::new().unwrap();
    let config = Config { data_dir: folder.path().to_owned(), files, ..Config::default() };
    (TestApp::start_with(backend, Setup { config, ..Setup::default() }).await, folder)
}

/// One field of a form: name, file name where it is a file, bytes.
type Field<'a> = (&'a str, Option<&'a str>, &'a [u8]);

fn form(fields: &[Field<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file_name, bytes) in fields {
        let file_name = file_name.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file_name}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

/// The whole answer to an upload.
async fn try_upload(app: &TestApp, person: &Person, fields: &[Field<'_>]) -> Value {
    let request = visit(app, "POST", "/infra/file/upload").bearer_auth(&person.access_token);
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    answer(request.header(CONTENT_TYPE, kind).body(form(fields))).await
}

/// The URL of an uploaded file.
async fn upload(app: &TestApp, person: &Person, name: &str, bytes: &[u8]) -> String {
    data(try_upload(app, person, &[("file", Some(name), bytes)]).await).as_str().unwrap().to_owned()
}

async fn download(app: &TestApp, url: &str) -> Response {
    app.http.get(url).send().await.unwrap()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

/// Files below a folder, whatever they are.
fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().path()).collect());
    let entries: Vec<_> = entries.unwrap_or_default();
    entries.iter().map(|path| if path.is_dir() { files_below(path) } else { 1 }).sum()
}

async fn an_uploaded_file_is_downloaded_unchanged(backend: Backend) {
    let (app, _folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let url = upload(&app, &alice, "猫 & 100%25.bin", &bytes).await;
    assert!(url.starts_with(&format!("{}/admin-api/infra/file/1/get/", app.base)), "{url}");
    let response = download(&app, &url).await;
    assert_eq!(response.status(), 200);
    assert_eq!(header(response.headers(), "content-length"), "3000000");
    assert_eq!(header(response.headers(), "accept-ranges"), "bytes");
    let name = "%E7%8C%AB%20%26%20100%2525%2Ebin";
    assert_eq!(header(response.headers(), "content-disposition"), format!("attachment; filename*=UTF-8''{name}"));
    assert!(response.bytes().await.unwrap() == bytes, "other bytes came back");
    let head = app.http.head(&url).send().await.unwrap();
    assert_eq!((head.status().as_u16(), header(head.headers(), "content-length")), (200, "3000000"));
}

async fn only_pictures_are_shown_everything_else_is_saved(backend: Backend) {
    let (app, _folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    for (name, media_type, kind) in [
        ("cat.png", "image/png", "inline"),
        ("film.mp4", "video/mp4", "attachment"),
        ("page.html", "application/octet-stream", "attachment"),
        ("drawing.SVG", "application/octet-stream", "attachment"),
        ("feed.xml", "application/octet-stream", "attachment"),
        ("none", "application/octet-stream", "attachment"),
    ] {
        let url = upload(&app, &alice, name, b"<script>alert(1)</script>").await;
        let response = download(&app, &url).await;
        let headers = response.headers();
        assert_eq!(header(headers, "content-type"), media_type, "{name}");
        assert!(header(headers, "content-disposition").starts_with(kind), "{name}");
        assert_eq!(header(headers, "x-content-type-options"), "nosniff");
        assert_eq!(header(headers, "content-security-policy"), "default-src 'none'; sandbox");
    }
}

async fn a_part_of_a_file_is_served(backend: Backend) {
    let (app, _folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    let url = upload(&app, &alice, "film.mp4", b"0123456789").await;
    for (range, status, content_range, bytes) in [
        ("bytes=2-4", 206, "bytes 2-4/10", "234"),
        ("bytes=7-", 206, "bytes 7-9/10", "789"),
        ("bytes=-1", 206, "bytes 9-9/10", "9"),
        ("bytes=0-", 200, "", "0123456789"),
        ("bytes=10-", 416, "bytes */10", ""),
        ("bytes=0-1,4-5", 200, "", "0123456789"),
    ] {
        let response = app.http.get(&url).header(RANGE, range).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{range}");
        assert_eq!(header(response.headers(), "content-range"), content_range, "{range}");
        assert_eq!(response.text().await.unwrap(), bytes, "{range}");
    }
}

async fn what_a_browser_has_is_not_sent_again(backend: Backend) {
    let (app, _folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    let url = upload(&app, &alice, "cat.png", b"meow").await;
    let tag = header(download(&app, &url).await.headers(), "etag").to_owned();
    let again = app.http.get(&url).header(IF_NONE_MATCH, &tag).send().await.unwrap();
    assert_eq!(again.status(), 304);
    let changed = app.http.get(&url).header(IF_NONE_MATCH, "\"another\"").send().await.unwrap();
    assert_eq!(changed.status(), 200);
}

async fn two_uploads_of_one_name_have_two_paths(backend: Backend) {
    let (app, _folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    let first = upload(&app, &alice, "cat.png", b"first").await;
    let second = upload(&app, &alice, "cat.png", b"second").await;
    assert_ne!(first, second);
    assert_eq!(download(&app, &first).await.text().await.unwrap(), "first");
    assert_eq!(download(&app, &second).await.text().await.unwrap(), "second");
}

async fn a_directory_is_part_of_the_path(backend: Backend) {
    let (app, _folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    let cat: Field<'_> = ("file", Some("cat.png"), b"meow");
    for fields in [[("directory", None, &b"im/cats"[..]), cat], [cat, ("directory", None, &b"im/cats"[..])]] {
        let url = data(try_upload(&app, &alice, &fields).await);
        assert!(url.as_str().unwrap().contains("/get/im/cats/2"), "{url}");
        assert_eq!(download(&app, url.as_str().unwrap()).await.text().await.unwrap(), "meow");
    }
}

async fn what_is_refused_leaves_nothing_behind(backend: Backend) {
    let (app, folder) = start(backend, FilesConfig { max_bytes: 100_000, ..FilesConfig::default() }).await;
    let alice = app.user("alice").await;
    let (large, cat) = (vec![b'x'; 100_001], ("file", Some("cat.png"), &b"meow"[..]));
    let cases: [(&str, i64, Vec<Field<'_>>); 10] = [
        ("too large", 400, vec![("file", Some("cat.png"), &large)]),
        ("empty", 400, vec![("file", Some("cat.png"), b"")]),
        ("no file", 400, vec![("directory", None, b"im")]),
        ("two files", 400, vec![cat, cat]),
        ("large text", 400, vec![cat, ("directory", None, &large[..5_000])]),
        ("not UTF-8", 400, vec![cat, ("directory", None, b"\xff\xfe")]),
        ("no name", 1_001_003_003, vec![("file", None, b"meow")]),
        ("separator in the name", 1_001_003_003, vec![("file", Some("a/../cat.png"), b"meow")]),
        ("drive letter", 1_001_003_003, vec![("file", Some("C:cat.png"), b"meow")]),
        ("directory above", 1_001_003_003, vec![cat, ("directory", None, b"../../etc")]),
    ];
    for (what, expected, fields) in cases {
        assert_eq!(code(&try_upload(&app, &alice, &fields).await), expected, "{what}");
        assert_eq!(files_below(&folder.path().join("files")), 0, "{what}");
    }
    let plain = visit(&app, "POST", "/infra/file/upload").bearer_auth(&alice.access_token).json(&json!({}));
    assert_eq!(code(&answer(plain).await), 400);
    let exact = upload(&app, &alice, "cat.png", &large[1..]).await;
    assert_eq!(download(&app, &exact).await.status(), 200);
}

/// Sends the head of an upload and the beginning of its file over a connection of its own.
async fn begin_upload(app: &TestApp, person: &Person) -> TcpStream {
    let body = form(&[("file", Some("cat.png"), &vec![b'x'; 50_000])]);
    let head = format!(
        "POST /admin-api/infra/file/upload HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\ntenant-id: 1\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {}\r\n\r\n",
        person.access_token,
        body.len()
    );
    let mut stream = TcpStream::connect(app.base.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body[..30_000]).await.unwrap();
    stream
}

async fn an_upload_that_breaks_off_leaves_nothing_behind(backend: Backend) {
    let (app, folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    let files = folder.path().join("files");
    let stream = begin_upload(&app, &alice).await;
    eventually("the upload begins", async || files_below(&files) == 1).await;
    drop(stream);
    eventually("what was begun is gone", async || files_below(&files) == 0).await;
}

async fn uploads_beyond_the_limit_are_told_to_wait(backend: Backend) {
    let (app, folder) = start(backend, FilesConfig { max_uploads: 1, ..FilesConfig::default() }).await;
    let alice = app.user("alice").await;
    let files = folder.path().join("files");
    let mut first = begin_upload(&app, &alice).await;
    eventually("the upload begins", async || files_below(&files) == 1).await;
    let second = try_upload(&app, &alice, &[("file", Some("cat.png"), b"meow")]).await;
    assert_eq!(code(&second), 429);
    let body = form(&[("file", Some("cat.png"), &vec![b'x'; 50_000])]);
    first.write_all(&body[30_000..]).await.unwrap();
    let mut answer = [0; 12];
    first.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    upload(&app, &alice, "cat.png", b"meow").await;
}

async fn paths_that_no_upload_has_given_lead_nowhere(backend: Backend) {
    let (app, folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    let url = upload(&app, &alice, "cat.png", b"meow").await;
    let path = url.split_once("/get/").unwrap().1;
    let (date, rest) = path.split_once('/').unwrap();
    let others = [
        "1/get/../secret".to_owned(),
        "1/get/%2e%2e/secret".to_owned(),
        "1/get/..%2fsecret".to_owned(),
        format!("1/get/{date}/..%2f..%2fsecret/cat.png"),
        format!("1/get/{date}/{}/cat.png", "0".repeat(32)),
        format!("1/get/{date}/{}", rest.split_once('/').unwrap().0),
        format!("2/get/{path}"),
        format!("x/get/{path}"),
        "1/get/".to_owned(),
        "1/get/%00".to_owned(),
        "1/get/%ff".to_owned(),
    ];
    for other in others {
        let mut stream = TcpStream::connect(app.base.strip_prefix("http://").unwrap()).await.unwrap();
        let request = format!("GET /admin-api/infra/file/{other} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 404") || answer.contains("\"code\":401"), "{other}: {answer}");
    }
}

async fn strangers_download_but_do_not_upload(backend: Backend) {
    let (app, folder) = start(backend, FilesConfig::default()).await;
    let (alice, guest) = (app.user("alice").await, app.guest("nobody"));
    let refused = try_upload(&app, &guest, &[("file", Some("cat.png"), b"meow")]).await;
    assert_eq!((code(&refused), files_below(&folder.path().join("files"))), (401, 0));
    let url = upload(&app, &alice, "cat.png", b"meow").await;
    assert_eq!(download(&app, &url).await.text().await.unwrap(), "meow");
}

async fn urls_begin_as_configured(backend: Backend) {
    let public_url = Some("https://chat.example.com/".to_owned());
    let (app, _folder) = start(backend, FilesConfig { public_url, ..FilesConfig::default() }).await;
    let alice = app.user("alice").await;
    let url = upload(&app, &alice, "cat.png", b"meow").await;
    assert!(url.starts_with("https://chat.example.com/admin-api/infra/file/1/get/2"), "{url}");
}

async fn a_direct_upload_needs_a_store_that_knows_such(backend: Backend) {
    let (app, _folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    assert_eq!(code(&alice.call("GET", "/infra/file/presigned-url?name=cat.png", None).await), 400);
    let bad = alice.call("GET", "/infra/file/presigned-url?name=a%2Fb", None).await;
    assert_eq!(code(&bad), 1_001_003_003);
}

async fn a_stored_file_is_noted_once(backend: Backend) {
    let (app, _folder) = start(backend, FilesConfig::default()).await;
    let alice = app.user("alice").await;
    let url = upload(&app, &alice, "cat.png", b"meow").await;
    let path = url.split_once("/get/").unwrap().1;
    let create = async |path: &str| alice.call("POST", "/infra/file/create", Some(json!({"path": path}))).await;
    let id = data(create(path).await);
    assert!(id.is_i64());
    assert_eq!(data(create(path).await), id);
    assert_eq!(code(&create("etc/passwd").await), 1_001_003_003);
    let unknown = format!("20261201/{}/cat.png", "0".repeat(32));
    assert_eq!(code(&create(&unknown).await), 1_001_003_001);
}
