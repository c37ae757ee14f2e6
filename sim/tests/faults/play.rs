//! A second reader of delivery scripts: what a client must get by one, and when. It shares no code with the server's.

use std::time::Duration;

use dealer_sim::faults::script::edit_head;
use dealer_sim::faults::{Script, Step};

/// What a client must get.
pub(crate) struct Played {
    pub(crate) seen: Vec<u8>,
    /// The last step, where it ends the reply.
    pub(crate) ended: Option<Step>,
    pub(crate) took: Duration,
    /// When how many bytes must have come in all.
    pub(crate) times: Vec<(Duration, usize)>,
}

/// Plays a script over a reply.
pub(crate) fn play(script: &Script, reply: &[u8]) -> Played {
    let mut played = Played { seen: Vec::new(), ended: None, took: Duration::ZERO, times: Vec::new() };
    let mut left = reply;
    let split = |left: &mut &[u8], count: u64| -> Vec<u8> {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(left.len());
        let (now, later) = left.split_at(count);
        *left = later;
        now.to_vec()
    };
    for step in &script.steps {
        match *step {
            Step::Write(count) => played.add(&split(&mut left, count)),
            Step::Skip(count) => _ = split(&mut left, count),
            Step::WriteRaw(bytes) => played.add(bytes),
            Step::Head { without, with } => {
                let end = left.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
                let head = split(&mut left, end as u64);
                played.add(&edit_head(&head, without, with));
            }
            Step::Drip { bytes, every } => {
                played.add(&split(&mut left, bytes));
                while !left.is_empty() {
                    played.took += every;
                    played.add(&split(&mut left, bytes));
                }
            }
            Step::Wait(wait) => played.took += wait,
            end @ (Step::Silence | Step::Close | Step::HalfClose | Step::Reset) => {
                played.ended = Some(end);
                return played;
            }
        }
    }
    // What a script says nothing of goes at once.
    played.add(left);
    played
}

impl Played {
    fn add(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.seen.extend_from_slice(bytes);
            self.times.push((self.took, self.seen.len()));
        }
    }
}
