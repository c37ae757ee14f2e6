//! The two A2A headers (AAP b).

use serde_json::Value;

use super::super::evidence::{ERROR_INFO, Evidence, Headers};
use super::super::rule::{Applies, Finding, Refusal, Rule};
use super::{SERVED, law, must, only, refused, served_or, should, silent};
use dealer_sim::protocol::Contract;

const VERSION: &[Refusal] = &[Refusal::Code(-32009)];
const EXTENSION: &[Refusal] = &[Refusal::Code(-32008)];
const EITHER: &[Refusal] = &[Refusal::Code(-32009), Refusal::Code(-32008)];

pub(super) const RULES: &[Rule] = &[
    // The released contracts have no rule about the two headers; their pages show calls without them. A dealer behind an A2A
    // library may ask for A2A-Version all the same (A2A 3.6.2).
    only(
        Applies::BEFORE_2_0,
        should(
            "headers.none-needed",
            "a call without the two A2A headers is served",
            "AAP a; json-rpc page of 1.0 to 1.3",
            SERVED,
        ),
    ),
    must("headers.names-in-any-case", "header names are read in any case", "AAP b; A2A 3.2.6", SERVED),
    only(
        Applies::FROM_2_0,
        must(
            "headers.version-missing",
            "A2A-Version absent: refused with -32009, unless the endpoint is pinned",
            "AAP b",
            law(|seen| omission(seen, "headers.version-missing", VERSION)),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.extensions-missing",
            "A2A-Extensions absent: refused with -32008, unless the endpoint is pinned",
            "AAP b",
            law(|seen| omission(seen, "headers.extensions-missing", EXTENSION)),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.both-missing",
            "both absent: refused with either error, unless the endpoint is pinned",
            "AAP b",
            law(|seen| omission(seen, "headers.both-missing", EITHER)),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.one-mode",
            "absent headers are all refused or all accepted: an endpoint is strict or pinned",
            "AAP b",
            law(one_mode),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.version-0.3",
            "A2A-Version 0.3 is refused with -32009",
            "AAP b; A2A 3.6.2",
            refused(VERSION),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.version-empty",
            "an empty A2A-Version means 0.3 and is refused",
            "AAP b; A2A 3.6.2",
            refused(VERSION),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must("headers.version-1.1", "A2A-Version 1.1 is refused with -32009", "AAP b", refused(VERSION)),
    ),
    only(
        Applies::FROM_2_0,
        must("headers.version-2.0", "A2A-Version 2.0 is refused with -32009", "AAP b", refused(VERSION)),
    ),
    only(
        Applies::FROM_2_0,
        silent(
            "headers.version-word",
            "a word as A2A-Version is refused with -32009",
            "AAP b",
            refused(VERSION),
        ),
    ),
    only(
        Applies::FROM_2_0,
        silent(
            "headers.version-major-only",
            "A2A-Version 1 is no Major.Minor and is refused",
            "AAP b",
            refused(VERSION),
        ),
    ),
    only(
        Applies::FROM_2_0,
        silent("headers.version-list", "a list as A2A-Version is refused", "AAP b", refused(VERSION)),
    ),
    only(
        Applies::FROM_2_0,
        silent(
            "headers.version-twice",
            "two different A2A-Version lines are refused",
            "AAP b",
            refused(VERSION),
        ),
    ),
    must(
        "headers.version-patch",
        "a patch number takes no part: 1.0.7 is accepted",
        "AAP b; A2A 3.6",
        SERVED,
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.version-query",
            "A2A-Version in the query does not stand for the header",
            "AAP b; A2A 9.2",
            law(|seen| omission(seen, "headers.version-query", VERSION)),
        ),
    ),
    must(
        "headers.extensions-list",
        "the exact URI in a list with blanks activates the contract",
        "AAP b",
        SERVED,
    ),
    must("headers.extensions-unknown-beside", "unknown URIs beside it are ignored", "AAP b", SERVED),
    must(
        "headers.extensions-two-lines",
        "several A2A-Extensions lines are one list",
        "AAP b; RFC 9110 5.3",
        SERVED,
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.extensions-other-version",
            "another AAP version is refused with -32008: no fallback",
            "AAP b; A2A 4.6.3",
            refused(EXTENSION),
        ),
    ),
    only(
        Applies::V2_0,
        must(
            "headers.extensions-version-beside",
            "the exact URI counts, whatever other version stands beside it",
            "AAP b",
            SERVED,
        ),
    ),
    only(
        Applies::V3_0,
        silent(
            "headers.extensions-version-beside-it",
            "the exact URI counts, whatever other version stands beside it",
            "AAP b",
            SERVED,
        ),
    ),
    only(
        Applies::FROM_2_0,
        should(
            "headers.extensions-slash",
            "a URI with a further slash is another URI",
            "AAP b",
            refused(EXTENSION),
        ),
    ),
    only(
        Applies::FROM_2_0,
        should(
            "headers.extensions-case",
            "a URI in other letter case is another URI",
            "AAP b; A2A 3.2.6",
            refused(EXTENSION),
        ),
    ),
    only(
        Applies::FROM_2_0,
        silent("headers.extensions-quoted", "a URI in quotes is another value", "AAP b", refused(EXTENSION)),
    ),
    only(
        Applies::FROM_2_0,
        silent("headers.extensions-empty", "an empty A2A-Extensions is refused", "AAP b", refused(EXTENSION)),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.extensions-unrelated",
            "URIs that have nothing to do with AAP activate nothing",
            "AAP b",
            law(|seen| omission(seen, "headers.extensions-unrelated", EXTENSION)),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.extensions-in-body",
            "Message.extensions activates nothing",
            "AAP b",
            law(|seen| omission(seen, "headers.extensions-in-body", EXTENSION)),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.extensions-old-name",
            "X-A2A-Extensions, the name of 0.3, activates nothing",
            "AAP b",
            law(|seen| omission(seen, "headers.extensions-old-name", EXTENSION)),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.before-payload",
            "a wrong extension is refused before the payload is read",
            "AAP b",
            refused(EXTENSION),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.before-skill",
            "a wrong version is refused before a skill runs",
            "AAP b",
            refused(VERSION),
        ),
    ),
    silent("headers.content-type-charset", "Content-Type with a charset is accepted", "AAP b", SERVED),
    silent(
        "headers.content-type-text",
        "Content-Type text/plain is refused with HTTP 415, or overlooked",
        "AAP b",
        served_or(&[Refusal::Http(415), Refusal::Code(-32005), Refusal::Code(-32600)]),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.version-error-info",
            "-32009 comes with ErrorInfo VERSION_NOT_SUPPORTED of a2a-protocol.org",
            "AAP b; A2A 9.5",
            law(|seen| error_info(seen, -32009, "VERSION_NOT_SUPPORTED")),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "headers.extension-error-info",
            "-32008 comes with ErrorInfo EXTENSION_SUPPORT_REQUIRED of a2a-protocol.org",
            "AAP b; A2A 9.5",
            law(|seen| error_info(seen, -32008, "EXTENSION_SUPPORT_REQUIRED")),
        ),
    ),
    only(
        Applies::FROM_2_0,
        should(
            "headers.extension-error-helps",
            "-32008 names the URI and the header in message and metadata",
            "AAP b",
            law(extension_error_helps),
        ),
    ),
    only(
        Applies::FROM_2_0,
        should("headers.echo", "a reply echoes the activated URI in A2A-Extensions", "AAP b", law(echo)),
    ),
    must("headers.echo-true", "an echo names what was activated", "AAP b", law(echo_true)),
];

/// What is to be thought of a request that lacks a header: a mode of the endpoint (AAP b), which 3.0 leaves open.
fn omission(seen: &Evidence, label: &str, refusals: &[Refusal]) -> Finding {
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    if let Some(why) = exchange.unjudgeable() {
        return Finding::NotRun(why);
    }
    if exchange.typed_code().is_some() {
        return Finding::not_run(format!("the dealer answered {}", exchange.said()));
    }
    let is_refused = refusals
        .iter()
        .any(|refusal| matches!(refusal, Refusal::Code(code) if exchange.error_number() == Some(*code)));
    let (may_serve, may_refuse) = match seen.headers {
        Headers::Strict => (false, true),
        Headers::Pinned => (true, false),
        Headers::Usual => (seen.contract != Contract::V2_0, true),
    };
    if (exchange.is_served() && may_serve) || (is_refused && may_refuse) {
        Finding::Pass
    } else {
        let wanted = if may_serve && may_refuse {
            "an acceptance or the header's error"
        } else if may_serve {
            "an acceptance (the endpoint is pinned)"
        } else {
            "the header's error"
        };
        Finding::fail(format!("expected {wanted}; {}", exchange.quote()))
    }
}

fn one_mode(seen: &Evidence) -> Finding {
    let labels = ["headers.version-missing", "headers.extensions-missing", "headers.both-missing"];
    let judged: Vec<_> = labels
        .iter()
        .filter_map(|label| seen.of(label))
        .filter(|exchange| exchange.unjudgeable().is_none() && exchange.typed_code().is_none())
        .collect();
    let served = judged.iter().filter(|exchange| exchange.is_served()).count();
    if judged.len() < 2 {
        return Finding::not_run("fewer than two requests without headers were answered");
    }
    if served == 0 || served == judged.len() {
        return Finding::Pass;
    }
    Finding::Fail(judged.iter().map(|exchange| exchange.quote()).collect())
}

fn error_info(seen: &Evidence, code: i64, reason: &str) -> Finding {
    let errors: Vec<_> = seen.errors().filter(|exchange| exchange.error_number() == Some(code)).collect();
    let breaches = errors.iter().filter(|exchange| {
        !exchange.entries().iter().any(|entry| {
            let is = |name: &str, wanted: &str| entry.get(name).and_then(Value::as_str) == Some(wanted);
            is("@type", ERROR_INFO) && is("reason", reason) && is("domain", "a2a-protocol.org")
        })
    });
    let breaches = breaches.map(|exchange| exchange.quote()).collect();
    Finding::of(breaches, errors.len(), "no such error was seen")
}

fn extension_error_helps(seen: &Evidence) -> Finding {
    let uri = seen.contract.extension_uri;
    let errors: Vec<_> = seen.errors().filter(|exchange| exchange.error_number() == Some(-32008)).collect();
    let breaches = errors.iter().filter(|exchange| {
        let text = exchange.error().and_then(|error| error.get("message")?.as_str()).unwrap_or_default();
        let metadata = exchange.entry(ERROR_INFO).and_then(|entry| entry.get("metadata"));
        let has = |name: &str, wanted: &str| {
            metadata.and_then(|metadata| metadata.get(name)?.as_str()) == Some(wanted)
        };
        !(text.contains(uri)
            && text.contains("A2A-Extensions")
            && has("extensionUri", uri)
            && has("requiredHeader", "A2A-Extensions"))
    });
    Finding::of(breaches.map(|exchange| exchange.quote()).collect(), errors.len(), "no -32008 was seen")
}

fn is_echoed(echo: &str, uri: &str) -> bool {
    echo.split(',').any(|member| member.trim() == uri)
}

fn echo(seen: &Evidence) -> Finding {
    let uri = seen.contract.extension_uri;
    let calls: Vec<_> = seen.results().filter(|exchange| exchange.is_ordinary).collect();
    let missing = calls.iter().filter(|exchange| {
        let echo = exchange.answered().and_then(|answer| answer.echo.as_deref());
        !echo.is_some_and(|echo| is_echoed(echo, uri))
    });
    let breaches = missing.take(3).map(|exchange| format!("[{}] no echo of {uri}", exchange.label)).collect();
    Finding::of(breaches, calls.len(), "no call was served")
}

fn echo_true(seen: &Evidence) -> Finding {
    let uri = seen.contract.extension_uri;
    let echoes: Vec<_> = seen
        .results()
        .filter_map(|exchange| Some((exchange, exchange.answered()?.echo.as_deref()?)))
        .filter(|(_, echo)| !echo.trim().is_empty())
        .collect();
    let wrong = echoes.iter().filter(|(_, echo)| !is_echoed(echo, uri));
    let breaches = wrong.take(3).map(|(exchange, echo)| format!("[{}] echoes {echo:?}", exchange.label));
    Finding::of(breaches.collect(), echoes.len(), "no reply has an echo")
}
