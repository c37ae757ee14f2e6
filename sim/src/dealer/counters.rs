//! What was answered, by skill and outcome. Relaxed atomics: the numbers are read for people and metrics, never to
//! decide.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::protocol::Skill;
use crate::protocol::error::AapCode;

const OUTCOMES: usize = 1 + AapCode::ALL.len();

/// Counters of one dealer.
#[derive(Debug, Default)]
pub struct Counters {
    skills: [[AtomicU64; OUTCOMES]; 5],
    protocol: [AtomicU64; PROTOCOL_CODES.len()],
    told: AtomicU64,
    calls: AtomicU64,
}

/// Numbers of errors raised before a skill is reached.
const PROTOCOL_CODES: [i32; 12] = {
    use crate::protocol::error::code;
    use crate::protocol::mcp::code as mcp;
    [
        code::PARSE,
        code::INVALID_REQUEST,
        code::METHOD_NOT_FOUND,
        code::INVALID_PARAMS,
        code::TASK_NOT_FOUND,
        code::PUSH_NOT_SUPPORTED,
        code::UNSUPPORTED_OPERATION,
        code::CONTENT_TYPE_NOT_SUPPORTED,
        code::EXTENSION_REQUIRED,
        code::VERSION_NOT_SUPPORTED,
        mcp::HEADER_MISMATCH,
        mcp::UNSUPPORTED_VERSION,
    ]
};

impl Counters {
    /// Counts a call that reached a skill: with no code it was answered with a result.
    pub fn skill(&self, skill: Skill, code: Option<AapCode>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let outcome = code.map_or(0, |code| code as usize + 1);
        self.skills[skill as usize][outcome].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that was refused before a skill was chosen.
    pub fn refused(&self, code: i32) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(index) = PROTOCOL_CODES.iter().position(|known| *known == code) {
            self.protocol[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts what was answered without a skill: a handshake, a list of tools.
    pub fn told(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    /// All calls.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Every counter that is not zero: skill id (empty when none was chosen), outcome, count.
    pub fn list(&self) -> Vec<(&'static str, String, u64)> {
        let mut all = Vec::new();
        for skill in Skill::ALL {
            for (index, counter) in self.skills[skill as usize].iter().enumerate() {
                let outcome = match index {
                    0 => "ok".to_owned(),
                    _ => format!("aap.{}", AapCode::ALL[index - 1].name()),
                };
                all.push((skill.id(), outcome, counter.load(Ordering::Relaxed)));
            }
        }
        for (code, counter) in PROTOCOL_CODES.iter().zip(&self.protocol) {
            all.push(("", format!("rpc.{code}"), counter.load(Ordering::Relaxed)));
        }
        all.push(("", "ok".to_owned(), self.told.load(Ordering::Relaxed)));
        all.retain(|(_, _, count)| *count > 0);
        all
    }
}
