//! Conversations: what one contextId names. Bounded; the oldest is forgotten first, and counted.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use super::clock::to_rfc3339;
use crate::share::Share;
use crate::stable::stable_hash;

/// Conversations remembered in all, by a dealer alone.
pub const MAX_CONVERSATIONS: usize = 65_536;
/// A longer contextId is echoed, but not remembered.
pub const MAX_CONTEXT_ID: usize = 256;
const SHARDS: usize = 16;

/// What is remembered of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation {
    /// When its first call came (business clock).
    pub first: Timestamp,
    /// When its last call came (business clock).
    pub last: Timestamp,
    /// Calls in it that were answered with a result or a skill's error.
    pub calls: u64,
    /// Whether the dealer made the contextId; else the caller brought it.
    pub ours: bool,
}

/// A conversation as the admin endpoint shows it.
#[derive(Debug, Serialize)]
pub struct ConversationView {
    context_id: String,
    first_at: String,
    last_at: String,
    calls: u64,
    issued_by: &'static str,
}

#[derive(Debug, Default)]
struct Shard {
    by_id: HashMap<Arc<str>, Conversation>,
    oldest_first: VecDeque<Arc<str>>,
    forgotten: u64,
    not_kept: u64,
}

/// All conversations of a dealer, in shards so that calls seldom wait for each other.
#[derive(Debug)]
pub struct Conversations {
    shards: [Mutex<Shard>; SHARDS],
    /// In one shard, at most.
    most: usize,
}

impl Default for Conversations {
    fn default() -> Conversations {
        Conversations::new(Share::default())
    }
}

impl Conversations {
    /// None, with room for this share of them.
    pub fn new(share: Share) -> Conversations {
        let most = share.of(MAX_CONVERSATIONS).div_ceil(SHARDS);
        Conversations { shards: std::array::from_fn(|_| Mutex::default()), most }
    }

    /// Notes a call.
    pub fn note(&self, context_id: &str, ours: bool, now: Timestamp) {
        let shard = &self.shards[stable_hash(0, context_id.as_bytes()) as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if context_id.len() > MAX_CONTEXT_ID {
            shard.not_kept += 1;
            return;
        }
        if let Some(conversation) = shard.by_id.get_mut(context_id) {
            conversation.last = now;
            conversation.calls += 1;
            return;
        }
        if shard.by_id.len() >= self.most
            && let Some(oldest) = shard.oldest_first.pop_front()
        {
            shard.by_id.remove(&oldest);
            shard.forgotten += 1;
        }
        let id: Arc<str> = context_id.into();
        shard.oldest_first.push_back(id.clone());
        shard.by_id.insert(id, Conversation { first: now, last: now, calls: 1, ours });
    }

    /// What is remembered of one conversation.
    pub fn get(&self, context_id: &str) -> Option<Conversation> {
        let shard = &self.shards[stable_hash(0, context_id.as_bytes()) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner).by_id.get(context_id).copied()
    }

    fn each_shard<T>(&self, read: impl Fn(&Shard) -> T) -> impl Iterator<Item = T> {
        self.shards.iter().map(move |shard| read(&shard.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// How many are remembered.
    pub fn count(&self) -> usize {
        self.each_shard(|shard| shard.by_id.len()).sum()
    }

    /// How many were forgotten to make room, or never kept for the length of their id.
    pub fn dropped(&self) -> u64 {
        self.each_shard(|shard| shard.forgotten + shard.not_kept).sum()
    }

    /// Up to `limit` of them, by first call, then id.
    pub fn list(&self, limit: usize) -> Vec<ConversationView> {
        let mut all: Vec<_> = self
            .each_shard(|shard| shard.by_id.iter().map(|(id, c)| (id.clone(), *c)).collect::<Vec<_>>())
            .flatten()
            .collect();
        all.sort_unstable_by(|a, b| (a.1.first, &a.0).cmp(&(b.1.first, &b.0)));
        all.into_iter()
            .take(limit)
            .map(|(id, conversation)| ConversationView {
                context_id: (*id).to_owned(),
                first_at: to_rfc3339(conversation.first),
                last_at: to_rfc3339(conversation.last),
                calls: conversation.calls,
                issued_by: if conversation.ours { "dealer" } else { "client" },
            })
            .collect()
    }

    /// Forgets all of them.
    pub fn reset(&self) {
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = Shard::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up_and_the_oldest_goes_first() {
        let all = Conversations::default();
        let now = Timestamp::UNIX_EPOCH;
        all.note("a", true, now);
        all.note("a", false, now);
        assert_eq!(all.get("a"), Some(Conversation { first: now, last: now, calls: 2, ours: true }));
        all.note(&"x".repeat(MAX_CONTEXT_ID + 1), false, now);
        assert_eq!((all.count(), all.dropped()), (1, 1));
        for n in 0..(2 * MAX_CONVERSATIONS) {
            all.note(&format!("c{n}"), true, now);
        }
        assert!(all.count() <= MAX_CONVERSATIONS);
        assert!(all.get("a").is_none());
        assert!(all.dropped() as usize >= MAX_CONVERSATIONS);
        all.reset();
        assert_eq!((all.count(), all.dropped()), (0, 0));
    }
}
