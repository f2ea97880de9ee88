//! LMDB files, read only: where the values are, in the order of their keys. Nothing is mapped: a file that is cut off
//! meanwhile is an error, not a crash. It must not know what a value is.

use std::collections::HashSet;
use std::path::Path;

use super::pieces::Opened;
use crate::error::{Context, Error, Result};
use crate::limits;

/// Where a value and its key are in their file.
#[derive(Clone, Copy)]
pub(super) struct Value {
    /// Where the value begins.
    pub(super) at: u64,
    /// Its bytes.
    pub(super) length: u32,
    /// Bytes of the key.
    pub(super) key_length: u16,
    /// Where the key begins.
    pub(super) key: u64,
}

/// Bytes in front of what is in a page.
const HEADER: usize = 16;
/// Bytes in front of the key in a node.
const NODE: usize = 8;
/// Of the structure behind a header that says where everything is: both trees, and the number of the transaction.
const META: usize = 136;
const MAGIC: u32 = 0xBEEF_C0DE;
/// The root of a tree without pages.
const NONE: u64 = u64::MAX;
/// Kinds of pages.
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
/// A node whose value has pages of its own.
const BIG: u16 = 1;

/// The file of the database at `path`, which is that file or its folder, and its values in the order of their keys.
///
/// # Errors
/// A file that cannot be read, is no database or a damaged one; too many values.
pub(super) fn values(path: &str) -> Result<(String, Vec<Value>)> {
    let inside = Path::new(path).join("data.mdb").display().to_string();
    let file = if Path::new(path).is_dir() { inside } else { path.to_owned() };
    let tree = Tree { opened: Opened::new(&file)? };
    let found = tree.newest_root().and_then(|(page, root)| tree.values(page, root));
    Ok((file.clone(), found.context(|| format!("the database `{file}`"))?))
}

/// The bytes at a place, if there are so many.
fn at<const N: usize>(bytes: &[u8], place: usize) -> Result<[u8; N]> {
    let found = bytes.get(place..).and_then(|rest| rest.first_chunk());
    found.copied().ok_or_else(|| {
        Error::invalid(format!("a page of {} bytes, expected {N} more at byte {place} of it", bytes.len()))
    })
}

fn word(bytes: &[u8], place: usize) -> Result<u16> {
    at(bytes, place).map(u16::from_le_bytes)
}

struct Tree {
    opened: Opened,
}

impl Tree {
    fn bytes(&self, place: Option<u64>, length: usize) -> Result<Vec<u8>> {
        let size = self.opened.size;
        let end = place.and_then(|place| place.checked_add(length as u64));
        let Some(place) = place.filter(|_| end.is_some_and(|end| end <= size)) else {
            let place = place.map_or("beyond what can be counted".to_owned(), |place| format!("at {place}"));
            return Err(Error::invalid(format!(
                "it has {size} bytes, expected a page of {length} bytes {place}: it is cut off or damaged"
            )));
        };
        let mut bytes = vec![0; length];
        self.opened.read(place, &mut bytes)?;
        Ok(bytes)
    }

    /// The size of pages, and the page at the root of the tree that was written last.
    fn newest_root(&self) -> Result<(usize, u64)> {
        let (mut newest, mut place) = (None::<(u64, usize, u64)>, HEADER);
        for _ in 0..2 {
            let meta = self.bytes(Some(place as u64), META)?;
            let magic = u32::from_le_bytes(at(&meta, 0)?);
            if magic != MAGIC {
                return Err(Error::invalid(format!("it begins with {magic:#x}, expected LMDB's {MAGIC:#x}")));
            }
            let page = u32::from_le_bytes(at(&meta, 24)?) as usize;
            if !(HEADER + META..=limits::MAX_LMDB_PAGE_BYTES).contains(&page) {
                let (least, most) = (HEADER + META, limits::MAX_LMDB_PAGE_BYTES);
                return Err(Error::invalid(format!("pages of {page} bytes, expected {least} to {most}")));
            }
            let (root, transaction) =
                (u64::from_le_bytes(at(&meta, 112)?), u64::from_le_bytes(at(&meta, 128)?));
            if newest.is_none_or(|(newest, ..)| transaction > newest) {
                newest = Some((transaction, page, root));
            }
            place = page + HEADER;
        }
        newest.map(|(_, page, root)| (page, root)).ok_or_else(|| Error::internal("a database without a root"))
    }

    /// The values below page `root`. A page is read once, so a file has no more of them than its bytes allow.
    fn values(&self, page_size: usize, root: u64) -> Result<Vec<Value>> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut next = if root == NONE { Vec::new() } else { vec![root] };
        while let Some(number) = next.pop() {
            if !seen.insert(number) {
                return Err(Error::invalid(format!("page {number} is in two places of the tree")));
            }
            let begin = number.checked_mul(page_size as u64);
            let page = self.bytes(begin, page_size)?;
            let inside = match word(&page, 10)? {
                kind if kind & BRANCH != 0 => branch(&page).map(|mut pages| {
                    // The first of them is the next one.
                    pages.reverse();
                    next.append(&mut pages);
                }),
                kind if kind & LEAF != 0 => leaf(&page, begin.unwrap_or_default(), &mut found),
                kind => Err(Error::invalid(format!("its kind is {kind}, expected a branch or a leaf"))),
            };
            inside.context(|| format!("page {number}"))?;
            if found.len() > limits::MAX_DATASET_SAMPLES {
                return Err(Error::invalid(format!("more than {} values", limits::MAX_DATASET_SAMPLES)));
            }
        }
        Ok(found)
    }
}

/// Where the nodes of a page are.
fn nodes(page: &[u8]) -> Result<impl Iterator<Item = Result<usize>>> {
    let count = usize::from(word(page, 12)?).saturating_sub(HEADER) / 2;
    Ok((0..count).map(|i| word(page, HEADER + 2 * i).map(usize::from)))
}

/// The pages below a branch.
fn branch(page: &[u8]) -> Result<Vec<u64>> {
    let number = |node: Result<usize>| {
        let [a, b, c, d, e, f] = at(page, node?)?;
        Ok(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    };
    nodes(page)?.map(number).collect()
}

/// Adds the values of a leaf that begins at byte `begin` of the file. Whether they are inside of it is seen when they
/// are read.
fn leaf(page: &[u8], begin: u64, found: &mut Vec<Value>) -> Result<()> {
    for node in nodes(page)? {
        let node = node?;
        let (length, flags) = (u32::from_le_bytes(at(page, node)?), word(page, node + 4)?);
        let key_length = word(page, node + 6)?;
        let behind = node + NODE + usize::from(key_length);
        // The page was read, so what is in it can be counted.
        let key = begin + (node + NODE) as u64;
        let place = match flags & BIG {
            0 => Some(begin + behind as u64),
            _ => {
                let number = u64::from_le_bytes(at(page, behind)?);
                number.checked_mul(page.len() as u64).and_then(|place| place.checked_add(HEADER as u64))
            }
        };
        let at = place.ok_or_else(|| Error::invalid("a value begins where no file reaches"))?;
        found.push(Value { at, length, key_length, key });
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const PAGE: usize = 512;

    /// A page of such a kind: its nodes from the end to the front.
    fn page(kind: u16, nodes: &[Vec<u8>]) -> Vec<u8> {
        let (mut page, mut place) = (vec![0; PAGE], PAGE);
        page[10..12].copy_from_slice(&kind.to_le_bytes());
        page[12..14].copy_from_slice(&((HEADER + 2 * nodes.len()) as u16).to_le_bytes());
        for (i, node) in nodes.iter().enumerate() {
            place -= node.len();
            page[place..place + node.len()].copy_from_slice(node);
            page[HEADER + 2 * i..][..2].copy_from_slice(&(place as u16).to_le_bytes());
        }
        page
    }

    fn meta(root: u64, transaction: u64) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        for (place, bytes) in [(0, &MAGIC.to_le_bytes()[..]), (24, &(PAGE as u32).to_le_bytes())] {
            page[HEADER + place..][..bytes.len()].copy_from_slice(bytes);
        }
        page[HEADER + 112..][..8].copy_from_slice(&root.to_le_bytes());
        page[HEADER + 128..][..8].copy_from_slice(&transaction.to_le_bytes());
        page
    }

    fn node(length: u32, flags: u16, value: &[u8]) -> Vec<u8> {
        [&length.to_le_bytes()[..], &flags.to_le_bytes(), &1_u16.to_le_bytes(), b"k", value].concat()
    }

    /// A database of such values in the leaves of one branch; the last one has pages of its own.
    pub(in super::super) fn database(values: &[&[u8]]) -> Vec<u8> {
        let (last, rest) = values.split_last().unwrap();
        let below = |number: u64| [&number.to_le_bytes()[..6], &[0; 2]].concat();
        let mut leaves: Vec<_> =
            rest.iter().map(|value| page(LEAF, &[node(value.len() as u32, 0, value)])).collect();
        let own = 4 + rest.len() as u64;
        leaves.push(page(LEAF, &[node(last.len() as u32, BIG, &own.to_le_bytes())]));
        let pages: Vec<_> = (3..3 + values.len() as u64).map(below).collect();
        let front = [meta(NONE, 1), meta(2, 2), page(BRANCH, &pages)].concat();
        [front, leaves.concat(), vec![0; HEADER], last.to_vec()].concat()
    }

    fn found(name: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let path = std::env::temp_dir().join(format!("gesso-lmdb-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let found = values(&path.display().to_string());
        std::fs::remove_file(&path).unwrap();
        let (file, found) = found?;
        assert_eq!(file, path.display().to_string());
        let part = |at: u64, length: usize| bytes[at as usize..at as usize + length].to_vec();
        assert!(found.iter().all(|value| part(value.key, value.key_length.into()) == b"k"));
        let inside = |value: Value| part(value.at, value.length as usize);
        Ok(found.into_iter().map(inside).collect())
    }

    #[test]
    fn values_are_found_in_their_order() {
        let values: [&[u8]; 3] = [b"one", b"", &[7; 2_000]];
        assert_eq!(found("order", &database(&values)).unwrap(), values.map(<[u8]>::to_vec));
        let empty = [meta(NONE, 0), meta(3, 0)].concat();
        assert!(found("order", &empty).unwrap().is_empty());
        assert!(super::values("/nowhere").is_err() && super::values("/tmp").is_err());
    }

    #[test]
    fn files_that_are_damaged_are_errors() {
        let whole = database(&[b"a", b"b"]);
        let changed = |place: usize, bytes: &[u8]| {
            let mut file = whole.clone();
            file[place..place + bytes.len()].copy_from_slice(bytes);
            file
        };
        for (file, wanted) in [
            (Vec::new(), "it has 0 bytes"),
            (whole[..600].to_vec(), "it has 600 bytes"),
            (whole[..1_600].to_vec(), "it is cut off or damaged"),
            (changed(HEADER, b"no"), "expected LMDB's"),
            (changed(HEADER + 24, &[1, 0, 0, 0]), "pages of 1 bytes"),
            (changed(HEADER + 24, &[0, 0, 2, 0]), "pages of 131072 bytes"),
            // A root that is beyond the file, or beyond what can be counted.
            (changed(PAGE + HEADER + 112, &[0, 1]), "it is cut off or damaged"),
            (changed(PAGE + HEADER + 119, &[0xF0]), "beyond what can be counted"),
            // A branch that is below itself, and one with nodes outside of it.
            (changed(3 * PAGE - 8, &[2]), "page 2 is in two places"),
            (changed(2 * PAGE + HEADER, &[0xFF, 0xFF]), "page 2: a page of 512 bytes"),
            (changed(2 * PAGE + 12, &[0xFF, 0xFF]), "page 2: a page of 512 bytes"),
            (changed(2 * PAGE + 10, &[8]), "its kind is 8"),
            // A value of its own pages that no file has.
            (changed(5 * PAGE - 1, &[0xFF]), "a value begins where no file reaches"),
        ] {
            let error = found("damaged", &file).unwrap_err().to_string();
            assert!(error.contains(wanted) && error.contains("gesso-lmdb-damaged"), "{wanted}: {error}");
        }
    }
}
