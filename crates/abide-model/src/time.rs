//! Wall-clock time as it is written in manifests.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Milliseconds since 1970 UTC, spelled `2026-11-15T06:00:00.123Z` wherever a person may read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// How long ago `self` was at `now`; zero if the clock has been turned back since.
    pub fn age(self, now: Self) -> Duration {
        Duration::from_millis(u64::try_from(now.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

const DAY_MS: i64 = 86_400_000;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS));
        let (year, month, day) = civil(days);
        let (s, ms) = (ms / 1000, ms % 1000);
        let (h, m, s) = (s / 3600, s / 60 % 60, s % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z")
    }
}

/// The date that lies `days` after 1970-01-01, in the proleptic Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day is the last of its year and months have a fixed pattern.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The inverse of [`civil`].
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let march_month = (month + 9) % 12;
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

/// Text that is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time like 2026-11-15T06:00:00.000Z")]
pub struct InvalidTimestamp(String);

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let parse = || -> Option<Timestamp> {
            if text.len() != 24 || !text.is_ascii() {
                return None;
            }
            let bytes = text.as_bytes();
            let shape = b"0000-00-00T00:00:00.000Z";
            let fits =
                |(have, want): (&u8, &u8)| if *want == b'0' { have.is_ascii_digit() } else { have == want };
            if !bytes.iter().zip(shape).all(fits) {
                return None;
            }
            let number =
                |from: usize, to: usize| bytes[from..to].iter().fold(0, |n, c| n * 10 + i64::from(c - b'0'));
            let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
            let (h, m, s, ms) = (number(11, 13), number(14, 16), number(17, 19), number(20, 23));
            let days = days_from_civil(year, month, day);
            // Rejects the 31st of a short month: there is no such day, so it means another.
            if h > 23 || m > 59 || s > 59 || civil(days) != (year, month, day) {
                return None;
            }
            Some(Timestamp(days * DAY_MS + ((h * 60 + m) * 60 + s) * 1000 + ms))
        };
        parse().ok_or_else(|| InvalidTimestamp(text.chars().take(40).collect()))
    }
}

crate::text::serde_as_text!(Timestamp);

/// A span of time as a person says it: `now`, `5m`, `3h`, `12d`.
pub fn human(span: Duration) -> String {
    match span.as_secs() {
        0..5 => "now".to_owned(),
        s @ 5..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m", s / 60),
        s @ 3600..86_400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments_are_spelled_as_the_standard_says() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(951_826_210_123).to_string(), "2000-02-29T12:10:10.123Z");
        assert_eq!(Timestamp(1_794_722_400_000).to_string(), "2026-11-15T06:00:00.000Z");
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "", "2026-11-15", "2026-02-30T00:00:00.000Z", "2026-11-15T24:00:00.000Z",
            "2026-11-15 06:00:00.000Z", "2026-11-15T06:00:00.000z",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_clock_turned_back_never_gives_a_negative_age() {
        assert_eq!(Timestamp(10).age(Timestamp(5)), Duration::ZERO);
        assert_eq!(Timestamp(5).age(Timestamp(10)), Duration::from_millis(5));
    }

    #[test]
    fn spans_read_as_people_say_them() {
        let said: Vec<_> =
            [0, 5, 59, 60, 3599, 3600, 86_399, 86_400, 864_000].map(|s| human(Duration::from_secs(s))).into();
        assert_eq!(said, ["now", "5s", "59s", "1m", "59m", "1h", "23h", "1d", "10d"]);
    }

    proptest! {
        #[test]
        fn every_moment_reads_back(ms in 0i64..253_402_300_800_000) {
            prop_assert_eq!(Timestamp(ms).to_string().parse::<Timestamp>().unwrap(), Timestamp(ms));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = text.parse::<Timestamp>();
        }
    }
}
