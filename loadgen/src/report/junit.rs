//! `junit.xml`: the verdict, the thresholds and the checks as test cases, for CI systems that show such.

use std::io::{self, Write};

use super::RunResult;
use super::html::escape;

/// A test case: its class, its name, and what is wrong if it failed.
struct Case {
    class: &'static str,
    name: String,
    failure: Option<String>,
}

/// Writes the file.
pub(super) fn write(out: &mut impl Write, result: &RunResult) -> io::Result<()> {
    let cases = cases(result);
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let seconds = result.measured_nanos as f64 / 1e9;
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    let counts = format!(r#"tests="{}" failures="{failures}" errors="0""#, cases.len());
    writeln!(out, r#"<testsuites name="dealer-loadgen" {counts}>"#)?;
    writeln!(
        out,
        r#"  <testsuite name="{}" {counts} skipped="0" time="{seconds:.3}" timestamp="{}">"#,
        escape(&result.scenario),
        result.started
    )?;
    for case in &cases {
        let head = format!(r#"    <testcase classname="{}" name="{}""#, case.class, escape(&case.name));
        match &case.failure {
            None => writeln!(out, "{head}/>")?,
            Some(what) => {
                writeln!(out, "{head}>")?;
                writeln!(out, r#"      <failure message="{}"/>"#, escape(what))?;
                writeln!(out, "    </testcase>")?;
            }
        }
    }
    writeln!(out, "  </testsuite>")?;
    writeln!(out, "</testsuites>")
}

fn cases(result: &RunResult) -> Vec<Case> {
    let verdict = &result.verdict;
    let mut cases = vec![Case {
        class: "verdict",
        name: "the measurement is valid".to_owned(),
        failure: (!verdict.valid).then(|| verdict.reasons.join("; ")),
    }];
    cases.extend(result.thresholds.iter().map(|judged| Case {
        class: "threshold",
        name: judged.text.clone(),
        failure: (!judged.pass).then(|| judged.shown()),
    }));
    cases.extend(result.checks.iter().map(|check| Case {
        class: "check",
        name: format!("{} {}", check.step, check.name),
        failure:
            (check.failed > 0 && !check.is_expected).then(|| format!("{} replies failed it", check.failed)),
    }));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CheckResult, tests::result};
    use crate::threshold::{Judged, Unit};

    #[test]
    fn what_failed_is_a_failure_and_nothing_breaks_the_xml() {
        let mut result = result();
        result.scenario = "a & b \u{1}<\"c\">".to_owned();
        result.thresholds = vec![
            Judged {
                text: "p99<250ms".to_owned(),
                value: Some(300.0),
                pass: false,
                unit: Unit::Milliseconds,
            },
            Judged { text: "errors<1%".to_owned(), value: Some(0.0), pass: true, unit: Unit::Ratio },
        ];
        result.checks = vec![CheckResult {
            step: "f/s".to_owned(),
            name: "many".to_owned(),
            failed: 3,
            is_expected: false,
        }];
        let mut out = Vec::new();
        write(&mut out, &result).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#"tests="4" failures="2""#), "{text}");
        assert!(text.contains(r#"name="p99&lt;250ms">"#), "{text}");
        assert!(text.contains(r#"<failure message="300ms"/>"#), "{text}");
        assert!(text.contains(r#"name="a &amp; b &lt;&quot;c&quot;&gt;""#), "{text}");
        assert!(text.contains(r#"name="f/s many">"#) && text.contains("3 replies failed it"), "{text}");
        // Each tag that is opened is closed, and no `<` is left that is none of a tag.
        let opened = text.matches("<test").count() + text.matches("<failure").count();
        let closed = text.matches("/>").count() + text.matches("</test").count();
        assert_eq!(opened, closed, "{text}");
    }
}
