//! Dates and times as text (the proleptic Gregorian calendar, without zones and leap seconds), for texts that people
//! read and for the time filters of management pages.

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// A time as ISO text in UTC, to the second.
pub fn time_text(milliseconds: i64) -> String {
    let rest = milliseconds.rem_euclid(DAY_MS) / 1_000;
    format!("{}T{:02}:{:02}:{:02}", date_text(milliseconds), rest / 3_600, rest / 60 % 60, rest % 60)
}

/// The date of a time in UTC, `yyyy-MM-dd`.
pub fn date_text(milliseconds: i64) -> String {
    let (year, month, day) = civil_from_days(milliseconds.div_euclid(DAY_MS));
    format!("{year:04}-{month:02}-{day:02}")
}

/// The milliseconds of `yyyy-MM-dd HH:mm:ss` in UTC. `None` for anything else, and for dates that do not exist.
pub fn parse_time(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let days = days_from_civil(year, month, day);
    if hour > 23 || minute > 59 || second > 59 || civil_from_days(days) != (year, month, day) {
        return None;
    }
    Some(days * DAY_MS + (hour * 3_600 + minute * 60 + second) * 1_000)
}

/// Three numbers of so many digits.
fn numbers(text: &str, separator: char, widths: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut found = [0; 3];
    for (number, width) in found.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// Days since 1970 as year, month, day: counts from 1 March 0000, when leap days come last.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The opposite of [`civil_from_days`]. A day that does not exist gives another one.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "1970-01-01T00:00:00")]
    #[case(951_782_400_000, "2000-02-29T00:00:00")]
    #[case(253_402_214_400_000, "9999-12-31T00:00:00")]
    fn times_are_written_in_utc(#[case] time: i64, #[case] expected: &str) {
        assert_eq!(time_text(time), expected);
    }

    #[rstest]
    #[case("2026-02-29 00:00:00")]
    #[case("2026-13-01 00:00:00")]
    #[case("2026-00-10 00:00:00")]
    #[case("2026-01-00 00:00:00")]
    #[case("2026-01-01 24:00:00")]
    #[case("2026-01-01 00:60:00")]
    #[case("2026-01-01 00:00:60")]
    #[case("2026-01-01")]
    #[case("2026-01-01T00:00:00")]
    #[case("2026-1-1 00:00:00")]
    #[case("+026-01-01 00:00:00")]
    #[case("2026-01-01-01 00:00:00")]
    #[case("1796122358321")]
    #[case("")]
    fn what_is_no_time_is_none(#[case] text: &str) {
        assert_eq!(parse_time(text), None);
    }

    proptest! {
        #[test]
        fn a_written_time_can_be_read(seconds in 0_i64..253_402_300_800) {
            let time = seconds * 1_000;
            prop_assert_eq!(parse_time(&time_text(time).replace('T', " ")), Some(time));
        }

        #[test]
        fn any_text_can_be_asked(text in ".*") {
            let _ = parse_time(&text);
        }
    }
}
