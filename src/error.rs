//! The one error type of services, actors and HTTP.

use diesel::result::{DatabaseErrorKind, Error as DieselError};

use crate::domain::refusal::Refusal;

/// Why a request was not carried out. What a user sees of it never contains a cause; see `http::response`.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// No token, or one that is unknown or expired.
    #[error("not signed in")]
    Unauthenticated,
    /// Signed in, and still not allowed.
    #[error("{0}")]
    Forbidden(&'static str),
    /// A rule said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request is not of the expected form.
    #[error("{0}")]
    Malformed(String),
    /// Unknown path.
    #[error("no such path")]
    NoSuchPath,
    /// Known path, other method.
    #[error("method not allowed")]
    MethodNotAllowed,
    /// A queue is full, or a limit of this user or address is reached.
    #[error("too many requests")]
    TooManyRequests,
    /// The database did not answer in time; whether the change happened is told by repeating the request.
    #[error("service is not available, please try again")]
    Unavailable,
    /// The refresh token is unknown (`contract/01` section 6.5: the text is a protocol constant).
    #[error("无效的刷新令牌")]
    RefreshTokenInvalid,
    /// The refresh token has expired (the text is a protocol constant).
    #[error("刷新令牌已过期")]
    RefreshTokenExpired,
    /// A statement failed.
    #[error("database: {0}")]
    Database(#[from] DieselError),
    /// Anything else; always a defect.
    #[error("internal: {0}")]
    Internal(String),
}

impl AppError {
    /// The number in the reply wrapper (`contract/01` section 2.2); 503 is ours.
    pub fn code(&self) -> i32 {
        match self {
            AppError::Refused(refusal) => refusal.code(),
            AppError::Malformed(_) | AppError::RefreshTokenInvalid => 400,
            AppError::Unauthenticated | AppError::RefreshTokenExpired => 401,
            AppError::Forbidden(_) => 403,
            AppError::NoSuchPath => 404,
            AppError::MethodNotAllowed => 405,
            AppError::TooManyRequests => 429,
            AppError::Unavailable => 503,
            AppError::Database(_) | AppError::Internal(_) => 500,
        }
    }

    /// What the caller is told when a database error has no better answer.
    pub fn from_database(error: &DieselError) -> AppError {
        use DatabaseErrorKind::{CheckViolation, ForeignKeyViolation, NotNullViolation, UniqueViolation};
        match error {
            DieselError::DatabaseError(
                UniqueViolation | ForeignKeyViolation | NotNullViolation | CheckViolation,
                information,
            ) => AppError::Internal(information.message().to_owned()),
            DieselError::DatabaseError(..) | DieselError::BrokenTransactionManager => AppError::Unavailable,
            other => AppError::Internal(other.to_string()),
        }
    }
}
