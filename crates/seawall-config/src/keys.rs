//! The tenants' keys: only their digests are kept.

use seawall_core::id::TenantId;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt;

/// A key's SHA-256.
pub(crate) type KeyDigest = [u8; 32];

/// The SHA-256 of a key as it is presented.
pub(crate) fn digest(key: &[u8]) -> KeyDigest {
    Sha256::digest(key).into()
}

/// Who a key belongs to. Holds digests only: neither a core dump nor a log can give a key away.
///
/// The lookup is by digest, so its time says nothing about how much of a guessed key is right.
#[derive(Clone, Default)]
pub(crate) struct KeyTable(HashMap<KeyDigest, TenantId>);

impl KeyTable {
    /// Adds a key; gives the tenant that has it already, if any, and leaves it there.
    pub(crate) fn insert(&mut self, digest: KeyDigest, tenant: TenantId) -> Option<TenantId> {
        if let Some(owner) = self.0.get(&digest) {
            return Some(*owner);
        }
        self.0.insert(digest, tenant);
        None
    }

    /// The owner of the key that a client presented.
    pub(crate) fn tenant_of(&self, presented: &[u8]) -> Option<TenantId> {
        self.0.get(&digest(presented)).copied()
    }
}

impl fmt::Debug for KeyTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyTable({} keys)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_owner_and_is_not_shown() {
        let mut table = KeyTable::default();
        assert_eq!(table.insert(digest(b"one"), TenantId(0)), None);
        assert_eq!(table.insert(digest(b"one"), TenantId(1)), Some(TenantId(0)));
        assert_eq!(table.tenant_of(b"one"), Some(TenantId(0)));
        assert_eq!(table.tenant_of(b"two"), None);
        assert_eq!(format!("{table:?}"), "KeyTable(1 keys)");
    }
}
