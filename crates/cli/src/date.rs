//! A moment as people read it.

/// A Unix time in UTC: `2009-01-03 18:15:05 UTC`.
pub(crate) fn utc(time: u32) -> String {
    const DAY: u32 = 86_400;
    let (days, second) = (time / DAY, time % DAY);
    let (mut year, mut day) = (1970, days);
    while day >= days_in(year) {
        day -= days_in(year);
        year += 1;
    }
    let february = days_in(year) - 337;
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let day = day + 1;
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

const fn days_in(year: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    if leap { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_before_and_after_leap_days() {
        for (time, date) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (1_231_006_505, "2009-01-03 18:15:05 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (u32::MAX, "2106-02-07 06:28:15 UTC"),
        ] {
            assert_eq!(utc(time), date);
        }
    }
}
