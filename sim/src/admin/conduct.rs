//! `/conduct`.

use serde::Deserialize;
use serde_json::json;

use super::{AdminReply, AdminRequest, Scope, json_reply, problem};
use crate::conduct::{BadTest, Format, RULES, Report, Severity};
use crate::journal::decoded;

/// Whether a path is one of these.
pub(super) fn is_ours(path: &str) -> bool {
    path == "/conduct" || path.starts_with("/conduct/")
}

/// What a query asks for.
#[derive(Debug, Default)]
struct Wanted {
    format: Option<Format>,
    client: Option<String>,
    test: Option<String>,
    fail_on: Option<Severity>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestBody {
    name: String,
    client: Option<String>,
}

pub(super) fn handle(scope: &Scope<'_>, request: AdminRequest<'_>) -> AdminReply {
    if scope.dealer().is_some() {
        return problem(404, "conduct is judged over all dealers; ask for /conduct");
    }
    let (desk, journal) = (&scope.world.conduct, &scope.world.journal);
    if !journal.is_on() {
        return problem(404, "conduct is judged by the journal, which is switched off (--journal 0)");
    }
    let wanted = match Wanted::parse(request.query) {
        Ok(wanted) => wanted,
        Err(faults) => return problem(400, &faults),
    };
    let is_read = matches!(request.method, "GET" | "HEAD");
    match request.path {
        "/conduct" if is_read => {
            match desk.report(journal, wanted.test.as_deref(), wanted.client.as_deref()) {
                Ok(report) => wanted.reply(&report),
                Err(error) => refuse(&error),
            }
        }
        "/conduct/rules" if is_read => json_reply(200, &json!({ "rules": RULES })),
        "/conduct" | "/conduct/rules" => AdminReply { allow: Some("GET, HEAD"), ..problem(405, "use GET") },
        "/conduct/begin" | "/conduct/end" if request.method != "POST" => {
            AdminReply { allow: Some("POST"), ..problem(405, "use POST") }
        }
        "/conduct/begin" | "/conduct/end" => {
            let body = match serde_json::from_slice::<TestBody>(request.body) {
                Ok(body) => body,
                Err(error) => {
                    return problem(
                        400,
                        &format!(
                            "{error}; the body is {{\"name\": \"...\", \"client\": \"...\"}}, client being optional"
                        ),
                    );
                }
            };
            if request.path == "/conduct/end" {
                return match desk.end(journal, &body.name) {
                    Ok(report) => wanted.reply(&report),
                    Err(error) => refuse(&error),
                };
            }
            match desk.begin(journal, &body.name, body.client.as_deref()) {
                Ok(()) => json_reply(200, &json!({ "status": "ok", "test": body.name })),
                Err(error) => refuse(&error),
            }
        }
        _ => problem(
            404,
            "no such resource; there are /conduct, /conduct/rules, /conduct/begin and /conduct/end",
        ),
    }
}

fn refuse(error: &BadTest) -> AdminReply {
    let status = match error {
        BadTest::Name => 400,
        BadTest::Unknown(_) => 404,
        BadTest::Running(_) | BadTest::TooMany => 409,
    };
    problem(status, &error.to_string())
}

impl Wanted {
    fn parse(query: &str) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        let mut faults = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value);
            match name {
                "format" => match Format::from_word(&value) {
                    Some(format) => wanted.format = Some(format),
                    None => faults.push(format!("format={value:?} is none of json, text, html, junit")),
                },
                "fail_on" => match Severity::from_word(&value) {
                    Some(severity) => wanted.fail_on = Some(severity),
                    None => faults.push(format!("fail_on={value:?} is none of violation, warning, advice")),
                },
                "client" => wanted.client = Some(value),
                "test" => wanted.test = Some(value),
                _ => {
                    faults.push(format!("{name:?} is no parameter; there are format, client, test, fail_on"));
                }
            }
        }
        if faults.is_empty() { Ok(wanted) } else { Err(faults.join("; ")) }
    }

    /// The report; 409 when what `fail_on` names was broken, so that `curl --fail-with-body` fails.
    fn reply(&self, report: &Report) -> AdminReply {
        let format = self.format.unwrap_or(Format::Json);
        let is_broken = self.fail_on.is_some_and(|severity| report.breaks(severity));
        AdminReply {
            status: if is_broken { 409 } else { 200 },
            content_type: format.media_type(),
            allow: None,
            etag: None,
            body: report.write(format).into_bytes(),
        }
    }
}
