//! Who is in which group, as the writer knows it. An entry counts only for the `member_version` that was read under the
//! `group` lock, so it is exact on any number of nodes and saves reading the list for every message.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::ids::{GroupId, UserId};

/// Groups kept; beyond it everything is forgotten and read anew.
const MAX_GROUPS: usize = 5_000;
/// Member ids kept in all, 8 bytes each.
const MAX_IDS: usize = 2_000_000;

/// Member lists by group and version.
#[derive(Default)]
pub struct MemberCache {
    groups: HashMap<GroupId, (i64, Arc<[UserId]>)>,
    ids: usize,
}

impl MemberCache {
    /// The members of a group at this version.
    pub fn get(&self, group: GroupId, version: i64) -> Option<Arc<[UserId]>> {
        self.groups.get(&group).filter(|(known, _)| *known == version).map(|(_, members)| members.clone())
    }

    /// Keeps a list. Only for what is read outside savepoints: a version that is rolled back may come again with other
    /// members.
    pub fn put(&mut self, group: GroupId, version: i64, members: Arc<[UserId]>) {
        if self.groups.len() >= MAX_GROUPS || self.ids + members.len() > MAX_IDS {
            self.clear();
        }
        self.ids += members.len();
        if let Some((_, old)) = self.groups.insert(group, (version, members)) {
            self.ids -= old.len();
        }
    }

    /// Forgets everything: a transaction was rolled back.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.ids = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_counts_only_for_its_version() {
        let mut cache = MemberCache::default();
        cache.put(GroupId(1), 7, Arc::from([UserId(1)]));
        assert_eq!(cache.get(GroupId(1), 7).as_deref(), Some([UserId(1)].as_slice()));
        assert_eq!(cache.get(GroupId(1), 8), None);
    }

    #[test]
    fn the_cache_stays_bounded() {
        let mut cache = MemberCache::default();
        let members: Arc<[UserId]> = vec![UserId(1); MAX_IDS / 4].into();
        for group in 0..20 {
            cache.put(GroupId(group), 1, members.clone());
        }
        assert!(cache.ids <= MAX_IDS);
    }
}
