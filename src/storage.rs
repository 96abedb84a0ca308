//! The bytes of uploaded files: in a folder, or in an S3-compatible store. Both by `object_store`; this is all that the
//! rest knows of it. A file appears under its key whole or not at all.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::signer::Signer;
use object_store::{Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, WriteMultipart};
use secrecy::ExposeSecret;

use crate::config::S3Config;

/// What is written at once to a folder.
const FOLDER_PART_BYTES: usize = 1 << 20;
/// The smallest part that S3 takes.
const S3_PART_BYTES: usize = 5 << 20;
/// How long a direct upload to S3 may begin after it was asked for.
const PRESIGNED_TTL: Duration = Duration::from_secs(15 * 60);

/// A file cannot be stored or read. For the log; no user sees the cause.
#[derive(Debug, thiserror::Error)]
#[error("file store: {0}")]
pub struct StorageError(#[from] Error);

/// Where files are. Clones are the same store.
#[derive(Clone)]
pub struct FileStore {
    store: Arc<dyn ObjectStore>,
    /// Makes URLs for direct uploads, where the store knows such.
    signer: Option<Arc<dyn Signer>>,
    part_bytes: usize,
}

/// A file that is being written. Dropped unfinished, it leaves nothing that could be read.
pub struct Upload(WriteMultipart);

/// A file that is being read.
pub struct StoredFile {
    /// Bytes of the whole file.
    pub size: u64,
    /// The bytes asked for.
    pub content: BoxStream<'static, Result<Bytes, StorageError>>,
}

impl FileStore {
    /// Files in a folder, which is made where it is missing. A finished file is on the disk.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn folder(folder: &Path) -> anyhow::Result<FileStore> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let store = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
        Ok(FileStore { store: Arc::new(store), signer: None, part_bytes: FOLDER_PART_BYTES })
    }

    /// Files in a bucket. Nothing is asked of it yet.
    ///
    /// # Errors
    /// A value that cannot be used.
    pub fn s3(config: &S3Config) -> anyhow::Result<FileStore> {
        // A second call finds one installed, which does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&config.bucket)
            .with_region(&config.region)
            .with_access_key_id(&config.access_key_id)
            .with_secret_access_key(config.secret_access_key.expose_secret());
        if let Some(endpoint) = &config.endpoint {
            builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
        }
        let store = Arc::new(builder.build().context("files.s3 cannot be used")?);
        Ok(FileStore { store: store.clone(), signer: Some(store), part_bytes: S3_PART_BYTES })
    }

    /// Begins to write a file.
    ///
    /// # Errors
    /// The store does not take it.
    pub async fn begin(&self, key: &str) -> Result<Upload, StorageError> {
        let upload = self.store.put_multipart(&Key::from(key)).await?;
        Ok(Upload(WriteMultipart::new_with_chunk_size(upload, self.part_bytes)))
    }

    /// Bytes of a file; `None` where there is none.
    ///
    /// # Errors
    /// The store cannot tell.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, StorageError> {
        match self.store.head(&Key::from(key)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The bytes `start..end` of a file of which they are a part; `None` where there is no file.
    ///
    /// # Errors
    /// The store cannot read it.
    pub async fn read(&self, key: &str, range: std::ops::Range<u64>) -> Result<Option<StoredFile>, StorageError> {
        // An empty range is no range for the store.
        let range = (!range.is_empty()).then_some(GetRange::Bounded(range));
        let options = GetOptions { range, ..GetOptions::default() };
        match self.store.get_opts(&Key::from(key), options).await {
            Ok(found) => {
                let size = found.meta.size;
                Ok(Some(StoredFile { size, content: found.into_stream().map_err(StorageError).boxed() }))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file; one that is not there is no error.
    ///
    /// # Errors
    /// The store does not do it.
    pub async fn delete(&self, key: &str) -> Result<(), StorageError> {
        match self.store.delete(&Key::from(key)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A URL to which a client may PUT the file itself within 15 minutes; `None` where the store knows no such.
    ///
    /// # Errors
    /// The URL cannot be signed.
    pub async fn presign(&self, key: &str) -> Result<Option<String>, StorageError> {
        let Some(signer) = &self.signer else { return Ok(None) };
        let url = signer.signed_url(object_store_http::Method::PUT, &Key::from(key), PRESIGNED_TTL).await?;
        Ok(Some(url.to_string()))
    }
}

impl Upload {
    /// Takes the next bytes; waits while a part before them is still being written.
    ///
    /// # Errors
    /// A part could not be written: the upload is of no use any more.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.0.wait_for_capacity(1).await?;
        self.0.write(bytes);
        Ok(())
    }

    /// Makes the file readable under its key.
    ///
    /// # Errors
    /// The file is not there.
    pub async fn finish(self) -> Result<(), StorageError> {
        self.0.finish().await?;
        Ok(())
    }

    /// Gives the file up.
    pub async fn abort(self) {
        if let Err(error) = self.0.abort().await {
            tracing::warn!(error = %error, "an upload left parts behind");
        }
    }
}
