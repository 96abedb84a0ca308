//! Where uploaded files are, and how large they may be.

use secrecy::SecretString;
use serde::{Deserialize, Serialize, Serializer};

/// Uploaded files (`contract/01` section 7).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilesConfig {
    /// Largest file.
    pub max_bytes: u64,
    /// Uploads under way before further ones get code 429. Each holds at most two parts: 1 MiB each in a folder,
    /// 5 MiB each in S3.
    pub max_uploads: usize,
    /// What the URL of a file begins with, such as `https://chat.example.com`. None: as the uploading request named
    /// the server.
    pub public_url: Option<String>,
    /// An S3-compatible store. None: the folder `files` in the data folder.
    pub s3: Option<S3Config>,
}

/// An S3-compatible store.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct S3Config {
    pub bucket: String,
    #[serde(default = "default_region")]
    pub region: String,
    /// None: Amazon's. With `http://` nothing is encrypted on the way.
    #[serde(default)]
    pub endpoint: Option<String>,
    pub access_key_id: String,
    #[serde(serialize_with = "hide")]
    pub secret_access_key: SecretString,
}

fn default_region() -> String {
    "us-east-1".to_owned()
}

impl Default for FilesConfig {
    fn default() -> Self {
        FilesConfig { max_bytes: 16 << 20, max_uploads: 32, public_url: None, s3: None }
    }
}

fn hide<S: Serializer>(_: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("***")
}
