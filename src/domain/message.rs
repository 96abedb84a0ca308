//! What private and group messages have in common.

/// Message status: as sent.
pub const STATUS_NORMAL: i32 = 0;
/// Message status: recalled.
pub const STATUS_RECALLED: i32 = 2;

/// Receipt status: none was asked for.
pub const RECEIPT_NONE: i32 = 0;
/// Receipt status: asked for, not read yet. What is stored is never more than this; "done" is computed.
pub const RECEIPT_PENDING: i32 = 1;
/// Receipt status: everybody concerned has read it.
pub const RECEIPT_DONE: i32 = 2;

/// Content that a recalled message shows.
pub const RECALLED_CONTENT: &str = "{}";
