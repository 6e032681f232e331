//! Query strings, read strictly: a misspelt filter must never become no filter.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::str::FromStr;

use percent_encoding::percent_decode;

use super::ApiError;

/// The parameters of a request, each known and given once.
#[derive(Debug)]
pub struct Params {
    pairs: Vec<(&'static str, String)>,
}

impl Params {
    /// Reads a query in which these parameters may stand.
    ///
    /// # Errors
    /// `bad_query`: a parameter that is not known, stands twice, or is no UTF-8.
    pub fn read(query: Option<&str>, known: &[&'static str]) -> Result<Self, ApiError> {
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in decoded(query.unwrap_or_default()) {
            let name = name.ok_or_else(|| ApiError::bad_query("a parameter's name is not UTF-8"))?;
            let Some(name) = known.iter().copied().find(|known| *known == name) else {
                return Err(ApiError::bad_query(format!("{name:?} is no parameter here; {}", listed(known))));
            };
            if pairs.iter().any(|(earlier, _)| *earlier == name) {
                return Err(ApiError::bad_query(format!("`{name}` stands twice")));
            }
            let value = value.ok_or_else(|| ApiError::bad_query(format!("the value of `{name}` is not UTF-8")))?;
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter, read as what it must be, which `wanted` says in words.
    ///
    /// # Errors
    /// `bad_query`: it is something else.
    pub fn parsed<T: FromStr>(&self, name: &str, wanted: &str) -> Result<Option<T>, ApiError> {
        self.get(name)
            .map(|value| value.parse().map_err(|_| ApiError::bad_query(format!("`{name}` must be {wanted}"))))
            .transpose()
    }

    /// The value of a parameter, read as a whole number in decimal digits within these bounds.
    ///
    /// # Errors
    /// `bad_query`: it is something else.
    pub fn number(&self, name: &str, within: RangeInclusive<u64>) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        // Rust reads a leading plus sign too.
        let digits = value.bytes().all(|b| b.is_ascii_digit()).then_some(value);
        match digits.and_then(|digits| digits.parse().ok()).filter(|number| within.contains(number)) {
            Some(number) => Ok(Some(number)),
            None if *within.end() == u64::MAX => Err(ApiError::bad_query(format!("`{name}` must be a whole number"))),
            None => Err(ApiError::bad_query(format!(
                "`{name}` must be a whole number from {} to {}",
                within.start(),
                within.end()
            ))),
        }
    }
}

/// The pairs of a query as `application/x-www-form-urlencoded` has it; nothing in place of what is no UTF-8.
pub fn decoded(query: &str) -> impl Iterator<Item = (Option<String>, Option<String>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_decode(spaced.as_bytes()).decode_utf8().ok().map(|decoded| decoded.into_owned())
}

fn listed(known: &[&str]) -> String {
    let mut text = match known {
        [] => return "there are none".to_owned(),
        _ => String::from("there are "),
    };
    for (at, name) in known.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}`{name}`");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const KNOWN: [&str; 2] = ["after", "q"];

    fn detail(query: &str) -> String {
        Params::read(Some(query), &KNOWN).unwrap_err().problem().detail.clone()
    }

    #[test]
    fn what_is_known_is_read_once_and_decoded() {
        let params = Params::read(Some("q=a%20b+c%2B&&after=7&"), &KNOWN).unwrap();
        assert_eq!(params.get("q"), Some("a b c+"));
        assert_eq!(params.number("after", 0..=u64::MAX).unwrap(), Some(7));
        assert_eq!(Params::read(None, &KNOWN).unwrap().get("q"), None);
    }

    #[test]
    fn a_misspelt_name_is_refused_and_the_known_ones_are_told() {
        assert_eq!(detail("afer=7"), "\"afer\" is no parameter here; there are `after`, `q`");
        assert_eq!(detail("Q=7"), "\"Q\" is no parameter here; there are `after`, `q`");
        assert_eq!(detail("q=1&%71=2"), "`q` stands twice");
        assert!(detail("q=%ff").contains("UTF-8"));
        assert!(detail("%ff").contains("UTF-8"));
        let none = Params::read(Some("x"), &[]).unwrap_err();
        assert_eq!(none.problem().detail, "\"x\" is no parameter here; there are none");
    }

    #[test]
    fn numbers_are_digits_within_bounds() {
        for bad in ["", "+1", "-1", "1.0", "0x1", "1e3", " 1", "\u{ff11}", "0", "301", "18446744073709551616"] {
            let params = Params { pairs: vec![("wait", bad.to_owned())] };
            assert!(params.number("wait", 1..=300).is_err(), "{bad:?}");
        }
        let params = Params { pairs: vec![("wait", "300".to_owned())] };
        assert_eq!(params.number("wait", 1..=300).unwrap(), Some(300));
    }
}
