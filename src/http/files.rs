//! Uploads (`contract/01` section 7, rows 15, 17 and 18): streamed from the request to the store, never whole in memory.
//! Downloads are in `file_answers`.

use actix_multipart::{Field, Multipart};
use actix_web::http::header::HOST;
use actix_web::{HttpRequest, web};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tracing::error;

use super::AppState;
use super::caller::Caller;
use super::input::{Body, Params};
use super::response::{Answer, Reply};
use crate::domain::file_path::FilePath;
use crate::domain::refusal::Refusal;
use crate::error::AppError;
use crate::service::Locks;
use crate::service::files::{self, CONFIG_ID, NewFile};
use crate::storage::{FileStore, StorageError, Upload};

/// Bytes of the form's text fields together, and of fields that nobody asked for.
const MAX_TEXT_BYTES: usize = 4 << 10;
/// What URLs keep as it is in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The file store, and how many may write to it at a time.
pub(super) struct Uploads {
    pub(super) store: FileStore,
    running: Semaphore,
}

impl Uploads {
    pub(super) fn new(store: FileStore, max: usize) -> Uploads {
        Uploads { store, running: Semaphore::new(max) }
    }
}

impl From<StorageError> for AppError {
    fn from(error: StorageError) -> AppError {
        error!(cause = %error, "the file store failed");
        AppError::Unavailable
    }
}

/// POST `/infra/file/upload`: a form with `file`, and `directory` where the client wants one. The file's URL.
pub async fn upload(
    state: web::Data<AppState>,
    caller: Caller,
    request: HttpRequest,
    form: Multipart,
) -> Answer<String> {
    let _running = state.uploads.running.try_acquire().map_err(|_| AppError::TooManyRequests)?;
    let (date, random) = (today(&state), rand::random());
    // The bytes come before the directory is known, perhaps; their key is the same in all of them.
    let key = FilePath::new("", date.clone(), random, "file")?.key();
    let received = receive(&state, form, &key).await?;
    let recorded = match FilePath::new(&received.directory, date, random, &received.name) {
        Ok(path) => record(&state, caller, &request, &path, received.size).await,
        Err(refusal) => Err(refusal.into()),
    };
    if recorded.is_err() {
        state.uploads.store.delete(&key).await?;
    }
    recorded.map(|(_, url)| Reply(url))
}

/// What a form held; the file is in the store.
struct Received {
    name: String,
    /// Empty where the client names none.
    directory: String,
    size: u64,
}

async fn receive(state: &AppState, mut form: Multipart, key: &str) -> Result<Received, AppError> {
    let mut directory = String::new();
    let mut file = None;
    let mut text_bytes = 0;
    let read = async {
        while let Some(field) = form.next().await {
            let mut field = field.map_err(malformed)?;
            match field.name() {
                Some("file") if file.is_none() => file = Some(store_file(state, &mut field, key).await?),
                Some("file") => return Err(AppError::Malformed("parameter incorrect: more than one file".into())),
                name => {
                    let is_directory = name == Some("directory");
                    let text = read_text(&mut field, &mut text_bytes).await?;
                    if is_directory {
                        directory = text;
                    }
                }
            }
        }
        Ok(())
    };
    let outcome: Result<(), AppError> = read.await;
    match (outcome, file) {
        (Ok(()), Some((name, size))) => Ok(Received { name, directory, size }),
        (Ok(()), None) => Err(AppError::Malformed("request parameter missing: file".into())),
        (Err(error), Some(_)) => {
            state.uploads.store.delete(key).await?;
            Err(error)
        }
        (Err(error), None) => Err(error),
    }
}

/// Writes the field's bytes to the store; the name that the client gave, and the size.
async fn store_file(state: &AppState, field: &mut Field, key: &str) -> Result<(String, u64), AppError> {
    let name = field.content_disposition().and_then(|header| header.get_filename()).unwrap_or_default().to_owned();
    let mut upload = state.uploads.store.begin(key).await?;
    match copy(field, &mut upload, state.config.files.max_bytes).await {
        Ok(size) => {
            upload.finish().await?;
            Ok((name, size))
        }
        Err(error) => {
            upload.abort().await;
            Err(error)
        }
    }
}

async fn copy(field: &mut Field, upload: &mut Upload, max_bytes: u64) -> Result<u64, AppError> {
    let mut size = 0;
    while let Some(chunk) = field.next().await {
        let chunk: Bytes = chunk.map_err(malformed)?;
        size += chunk.len() as u64;
        if size > max_bytes {
            drain(field, max_bytes).await;
            return Err(AppError::Malformed(format!("file is larger than {max_bytes} bytes")));
        }
        upload.write(&chunk).await?;
    }
    if size == 0 {
        return Err(AppError::Malformed("file is empty".into()));
    }
    Ok(size)
}

/// Reads on without keeping anything, at most as much again: a client that is still sending would not see the answer.
async fn drain(field: &mut Field, max_bytes: u64) {
    let mut size = 0;
    while let Some(Ok(chunk)) = field.next().await {
        size += chunk.len() as u64;
        if size > max_bytes {
            return;
        }
    }
}

/// The text of a small field. `total` counts over the whole form.
async fn read_text(field: &mut Field, total: &mut usize) -> Result<String, AppError> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = field.next().await {
        let chunk = chunk.map_err(malformed)?;
        *total += chunk.len();
        if *total > MAX_TEXT_BYTES {
            return Err(AppError::Malformed("parameter incorrect: form fields too large".into()));
        }
        bytes.extend_from_slice(&chunk);
    }
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|_| AppError::Malformed("parameter incorrect: not UTF-8".into()))
}

fn malformed(error: actix_multipart::MultipartError) -> AppError {
    AppError::Malformed(format!("the form could not be read: {error}"))
}

/// Notes a file that is in the store; its id and its URL.
async fn record(
    state: &AppState,
    caller: Caller,
    request: &HttpRequest,
    path: &FilePath,
    size: u64,
) -> Result<(i64, String), AppError> {
    let url = url(state, request, path);
    let file = NewFile {
        config_id: CONFIG_ID,
        path: path.text(),
        name: path.name().to_owned(),
        url: url.clone(),
        content_type: Some(path.presentation().media_type.to_owned()),
        size: i64::try_from(size).unwrap_or(i64::MAX),
        creator: caller.user,
        create_time: state.clock.now(),
    };
    let noted =
        state.writer.run(Some(caller.user), "file.record", Locks::NONE, async move |tx| files::record(tx, &file).await);
    Ok((noted.await?, url))
}

/// The URL under which everybody who knows it finds the file.
fn url(state: &AppState, request: &HttpRequest, path: &FilePath) -> String {
    let origin = match &state.config.files.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => origin_of(state, request),
    };
    let text = path.text();
    let path = utf8_percent_encode(&text, PATH);
    format!("{origin}/admin-api/infra/file/{CONFIG_ID}/get/{path}")
}

/// How the client names this server: its `Host` header, and the scheme that a trusted proxy tells.
fn origin_of(state: &AppState, request: &HttpRequest) -> String {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let host = header(HOST.as_str()).unwrap_or("localhost");
    let peer = request.peer_addr().map(|peer| peer.ip());
    let is_trusted = peer.is_some_and(|peer| state.config.trusted_proxies.contains(&peer));
    let is_https = is_trusted && header("x-forwarded-proto").is_some_and(|scheme| scheme.starts_with("https"));
    format!("{}://{host}", if is_https { "https" } else { "http" })
}

fn today(state: &AppState) -> String {
    let now = chrono::DateTime::from_timestamp_millis(state.clock.now()).unwrap_or_default();
    now.format("%Y%m%d").to_string()
}

#[derive(Deserialize)]
pub struct PresignParams {
    name: String,
    #[serde(default)]
    directory: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PresignedBody {
    config_id: i64,
    /// Where the client PUTs the bytes.
    upload_url: String,
    /// Where the file will be found.
    url: String,
    path: String,
}

/// GET `/infra/file/presigned-url?name=&directory=`: where the client may put a file itself. Only S3 knows such.
pub async fn presign(
    state: web::Data<AppState>,
    _: Caller,
    request: HttpRequest,
    Params(params): Params<PresignParams>,
) -> Answer<PresignedBody> {
    let path = FilePath::new(&params.directory, today(&state), rand::random(), &params.name)?;
    let upload_url = state.uploads.store.presign(&path.key()).await?;
    let upload_url = upload_url.ok_or_else(|| AppError::Malformed("direct uploads need S3 storage".into()))?;
    Ok(Reply(PresignedBody { config_id: CONFIG_ID, upload_url, url: url(&state, &request, &path), path: path.text() }))
}

#[derive(Deserialize)]
pub struct CreateRequest {
    path: String,
}

/// POST `/infra/file/create`: notes a file that the client has put into the store itself; its id. What the body says of
/// name, type and size is not believed. A file over the limit is removed.
pub async fn create(
    state: web::Data<AppState>,
    caller: Caller,
    request: HttpRequest,
    Body(body): Body<CreateRequest>,
) -> Answer<i64> {
    let path = FilePath::parse(&body.path).ok_or(Refusal::FileNameInvalid)?;
    let size = state.uploads.store.size(&path.key()).await?.ok_or(Refusal::FileNotFound)?;
    let max_bytes = state.config.files.max_bytes;
    if size > max_bytes {
        state.uploads.store.delete(&path.key()).await?;
        return Err(AppError::Malformed(format!("file is larger than {max_bytes} bytes")));
    }
    let (id, _) = record(&state, caller, &request, &path, size).await?;
    Ok(Reply(id))
}
