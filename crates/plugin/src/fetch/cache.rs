//! Files that were downloaded, by their addresses, as many bytes of them as there is room for. Before one is used again
//! its host is asked whether it is still the same.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::client::Validators;
use super::room::Room;

/// What a file takes beside its bytes and its address.
const OVERHEAD: usize = 1 << 10;

/// A file, and what to ask its host with.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) validators: Validators,
    /// The room that it takes of what requests hold, while one of them does.
    pub(super) room: Weak<Room>,
}

/// Files, those that were not used for longest go first.
pub(super) struct Cache {
    most: usize,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    by_name: HashMap<String, (u64, Kept)>,
    by_use: BTreeMap<u64, String>,
    uses: u64,
    bytes: usize,
}

impl Cache {
    /// A cache of so many bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { most, files: Mutex::default() }
    }

    pub(super) fn get(&self, name: &str) -> Option<Kept> {
        let mut files = self.files.lock();
        let kept = files.remove(name)?;
        files.insert(name, kept.clone());
        Some(kept)
    }

    pub(super) fn put(&self, name: &str, kept: Kept) {
        let size = size(name, &kept);
        let mut files = self.files.lock();
        files.remove(name);
        if size > self.most {
            return;
        }
        while files.bytes > self.most - size {
            let Some((_, oldest)) = files.by_use.first_key_value() else { break };
            let oldest = oldest.clone();
            files.remove(&oldest);
        }
        files.insert(name, kept);
    }

    /// Notes that requests hold `bytes`, if they are still those of the file.
    pub(super) fn lend(&self, name: &str, bytes: &Arc<Vec<u8>>, room: &Arc<Room>) {
        if let Some((_, kept)) = self.files.lock().by_name.get_mut(name)
            && Arc::ptr_eq(&kept.bytes, bytes)
        {
            kept.room = Arc::downgrade(room);
        }
    }

    pub(super) fn forget(&self, name: &str) {
        self.files.lock().remove(name);
    }
}

impl Files {
    fn remove(&mut self, name: &str) -> Option<Kept> {
        let (used, kept) = self.by_name.remove(name)?;
        self.by_use.remove(&used);
        self.bytes -= size(name, &kept);
        Some(kept)
    }

    fn insert(&mut self, name: &str, kept: Kept) {
        self.uses += 1;
        self.bytes += size(name, &kept);
        self.by_use.insert(self.uses, name.to_owned());
        self.by_name.insert(name.to_owned(), (self.uses, kept));
    }
}

fn size(name: &str, kept: &Kept) -> usize {
    kept.bytes.len() + 2 * name.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let cache = Cache::new(3 * (OVERHEAD + 102));
        let kept = |length: usize| Kept {
            bytes: Arc::new(vec![1; length]),
            validators: Validators::default(),
            room: Weak::new(),
        };
        ["a", "b", "c"].into_iter().for_each(|name| cache.put(name, kept(100)));
        assert!(cache.get("a").is_some());
        cache.put("d", kept(100));
        let has = |name| cache.files.lock().by_name.contains_key(name);
        assert_eq!(["a", "b", "c", "d"].map(has), [true, false, true, true]);
        // One for which there is no room makes none.
        cache.put("e", kept(9_999));
        cache.put("a", kept(50));
        assert_eq!(["a", "c", "d", "e"].map(has), [true, true, true, false]);
        ["a", "c", "d", "x"].into_iter().for_each(|name| cache.forget(name));
        let files = cache.files.lock();
        assert_eq!((files.bytes, files.by_name.len(), files.by_use.len()), (0, 0, 0));
    }
}
