//! The header rules of section b: which A2A version and which extension a request selects, and when that is refused.

use super::contract::{Contract, HeaderMode};
use super::error::ProtocolError;

/// The header that names the A2A version.
pub const VERSION: &str = "A2A-Version";
/// The header that activates extensions.
pub const EXTENSIONS: &str = "A2A-Extensions";
/// The one A2A version that is served.
pub const SERVED_VERSION: &str = "1.0";

/// Without the white space that HTTP allows around a field value (RFC 9110, section 5.6.3).
pub fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Whether a trimmed `A2A-Version` is one that is served: Major.Minor must be 1.0; a patch number takes no part in the choice
/// (seed 000).
pub fn is_served(version: &[u8]) -> bool {
    match version.strip_prefix(SERVED_VERSION.as_bytes()) {
        Some([]) => true,
        Some([b'.', patch @ ..]) => !patch.is_empty() && patch.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Checks the lines of `A2A-Version`. An absent header is refused by a strict endpoint; an empty one means 0.3, so it is
/// refused by both kinds that look; two lines must agree. An endpoint that overlooks headers takes anything.
///
/// # Errors
/// -32009.
pub fn check_version<'a>(
    mode: HeaderMode,
    mut lines: impl Iterator<Item = &'a [u8]>,
) -> Result<(), ProtocolError> {
    if mode == HeaderMode::Ignored {
        return Ok(());
    }
    let Some(first) = lines.next().map(trim) else {
        return match mode {
            HeaderMode::Strict => Err(ProtocolError::version_not_supported(None)),
            HeaderMode::Pinned | HeaderMode::Ignored => Ok(()),
        };
    };
    let refuse = |value: &[u8]| {
        Err(ProtocolError::version_not_supported(Some(String::from_utf8_lossy(value).as_ref())))
    };
    if !is_served(first) {
        return refuse(first);
    }
    match lines.map(trim).find(|other| *other != first) {
        Some(other) => refuse(&[first, b", ", other].concat()),
        None => Ok(()),
    }
}

/// Checks the lines of `A2A-Extensions`: one comma-separated list over all lines. The contract's exact URI among the
/// members activates it; anything else in the name of AAP is a conflict, without fallback (A2A 4.6.3). Says whether the
/// contract was activated: by its URI or, where that may be left out, by silence; never where headers are overlooked.
///
/// # Errors
/// -32008.
pub fn check_extensions<'a>(
    contract: Contract,
    mode: HeaderMode,
    lines: impl Iterator<Item = &'a [u8]>,
) -> Result<bool, ProtocolError> {
    if mode == HeaderMode::Ignored {
        return Ok(false);
    }
    let mut given = false;
    let mut members = 0;
    let mut conflict = false;
    for line in lines {
        given = true;
        for member in members_of(line) {
            if member == contract.extension_uri.as_bytes() {
                return Ok(true);
            }
            members += 1;
            conflict |= speaks_of_aap(member);
        }
    }
    let accepted = match mode {
        HeaderMode::Strict | HeaderMode::Ignored => false,
        // Members that have nothing to do with AAP conflict with nothing; a list without any member is not an omission.
        HeaderMode::Pinned => !given || (members > 0 && !conflict),
    };
    if accepted { Ok(true) } else { Err(ProtocolError::extension_required(contract)) }
}

/// The members of one line of `A2A-Extensions`.
fn members_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b',').map(trim).filter(|member| !member.is_empty())
}

/// Whether one line of `A2A-Extensions` has the contract's exact URI among its members.
pub fn names_exactly(line: &[u8], contract: Contract) -> bool {
    let exact = contract.extension_uri.as_bytes();
    line == exact || members_of(line).any(|member| member == exact)
}

/// Whether a member that is not the exact URI is another version of AAP, or a near miss of it (quotes, case, suffix,
/// wrong separator): it names the protocol.
fn speaks_of_aap(member: &[u8]) -> bool {
    const NAME: &[u8] = b"autoagentprotocol";
    member.windows(NAME.len()).any(|window| window.eq_ignore_ascii_case(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(mode: HeaderMode, lines: &[&str]) -> bool {
        check_version(mode, lines.iter().map(|line| line.as_bytes())).is_ok()
    }

    #[test]
    fn every_row_of_the_version_table() {
        for mode in [HeaderMode::Strict, HeaderMode::Pinned] {
            for good in ["1.0", " 1.0\t", "1.0.7", "1.0.0"] {
                assert!(version(mode, &[good]), "{good:?}");
            }
            for bad in [
                "", "  ", "0.3", "1.1", "2.0", "1", "v1.0", "latest", "1.0,0.3", "1.0.", "1.0.x", "1.0.1.2",
                "10", "1..0", "1.0;q=1", "١.٠", "01.0",
            ] {
                assert!(!version(mode, &[bad]), "{bad:?}");
            }
            assert!(!version(mode, &["1.0", "0.3"]));
            assert!(version(mode, &["1.0", "1.0"]));
        }
        assert!(!version(HeaderMode::Strict, &[]));
        assert!(version(HeaderMode::Pinned, &[]));
    }

    #[test]
    fn headers_that_are_overlooked_may_say_anything() {
        for lines in [&[][..], &["0.3"], &["1.0", "99"], &[""]] {
            assert!(version(HeaderMode::Ignored, lines), "{lines:?}");
        }
        let uri = Contract::V1_2.extension_uri;
        for lines in [&[][..], &[uri], &[Contract::V3_0.extension_uri], &["", "x"]] {
            let lines = lines.iter().map(|line| line.as_bytes());
            assert_eq!(check_extensions(Contract::V1_2, HeaderMode::Ignored, lines), Ok(false));
        }
    }

    #[test]
    fn every_row_of_the_extension_table() {
        let check = |mode, lines: &[&str]| {
            check_extensions(Contract::V3_0, mode, lines.iter().map(|line| line.as_bytes())).is_ok()
        };
        let uri = Contract::V3_0.extension_uri;
        let other = Contract::V2_0.extension_uri;
        for mode in [HeaderMode::Strict, HeaderMode::Pinned] {
            assert!(check(mode, &[uri]));
            assert!(check(mode, &[&format!("urn:x ,\t{uri}, ,urn:y")]));
            assert!(check(mode, &["urn:x", uri]));
            assert!(check(mode, &[&format!("{other},{uri}")]));
            for bad in [
                other,
                "https://autoagentprotocol.org/extensions/aap/v3.1",
                &format!("{uri}/"),
                &format!("{uri};urn:x"),
                &format!("{uri} urn:x"),
                &format!("\"{uri}\""),
                &uri.to_uppercase(),
                "",
                " , ,",
            ] {
                assert!(!check(mode, &[bad]), "{mode} {bad:?}");
            }
        }
        assert!(!check(HeaderMode::Strict, &[]));
        assert!(check(HeaderMode::Pinned, &[]));
        assert!(!check(HeaderMode::Strict, &["urn:x"]));
        assert!(check(HeaderMode::Pinned, &["urn:x"]));
    }
}
