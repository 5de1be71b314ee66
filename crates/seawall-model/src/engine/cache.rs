//! The prefix cache: least recently used prefixes go first, bounded by tokens.

use super::settings::Prefix;
use alloc::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct PrefixCache {
    capacity_tokens: u64,
    used_tokens: u64,
    uses: u64,
    /// Hash to (last use, tokens).
    entries: BTreeMap<u64, (u64, u32)>,
    /// Last use to hash.
    order: BTreeMap<u64, u64>,
}

impl PrefixCache {
    pub(super) fn new(capacity_tokens: u64) -> Self {
        Self { capacity_tokens, used_tokens: 0, uses: 0, entries: BTreeMap::new(), order: BTreeMap::new() }
    }

    /// Tokens of the prefix that are cached; from now on it is the most recently used one. A prefix that is larger
    /// than the whole cache, or empty, is never held.
    pub(super) fn touch(&mut self, prefix: Prefix) -> u32 {
        if prefix.tokens == 0 || u64::from(prefix.tokens) > self.capacity_tokens {
            return 0;
        }
        let mut cached = 0;
        if let Some((last_use, tokens)) = self.entries.remove(&prefix.hash) {
            self.order.remove(&last_use);
            self.used_tokens -= u64::from(tokens);
            cached = tokens.min(prefix.tokens);
        }
        while self.used_tokens + u64::from(prefix.tokens) > self.capacity_tokens {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            let tokens = self.entries.remove(&oldest).map_or(0, |(_, tokens)| tokens);
            self.used_tokens -= u64::from(tokens);
        }
        self.uses += 1;
        self.entries.insert(prefix.hash, (self.uses, prefix.tokens));
        self.order.insert(self.uses, prefix.hash);
        self.used_tokens += u64::from(prefix.tokens);
        cached
    }
}
