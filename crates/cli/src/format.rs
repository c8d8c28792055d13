//! Short decimal numbers.

/// `value` with at most `digits` significant digits, trailing zeros dropped: what C's
/// `%g` and a C++ stream print.
pub fn general(value: f64, digits: usize) -> String {
    if !value.is_finite() || value == 0.0 {
        return format!("{value}").to_lowercase();
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} has an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} has a number there");
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

/// A number's text with commas between the thousands of its whole part; one with an exponent as it is.
pub fn with_separators(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, rest) = match digits.find('.') {
        Some(point) => digits.split_at(point),
        None => (digits, ""),
    };
    match whole.parse::<u64>() {
        Ok(number) => format!("{sign}{}{rest}", grouped(number)),
        Err(_) => text.to_owned(),
    }
}

/// `value` with `digits` significant digits and an exponent of two digits or more: what C's `%e` prints.
pub fn exponential(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits - 1);
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, size) = match exponent.strip_prefix('-') {
                Some(size) => ('-', size),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{size:0>2}")
        }
        None => text.to_lowercase(),
    }
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// `count` with thin grouping: 4194304 becomes `4,194,304`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 block`, `4,096 blocks`, …
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// `value`, which is not negative, in so many significant digits and with commas; a larger one as a whole number.
pub fn figure(value: f64, digits: usize) -> String {
    if value.is_finite() && value.round() >= 10f64.powi(digits as i32) {
        // Casts saturate.
        grouped(value.round() as u64)
    } else {
        with_separators(&general(value, digits))
    }
}

/// Microseconds in five digits, large ones as whole numbers.
pub fn microseconds(seconds: f64) -> String {
    figure(1e6 * seconds, 5)
}

/// `1 PE`, `2 PEs`, …
pub fn pes(count: usize) -> String {
    if count == 1 {
        "1 PE".to_owned()
    } else {
        format!("{count} PEs")
    }
}

/// `value` with an SI prefix, three digits and `unit`: 1.34e10 of `B/s` is `13.4 GB/s`.
///
/// A unit of several words begins with a space: 1.34e10 of ` cells/s` is `13.4 G cells/s`.
pub fn si(value: f64, unit: &str) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.into_iter().find(|(scale, _)| value >= *scale) {
        Some((scale, prefix)) => format!("{} {prefix}{unit}", general(value / scale, 3)),
        None => format!("{} {}", general(value, 3), unit.trim_start()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_put_into_whole_parts() {
        for (text, expected) in [
            ("0", "0"),
            ("1000", "1,000"),
            ("-1234567.125", "-1,234,567.125"),
            ("0.00012", "0.00012"),
            ("1e+06", "1e+06"),
            ("nan", "nan"),
        ] {
            assert_eq!(with_separators(text), expected);
        }
    }

    #[test]
    fn exponential_is_what_printf_e_prints() {
        for (value, text) in [
            (0.0011, "1.1e-03"),
            (7.449e-9, "7.4e-09"),
            (1.0, "1.0e+00"),
            (1e-120, "1.0e-120"),
            (-25.0, "-2.5e+01"),
            (0.0, "0.0e+00"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(exponential(value, 2), text);
        }
    }

    #[test]
    fn prints_what_a_cpp_stream_prints() {
        // Right-hand sides from `std::cout << value`.
        for (value, text) in [
            (0.002729579, "0.00272958"),
            (0.00034546, "0.00034546"),
            (0.0001078301, "0.00010783"),
            (0.0000999, "9.99e-05"),
            (1234567.0, "1.23457e+06"),
            (999999.5, "1e+06"),
            (123456.0, "123456"),
            (0.0, "0"),
            (-2.5, "-2.5"),
            (1e-10, "1e-10"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(general(value, 6), text);
        }
    }

    #[test]
    fn figures_have_separators_and_no_exponents_where_they_are_large() {
        for (value, digits, text) in [
            (0.0, 4, "0"),
            (0.001234, 3, "0.00123"),
            (55.0208, 4, "55.02"),
            (4612.4, 4, "4,612"),
            (9999.6, 4, "10,000"),
            (205_130.4, 5, "205,130"),
            (f64::INFINITY, 4, "inf"),
        ] {
            assert_eq!(figure(value, digits), text);
        }
    }

    #[test]
    fn groups_and_prefixes() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(4194304), "4,194,304");
        assert_eq!(grouped(123456), "123,456");
        assert_eq!(si(1.34e10, " cells/s"), "13.4 G cells/s");
        assert_eq!(si(950.0, " cells/s"), "950 cells/s");
        assert_eq!(si(2.5e3, "B/s"), "2.5 kB/s");
    }
}
