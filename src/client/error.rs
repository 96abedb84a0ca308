//! What can go wrong in the client, and what is worth another try.

use std::time::Duration;

/// Why a call or a connection failed. No variant holds a token or a message text.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server understood and said no; `code` as in `contract/01` sections 2.2 and 14.
    #[error("refused with code {code}: {message}")]
    Refused { code: i64, message: String },
    /// The sign-in has ended (the refresh token is no longer good): only a new sign-in helps.
    #[error("signed out")]
    SignedOut,
    /// No answer: the connection failed, broke or took too long. What was asked may have happened or not.
    #[error("no answer: {0}")]
    Transport(String),
    /// An HTTP status other than 200 without the result wrapper, from a proxy for example.
    #[error("HTTP status {0}")]
    Status(u16),
    /// An answer that this client does not understand.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
    /// The base address is not usable.
    #[error("the server's address must begin with http:// and have no path, query or fragment")]
    Address,
    /// A repeated send got no answer within its time. It may still have been stored.
    #[error("no answer within {after:?}, last: {last}")]
    Deadline { after: Duration, last: Box<ClientError> },
}

impl ClientError {
    /// Whether the same request may succeed a little later. Only verbs that are safe to repeat should be.
    pub fn is_temporary(&self) -> bool {
        match self {
            ClientError::Transport(_) => true,
            ClientError::Refused { code, .. } => matches!(code, 429 | 500 | 502 | 503 | 504),
            // 408: a server that was frozen or swamped had no time to read the request, and has not run it.
            ClientError::Status(status) => matches!(status, 408 | 429 | 500..=599),
            ClientError::SignedOut
            | ClientError::Unexpected(_)
            | ClientError::Address
            | ClientError::Deadline { .. } => false,
        }
    }

    /// The server's code, when it refused.
    pub fn code(&self) -> Option<i64> {
        match self {
            ClientError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl From<reqwest::Error> for ClientError {
    /// Without the URL: it can hold a token.
    fn from(error: reqwest::Error) -> ClientError {
        let error = error.without_url();
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        ClientError::Transport(text)
    }
}
