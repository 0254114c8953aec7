//! Names of tools in the form that model vendors accept.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Longest name that vendors accept.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// Hexadecimal digits of the digest at the end of a name that was changed.
const DIGEST_DIGITS: usize = 8;

/// Returns a text if it consists of letters, digits, `_` and `-` and is not too long. Otherwise
/// returns it shortened and cleaned, with a digest at its end.
pub(crate) fn accepted(plain: String) -> String {
    match plain.len() <= NAME_BYTES_MAX && plain.chars().all(is_accepted) {
        true => plain,
        false => digested(&plain),
    }
}

/// Returns a text shortened and cleaned, with a digest of all of it at its end.
pub(crate) fn digested(plain: &str) -> String {
    let digest = HEXLOWER.encode(&Sha256::digest(plain.as_bytes()));
    let clean: String = plain
        .chars()
        .map(|it| if is_accepted(it) { it } else { '_' })
        .take(NAME_BYTES_MAX - DIGEST_DIGITS - 1)
        .collect();
    format!("{clean}_{}", &digest[..DIGEST_DIGITS])
}

/// Whether vendors accept a character in a name.
fn is_accepted(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '_' | '-')
}
