//! Pages of management lists, which are counted from the newest row (`contract/05` part E).

/// Which page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// From 1.
    pub number: i64,
    /// 1 to 200.
    pub size: i64,
}

impl Page {
    /// Rows before the page.
    pub fn offset(self) -> i64 {
        (self.number - 1).saturating_mul(self.size)
    }
}

/// A time filter, milliseconds, both ends included. `None` is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Option<i64>,
    pub to: Option<i64>,
}

/// One page of a list, and how many rows the whole list has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paged<T> {
    pub list: Vec<T>,
    pub total: i64,
}
