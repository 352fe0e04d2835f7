//! Numbers of foreign documents, exact and within bounds: whatever is typed there is refused or fits.

use serde_json::Value;

use super::Malformed;

/// A microsecond.
pub(super) const US: u64 = 1_000;
/// A second.
pub(super) const S: u64 = 1_000_000_000;

/// More than a thousand years: nothing that is added up from such numbers can overflow.
const MAX_NS: u64 = 1 << 55;

/// A decimal number of units in nanoseconds, cut below; none where it is no such number or too large.
pub(super) fn ns(text: &str, unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    // Picoseconds are finer than anything that is measured here.
    let fraction = &fraction[..fraction.len().min(12)];
    let whole: u128 = whole.parse().ok()?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part: u128 = format!("0{fraction}").parse().ok()?;
    let ns = whole.checked_mul(scale)?.checked_add(part)?;
    let ns = ns.checked_mul(unit_ns.into())? / scale;
    u64::try_from(ns).ok().filter(|ns| *ns <= MAX_NS)
}

/// A whole number below 2⁵³, which is more than anybody counts.
pub(super) fn count(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|n| is_number && *n < 1 << 53)
}

/// The number under `key` of a JSON object, in nanoseconds.
pub(super) fn ns_at(object: &Value, key: &str, unit_ns: u64) -> Result<u64, Malformed> {
    let value = field(object, key)?;
    let number = value.as_number().and_then(|n| ns(&n.to_string(), unit_ns));
    number.ok_or_else(|| Malformed::number(key, value))
}

/// The whole number under `key` of a JSON object.
pub(super) fn count_at(object: &Value, key: &str) -> Result<u64, Malformed> {
    let value = field(object, key)?;
    let number = value.as_number().and_then(|n| count(&n.to_string()));
    number.ok_or_else(|| Malformed::number(key, value))
}

/// What is under `key` of a JSON object.
pub(super) fn field<'a>(object: &'a Value, key: &str) -> Result<&'a Value, Malformed> {
    object
        .get(key)
        .ok_or_else(|| Malformed(format!("the key '{key}' is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_cut_below_a_nanosecond() {
        assert_eq!(ns("5.183100", US), Some(5_183));
        assert_eq!(ns("28.64", US), Some(28_640));
        assert_eq!(ns("0.103", S), Some(103_000_000));
        assert_eq!(ns("17400.93", 1), Some(17_400));
        assert_eq!(ns("7", S), Some(7_000_000_000));
    }

    #[test]
    fn what_is_no_number_or_too_large_is_refused() {
        for text in [
            "", ".", ".5", "-1", "1e9", "nan", "inf", "1.2.3", "١", "1,5",
        ] {
            assert_eq!(ns(text, US), None, "{text}");
        }
        assert_eq!(ns(&"9".repeat(400), 1), None);
        assert_eq!(ns("36028797018963969", 1), None);
        assert_eq!(ns(&format!("1.{}", "3".repeat(400)), US), Some(1_333));
        assert_eq!(count("9007199254740992"), None);
        assert_eq!(count("+5"), None);
        assert_eq!(count(""), None);
    }

    #[test]
    fn keys_of_json_are_named_where_they_are_missing_or_odd() {
        let object = serde_json::json!({"min": -3, "avg": 1e300, "max": "12", "n": 1.5});
        for key in ["min", "avg", "max", "gone"] {
            let refused = ns_at(&object, key, US).unwrap_err();
            assert!(refused.to_string().contains(key), "{refused}");
        }
        assert!(count_at(&object, "n").is_err());
    }
}
