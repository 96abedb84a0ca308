//! The reply wrapper: HTTP 200 with `{code, msg, data}` for answers and errors alike (`contract/01` section 2).
//! Nothing else knows its form.

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use actix_web::{HttpRequest, HttpResponse, Responder, ResponseError};
use serde::Serialize;
use tracing::{debug, error};

use crate::error::AppError;

/// What a caller sees of a defect or of a failed statement. The cause is in the log, under the request id.
const INTERNAL_TEXT: &str = "internal error";

#[derive(Serialize)]
struct Wrapper<'a, T> {
    code: i32,
    msg: &'a str,
    data: Option<T>,
}

/// A successful answer.
pub struct Reply<T>(pub T);

/// What every handler returns.
pub type Answer<T> = Result<Reply<T>, AppError>;

impl<T: Serialize> Responder for Reply<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        write(&Wrapper { code: 0, msg: "", data: Some(self.0) })
    }
}

impl ResponseError for AppError {
    fn status_code(&self) -> StatusCode {
        StatusCode::OK
    }

    fn error_response(&self) -> HttpResponse {
        let text = match self {
            AppError::Database(_) | AppError::Internal(_) => {
                error!(cause = %self, "request failed");
                INTERNAL_TEXT.to_owned()
            }
            AppError::Unauthenticated
            | AppError::Forbidden(_)
            | AppError::Refused(_)
            | AppError::Malformed(_)
            | AppError::NoSuchPath
            | AppError::MethodNotAllowed
            | AppError::TooManyRequests
            | AppError::Unavailable
            | AppError::RefreshTokenInvalid
            | AppError::RefreshTokenExpired => {
                debug!(code = self.code(), "request refused");
                self.to_string()
            }
        };
        write(&Wrapper::<()> { code: self.code(), msg: &text, data: None })
    }
}

fn write<T: Serialize>(wrapper: &Wrapper<'_, T>) -> HttpResponse {
    match serde_json::to_string(wrapper) {
        Ok(body) => HttpResponse::Ok().content_type(ContentType::json()).body(body),
        Err(error) => {
            error!(cause = %error, "an answer cannot be written");
            let body = format!(r#"{{"code":500,"msg":"{INTERNAL_TEXT}","data":null}}"#);
            HttpResponse::Ok().content_type(ContentType::json()).body(body)
        }
    }
}
