//! The way of a session along the items of its flow, loops included.

use jiff::Timestamp;
use serde_json::Value;

use super::draw::{Draws, Purpose};
use super::expr::{Template, is_true};
use super::step::{Item, Session};
use super::workload::Flow;

/// Rounds of one loop.
pub(crate) const MAX_ROUNDS: u32 = 1_000;

/// A loop: from here to its [`Item::EndLoop`], over and over.
#[derive(Debug)]
pub struct Loop {
    /// The item behind the loop.
    pub(crate) end: usize,
    pub(crate) position: usize,
    /// No more rounds than this.
    pub(crate) max: u32,
    /// Asked before each round.
    pub(crate) condition: Option<Template>,
    pub(crate) text: String,
}

/// Where a session stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cursor {
    at: usize,
    loops: Vec<Round>,
}

#[derive(Debug, Clone, Copy)]
struct Round {
    start: usize,
    /// Rounds begun.
    begun: u32,
}

impl Cursor {
    /// The number of this round over all loops around, 0 in the first round of each.
    fn round(&self) -> u32 {
        self.loops.iter().fold(0, |round, inner| round * MAX_ROUNDS + inner.begun.saturating_sub(1))
    }
}

impl Session {
    /// The next item of the session's flow; `None` at its end. A [`Loop`] comes each time one of its rounds begins.
    pub fn next<'w>(&mut self, flow: &'w Flow) -> Option<&'w Item> {
        loop {
            let at = self.cursor.at;
            let item = flow.items.get(at)?;
            match item {
                Item::Loop(repeated) => {
                    let begun = match self.cursor.loops.last() {
                        Some(round) if round.start == at => round.begun,
                        _ => {
                            self.cursor.loops.push(Round { start: at, begun: 0 });
                            0
                        }
                    };
                    if begun < repeated.max && self.wants(repeated, begun) {
                        if let Some(round) = self.cursor.loops.last_mut() {
                            round.begun += 1;
                        }
                        self.cursor.at = at + 1;
                        return Some(item);
                    }
                    self.cursor.loops.pop();
                    self.cursor.at = repeated.end;
                }
                Item::EndLoop(start) => self.cursor.at = *start,
                _ => {
                    self.cursor.at = at + 1;
                    return Some(item);
                }
            }
        }
    }

    /// How many loops are around the item that came last.
    pub fn depth(&self) -> usize {
        self.cursor.loops.len()
    }

    fn wants(&self, repeated: &Loop, begun: u32) -> bool {
        let Some(condition) = &repeated.condition else { return true };
        // The loop itself is on the stack already, with the rounds begun before this one.
        let outer = &self.cursor.loops[..self.cursor.loops.len() - 1];
        let round = Cursor { at: 0, loops: outer.to_vec() }.round() * MAX_ROUNDS + begun;
        let draws = self.key.draws_in(Purpose::When, repeated.position, round);
        is_true(&condition.eval(&mut self.env(draws, Timestamp::UNIX_EPOCH)))
    }

    /// The draws for one purpose at one position, in the round that the session is in.
    pub(crate) fn draws(&self, purpose: Purpose, position: usize) -> Draws {
        self.key.draws_in(purpose, position, self.cursor.round())
    }

    pub(crate) fn round(&self) -> u32 {
        self.cursor.round()
    }

    /// A value by its slot, to be set.
    pub(crate) fn set(&mut self, slot: usize, value: Value) {
        if let Some(place) = self.values.get_mut(slot) {
            *place = value;
        }
    }
}
