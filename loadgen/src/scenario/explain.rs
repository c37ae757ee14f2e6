//! What a workload will do, in words: the text of `check`.

use std::fmt;

use dealer_sim::protocol::Skill;
use jiff::Timestamp;
use serde_json::Value;

use super::draw::{Key, Purpose};
use super::raw::Replaced;
use super::step::{Item, Session, Step};
use super::workload::{Flow, Scenario, Workload};

/// The moment that example requests are rendered for, in seconds since 1970: 2026-01-01T12:00:00Z.
const EXAMPLE_MOMENT: i64 = 1_767_268_800;

impl Workload {
    /// Writes what will be sent: each scenario with its flows and their weights, and for each step an example of its
    /// request as session 0 of a run with this seed sends it. A value that comes from an earlier reply stands as
    /// `<name from the reply>`; times are those of a request sent at 2026-01-01T12:00:00Z.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn explain(&self, seed: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        for scenario in &self.scenarios {
            writeln!(out, "scenario {}", scenario.name)?;
            if !scenario.description.is_empty() {
                writeln!(out, "  {}", scenario.description.trim_end().replace('\n', "\n  "))?;
            }
            if self.scenarios.len() > 1 {
                writeln!(
                    out,
                    "  1 of {} scenarios, each with the same share of the sessions",
                    self.scenarios.len()
                )?;
            }
            self.explain_variables(scenario, seed, out)?;
            let total: u64 = scenario.flows.iter().map(|flow| self.flows[*flow].weight).sum();
            for index in &scenario.flows {
                let flow = &self.flows[*index];
                let permille = u128::from(flow.weight) * 1000 / u128::from(total.max(1));
                writeln!(
                    out,
                    "\n  flow {}: weight {} of {total} ({}.{} %)",
                    flow.name,
                    flow.weight,
                    permille / 10,
                    permille % 10
                )?;
                explain_items(flow, &mut self.session(*index, Key::new(seed, 0), 0), out)?;
            }
        }
        writeln!(out)?;
        if self.submits_leads {
            writeln!(out, "This workload submits leads: a real dealer's people will read them.")?;
        } else {
            writeln!(out, "This workload submits no leads.")?;
        }
        writeln!(out, "Examples: session 0 of seed {seed}, as sent at 2026-01-01T12:00:00Z.")
    }

    fn explain_variables(&self, scenario: &Scenario, seed: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        let flow = scenario.flows.first().copied().unwrap_or_default();
        let example = self.session(flow, Key::new(seed, 0), 0);
        for fed in &scenario.feeders {
            writeln!(
                out,
                "  feeder {}: {} rows, {:?}; for example {}",
                fed.name,
                fed.feeder.rows.len(),
                fed.feeder.pick,
                example.values[fed.slot]
            )?;
        }
        for variable in &scenario.variables {
            writeln!(out, "  variable {}: for example {}", variable.name, example.values[variable.slot])?;
        }
        Ok(())
    }
}

fn explain_items(flow: &Flow, session: &mut Session, out: &mut dyn fmt::Write) -> fmt::Result {
    for (number, item) in flow.items.iter().enumerate() {
        let number = number + 1;
        match item {
            Item::Think(think) => writeln!(out, "    {number}. think {}", think.text)?,
            Item::Pacing(pacing) => writeln!(
                out,
                "    {number}. pacing: goes on {} after the session, or this round of the loop, began",
                pacing.text
            )?,
            Item::Loop(repeated) => writeln!(
                out,
                "    {number}. loop {}: repeats what follows, up to {}",
                repeated.text, repeated.end
            )?,
            Item::EndLoop(start) => writeln!(out, "    {number}. end of the loop of {}", start + 1)?,
            Item::Step(step) => {
                write!(out, "    {number}. step {}: {}", step.name, step.skill)?;
                explain_step(step, session, out)?;
            }
        }
    }
    Ok(())
}

fn explain_step(step: &Step, session: &mut Session, out: &mut dyn fmt::Write) -> fmt::Result {
    let conditions: Vec<&str> = step.when.iter().map(|when| when.text.as_str()).collect();
    let when =
        if conditions.is_empty() { String::new() } else { format!(", when {}", conditions.join(" and ")) };
    writeln!(out, "{when}")?;
    let mut body = Vec::new();
    let now = Timestamp::from_second(EXAMPLE_MOMENT).unwrap_or(Timestamp::UNIX_EPOCH);
    step.render(session, now, false, &mut body);
    writeln!(out, "       sends {}", String::from_utf8_lossy(&body))?;
    if let Some(raw) = &step.raw {
        writeln!(out, "       replaces {} of the request", raw.names().join(", "))?;
        explain_raw(&step.replaced(session, now).unwrap_or_default(), out)?;
    }
    if let Some(retry) = &step.retry {
        let waits: Vec<String> = retry.delays.iter().map(|wait| format!("{wait:?}")).collect();
        let key = match (step.skill, retry.fresh_key) {
            (Skill::LeadSubmit, true) => ", each time with a fresh idempotency key",
            (Skill::LeadSubmit, false) => ", always with the same idempotency key",
            _ => "",
        };
        writeln!(
            out,
            "       is tried again up to {} times, honour {}, waits {}, jitter {}.{} %{key}",
            retry.max,
            retry.honour.name(),
            waits.join(", "),
            retry.jitter_permille / 10,
            retry.jitter_permille % 10
        )?;
    }
    for extract in &step.extracts {
        match extract.slot {
            Some(slot) => {
                session.values[slot] = Value::String(format!("<{} from the reply>", extract.name));
                writeln!(out, "       keeps {} = {}", extract.name, extract.path)?;
            }
            None => writeln!(out, "       does not keep {}: --set holds it", extract.name)?,
        }
    }
    for check in &step.checks {
        let mut env = session.env(session.draws(Purpose::When, step.position), Timestamp::UNIX_EPOCH);
        let tests: Vec<String> = check
            .tests
            .iter()
            .map(|(test, wanted)| format!("{} {}", test.name(), wanted.eval(&mut env)))
            .collect();
        writeln!(out, "       checks {}: {} {}", check.name, check.path, tests.join(" and "))?;
    }
    let expected: Vec<String> = step.expect.iter().map(ToString::to_string).collect();
    let then = if step.on_error_continue { "goes on" } else { "ends the session as failed" };
    writeln!(out, "       expects {}; anything else {then}", expected.join(", "))
}

fn explain_raw(replaced: &Replaced, out: &mut dyn fmt::Write) -> fmt::Result {
    for (what, text) in [("method", &replaced.method), ("path", &replaced.path)] {
        if let Some(text) = text {
            writeln!(out, "         {what} {text}")?;
        }
    }
    for (name, value) in &replaced.headers {
        match value {
            Some(value) => writeln!(out, "         header {name}: {value}")?,
            None => writeln!(out, "         no header {name}")?,
        }
    }
    if let Some(envelope) = &replaced.envelope {
        writeln!(out, "         envelope, merged: {envelope}")?;
    }
    if let Some(body) = &replaced.body {
        writeln!(out, "         body {:?}", String::from_utf8_lossy(body))?;
    }
    Ok(())
}
