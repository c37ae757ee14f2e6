//! The source agent of a lead as contract 1.0 has it. Scenarios say it as every later contract does.

use serde_json::Value;

use super::mark::AGENT;

/// Turns the object `source_agent` into its name, and names the agent in the consent, too, unless that is done. What is
/// invalid on purpose stays as it is. With `marked` a name that was a text before bears the test mark, as an object's does.
pub(crate) fn as_text(lead: &mut Value, marked: bool) {
    let Value::Object(members) = lead else { return };
    let Some(agent) = members.get_mut("source_agent") else { return };
    match agent {
        Value::Object(own) if own.get("name").is_some_and(Value::is_string) => {
            *agent = own["name"].take();
        }
        Value::String(name) if marked => name.push_str(AGENT),
        _ => {}
    }
    let agent = agent.clone();
    if let Some(Value::Object(consent)) = members.get_mut("consent")
        && agent.is_string()
    {
        consent.entry("source_agent").or_insert(agent);
    }
}

/// The same for a lead that was written behind `from`; what is no JSON stays as it is.
pub(crate) fn write_as_text(out: &mut Vec<u8>, from: usize, marked: bool) {
    let Ok(mut lead) = serde_json::from_slice::<Value>(&out[from..]) else { return };
    as_text(&mut lead, marked);
    out.truncate(from);
    out.extend_from_slice(lead.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turned(lead: &Value, marked: bool) -> Value {
        let mut out = format!("x{lead}").into_bytes();
        write_as_text(&mut out, 1, marked);
        assert_eq!(out[0], b'x');
        serde_json::from_slice(&out[1..]).unwrap()
    }

    #[test]
    fn the_agent_becomes_a_text_in_lead_and_consent() {
        let lead =
            json!({"consent": {"scope": []}, "source_agent": {"name": "me", "url": "https://x.example"}});
        let text = json!({"consent": {"scope": [], "source_agent": "me"}, "source_agent": "me"});
        assert_eq!(turned(&lead, false), text);
        assert_eq!(turned(&text, false), text);
        let marked = turned(&json!({"consent": {}, "source_agent": "me"}), true);
        assert_eq!(marked, json!({"consent": {"source_agent": "me (test)"}, "source_agent": "me (test)"}));
        let own = json!({"consent": {"source_agent": "you"}, "source_agent": {"name": "me"}});
        assert_eq!(turned(&own, false)["consent"]["source_agent"], "you");
        for invalid in [json!({"source_agent": 7, "consent": {}}), json!({"consent": {}}), json!([])] {
            assert_eq!(turned(&invalid, true), invalid);
        }
        let mut torn = b"{\"source_agent\"".to_vec();
        write_as_text(&mut torn, 0, false);
        assert_eq!(torn, b"{\"source_agent\"");
    }
}
