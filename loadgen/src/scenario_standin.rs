//! Stand-in until the scenario language lands.
#![allow(missing_docs, clippy::all, dead_code)]
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use dealer_sim::protocol::Skill;
use serde_json::Value;

#[derive(Debug)]
pub struct LoadError(String);
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for LoadError {}
#[derive(Debug)]
pub struct Workload {
    name: String,
    flows: Vec<Flow>,
}
#[derive(Debug)]
pub struct Flow {
    items: Vec<Item>,
}
impl Flow {
    pub fn name(&self) -> &str {
        "main"
    }
    pub fn weight(&self) -> u64 {
        1
    }
    pub fn items(&self) -> &[Item] {
        &self.items
    }
}
pub fn load(paths: &[PathBuf], _sets: &[(String, String)]) -> Result<Workload, LoadError> {
    for path in paths {
        std::fs::metadata(path).map_err(|e| LoadError(format!("{}: {e}", path.display())))?;
    }
    let stem = paths[0].file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let search = Item::Step(Step { id: 0, name: "search", skill: Skill::InventorySearch });
    let lead = Item::Step(Step { id: 1, name: "lead", skill: Skill::LeadSubmit });
    let items = if stem == "smoke" {
        vec![search]
    } else {
        vec![search, Item::Think(Think), lead]
    };
    Ok(Workload { name: stem, flows: vec![Flow { items }] })
}
impl Workload {
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }
    pub fn submits_leads(&self) -> bool {
        self.name != "smoke"
    }
    pub fn begin(&self, _seed: u64, _ordinal: u64) -> Session {
        Session
    }
    pub fn explain(&self, _seed: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        writeln!(out, "scenario {}", self.name)
    }
}
#[derive(Debug)]
pub struct Session;
impl Session {
    pub fn flow(&self) -> usize {
        0
    }
    pub fn extracted(&self, _name: &str) -> Option<&Value> {
        None
    }
}
#[derive(Debug)]
pub enum Item {
    Step(Step),
    Think(Think),
}
#[derive(Debug)]
pub struct Think;
impl Think {
    pub fn draw(&self, _session: &mut Session) -> Duration {
        Duration::from_millis(20)
    }
}
#[derive(Debug)]
pub struct Step {
    id: usize,
    name: &'static str,
    skill: Skill,
}
pub struct ReplyParts<'a> {
    pub body: &'a [u8],
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
}
#[derive(Debug)]
pub struct CheckFailed {
    pub name: String,
}
impl Step {
    pub fn name(&self) -> &str {
        self.name
    }
    pub fn skill(&self) -> Skill {
        self.skill
    }
    pub fn id(&self) -> usize {
        self.id
    }
    pub fn label(&self) -> String {
        format!("main/{}", self.name)
    }
    pub fn is_due(&self, _session: &Session) -> bool {
        true
    }
    pub fn render(&self, _session: &mut Session, _now: jiff::Timestamp, _mark_test: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(self.skill.request_type().as_bytes());
        out.extend_from_slice(b"\",\"pagination\":{\"limit\":2}}");
    }
    pub fn reads_reply(&self) -> bool {
        false
    }
    pub fn read_reply(&self, _session: &mut Session, _reply: ReplyParts<'_>) -> Result<(), CheckFailed> {
        Ok(())
    }
    pub fn expects(&self, outcome: &str) -> bool {
        outcome == "ok"
    }
    pub fn on_error_continue(&self) -> bool {
        false
    }
}
