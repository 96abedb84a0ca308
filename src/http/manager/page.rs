//! What management pages are asked with: page number and size, and time filters in every form that clients write.

use actix_web::web;
use serde::Deserialize;

use crate::domain::calendar::parse_time;
use crate::domain::page::{Page, TimeRange};
use crate::error::AppError;
use crate::http::input::optional_integer;

/// Rows that one call may name.
const MAX_IDS: usize = 100;
/// Largest page.
const MAX_SIZE: i64 = 200;

/// `pageNo` and `pageSize` of a query string.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageParams {
    #[serde(default, deserialize_with = "optional_integer")]
    page_no: Option<i64>,
    #[serde(default, deserialize_with = "optional_integer")]
    page_size: Option<i64>,
}

impl PageParams {
    pub fn page(&self) -> Result<Page, AppError> {
        let page = Page { number: self.page_no.unwrap_or(1), size: self.page_size.unwrap_or(10) };
        if page.number < 1 {
            return Err(AppError::Malformed("parameter incorrect: pageNo must be at least 1".into()));
        }
        if !(1..=MAX_SIZE).contains(&page.size) {
            return Err(AppError::Malformed(format!("parameter incorrect: pageSize must be 1 to {MAX_SIZE}")));
        }
        Ok(page)
    }
}

/// A time filter of a query string, written `name[0]=…&name[1]=…`, `name=…&name=…` or `name=…,…`. An empty text is
/// open. The texts are `yyyy-MM-dd HH:mm:ss` at `offset_minutes` east of UTC.
pub fn time_range(query: &str, name: &str, offset_minutes: i64) -> Result<TimeRange, AppError> {
    let malformed = |what: &str| AppError::Malformed(format!("parameter incorrect: {name} {what}"));
    let pairs = web::Query::<Vec<(String, String)>>::from_query(query);
    let pairs = pairs.map_err(|_| malformed("is not readable"))?.into_inner();
    let mut texts: [Option<String>; 2] = [None, None];
    for (key, value) in pairs {
        let Some(rest) = key.strip_prefix(name) else { continue };
        let place = match rest {
            "" | "[]" => None,
            "[0]" => Some(0),
            "[1]" => Some(1),
            // Another parameter, whose name begins in the same way.
            rest if !rest.starts_with('[') => continue,
            _ => return Err(malformed("has two times")),
        };
        for (index, part) in value.split(',').enumerate() {
            let next = texts.iter().position(Option::is_none);
            let slot = place.map(|place: usize| place + index).or(next);
            let slot = slot.and_then(|slot| texts.get_mut(slot)).filter(|slot| slot.is_none());
            *slot.ok_or_else(|| malformed("has two times"))? = Some(part.trim().to_owned());
        }
    }
    let read = |text: &Option<String>| -> Result<Option<i64>, AppError> {
        match text.as_deref() {
            None | Some("") => Ok(None),
            Some(text) => {
                let time = parse_time(text).ok_or_else(|| malformed("must be yyyy-MM-dd HH:mm:ss"))?;
                Ok(Some(time - offset_minutes * 60_000))
            }
        }
    };
    let [from, to] = &texts;
    // A time to the second stands for the whole second.
    Ok(TimeRange { from: read(from)?, to: read(to)?.map(|time| time + 999) })
}

/// Ids of a query string, written `ids=1,2`, `ids=1&ids=2` or `ids[0]=1&ids[1]=2`: 1 to 100.
pub fn ids(query: &str) -> Result<Vec<i64>, AppError> {
    let malformed = || AppError::Malformed("parameter incorrect: ids must be 1 to 100 integers".into());
    let pairs = web::Query::<Vec<(String, String)>>::from_query(query).map_err(|_| malformed())?.into_inner();
    let mut found = Vec::new();
    for (key, value) in pairs {
        let Some(rest) = key.strip_prefix("ids") else { continue };
        let is_index = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if !rest.is_empty() && !is_index.is_some_and(|index| index.bytes().all(|byte| byte.is_ascii_digit())) {
            continue;
        }
        for part in value.split(',') {
            found.push(part.trim().parse().map_err(|_| malformed())?);
        }
    }
    if (1..=MAX_IDS).contains(&found.len()) { Ok(found) } else { Err(malformed()) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ONE: &str = "1970-01-01%2000%3A00%3A01";
    const TWO: &str = "1970-01-01+00:00:02";

    fn range(query: &str) -> Result<(Option<i64>, Option<i64>), i32> {
        let query = query.replace("ONE", ONE).replace("TWO", TWO);
        time_range(&query, "t", 0).map(|range| (range.from, range.to)).map_err(|error| error.code())
    }

    #[rstest]
    #[case("", Ok((None, None)))]
    #[case("t%5B0%5D=ONE&t%5B1%5D=TWO", Ok((Some(1_000), Some(2_999))))]
    #[case("t[1]=TWO&t[0]=ONE", Ok((Some(1_000), Some(2_999))))]
    #[case("t=ONE&t=TWO", Ok((Some(1_000), Some(2_999))))]
    #[case("t[]=ONE&t[]=TWO", Ok((Some(1_000), Some(2_999))))]
    #[case("t=ONE,TWO", Ok((Some(1_000), Some(2_999))))]
    #[case("t=ONE", Ok((Some(1_000), None)))]
    #[case("t[0]=ONE", Ok((Some(1_000), None)))]
    #[case("t[1]=TWO", Ok((None, Some(2_999))))]
    #[case("t=,TWO", Ok((None, Some(2_999))))]
    #[case("t=&t=TWO", Ok((None, Some(2_999))))]
    #[case("t=", Ok((None, None)))]
    #[case("time=x&tt[0]=x&a=t", Ok((None, None)))]
    #[case("t=ONE,TWO,TWO", Err(400))]
    #[case("t=ONE&t=ONE&t=ONE", Err(400))]
    #[case("t[0]=ONE&t[0]=ONE", Err(400))]
    #[case("t[2]=ONE", Err(400))]
    #[case("t[x]=ONE", Err(400))]
    #[case("t=yesterday", Err(400))]
    #[case("t=1000", Err(400))]
    fn every_form_of_a_time_filter_is_read(
        #[case] query: &str,
        #[case] expected: Result<(Option<i64>, Option<i64>), i32>,
    ) {
        assert_eq!(range(query), expected, "{query}");
    }

    #[rstest]
    #[case("ids=1,2,3", Ok(vec![1, 2, 3]))]
    #[case("ids=1&ids=2", Ok(vec![1, 2]))]
    #[case("ids%5B0%5D=1&ids%5B1%5D=2&x=9", Ok(vec![1, 2]))]
    #[case("ids[]=-1", Ok(vec![-1]))]
    #[case("ids=", Err(400))]
    #[case("ids=1,", Err(400))]
    #[case("ids=x", Err(400))]
    #[case("ids=9223372036854775808", Err(400))]
    #[case("id=1", Err(400))]
    #[case("", Err(400))]
    fn every_form_of_ids_is_read(#[case] query: &str, #[case] expected: Result<Vec<i64>, i32>) {
        assert_eq!(ids(query).map_err(|error| error.code()), expected, "{query}");
    }

    #[test]
    fn a_hundred_ids_are_read_and_no_more() {
        assert_eq!(ids(&format!("ids={}", vec!["1"; 100].join(","))).map(|ids| ids.len()).unwrap(), 100);
        assert!(ids(&format!("ids={}", vec!["1"; 101].join(","))).is_err());
    }

    #[test]
    fn times_are_those_of_the_zone() {
        let range = time_range("t[0]=1970-01-01 08:00:00", "t", 480).unwrap();
        assert_eq!(range.from, Some(0));
    }
}
