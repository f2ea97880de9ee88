//! No circle of imports among the files of a package: a file can be read with those that it uses, and none of these
//! leads back.
//!
//! A module and the modules inside of it count as one thing: a parent names its children, and children use what it
//! holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::Visit;

use crate::root;

/// Path of a module, such as `gpu::jpeg`; empty for the crate itself.
type Module = Vec<String>;

/// What a file holds, as far as imports go.
#[derive(Default)]
struct File {
    /// Every path that its code names, from the crate's root.
    named: Vec<Module>,
    /// Names that it passes on, and what they stand for.
    passed_on: BTreeMap<String, Module>,
}

/// Collects the paths of one file.
struct Reader {
    module: Module,
    file: File,
}

impl Reader {
    /// A path as it stands in the code, from the crate's root; `None` for one of another crate or of this file.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            _ => return None,
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                name => at.push(name.to_owned()),
            }
        }
        Some(at)
    }

    fn take(&mut self, path: &[String], name: &str, is_passed_on: bool) {
        // Without a first word of those, `use` may still mean a child: `pub use flip::Flip` in a parent.
        let child = || self.module.iter().chain(path).cloned().collect();
        let target = self.absolute(path).unwrap_or_else(child);
        if is_passed_on {
            self.file.passed_on.insert(name.to_owned(), target.clone());
        }
        self.file.named.push(target);
    }

    fn imports(&mut self, tree: &syn::UseTree, before: &[String], is_passed_on: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                self.imports(&path.tree, &[before, &[path.ident.to_string()]].concat(), is_passed_on);
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.imports(item, before, is_passed_on));
            }
            syn::UseTree::Glob(_) => self.take(before, "*", false),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let own = before.last().cloned().unwrap_or_default();
                self.take(before, &own, is_passed_on);
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.take(&[before, std::slice::from_ref(&name)].concat(), &name, is_passed_on);
            }
            syn::UseTree::Rename(rename) => {
                let path = [before, &[rename.ident.to_string()]].concat();
                self.take(&path, &rename.rename.to_string(), is_passed_on);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.imports(&item.tree, &[], !matches!(item.vis, syn::Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(target) = self.absolute(&names) {
            self.file.named.push(target);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // Tests may look at the whole from inside of a part.
        let for_tests = item.attrs.iter().any(|attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
        });
        if !for_tests && item.content.is_some() {
            // `super` in a module in braces is this file.
            self.module.push(item.ident.to_string());
            syn::visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }
}

fn read(folder: &Path, module: &Module, files: &mut BTreeMap<Module, File>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let inside = [module.as_slice(), std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            read(&path, &inside, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            let own = if ["mod", "lib", "main"].contains(&stem.as_str()) { module.clone() } else { inside };
            let parsed = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let mut reader = Reader { module: own.clone(), file: File::default() };
            reader.visit_file(&parsed);
            files.insert(own, reader.file);
        }
    }
}

/// The file that a path leads to, through names that files pass on.
fn file_of(path: &[String], files: &BTreeMap<Module, File>, depth: usize) -> Option<Module> {
    let inside = (0..=path.len()).rev().map(|end| &path[..end]).find(|part| files.contains_key(*part))?;
    let next = path.get(inside.len()).and_then(|name| files[inside].passed_on.get(name));
    match next {
        // A name that is passed on under itself leads nowhere else.
        Some(target) if depth < 8 && target.as_slice() != path => file_of(target, files, depth + 1),
        _ => Some(inside.to_vec()),
    }
}

/// Files that lead back to themselves, by what each uses.
fn circles(uses: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reached = |from: &Module| {
        let (mut found, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = open.pop() {
            for next in uses.get(&at).into_iter().flatten() {
                if found.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        found
    };
    let reach: BTreeMap<&Module, BTreeSet<Module>> = uses.keys().map(|file| (file, reached(file))).collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for (file, others) in &reach {
        let circle: BTreeSet<Module> = others
            .iter()
            .filter(|other| reach.get(other).is_some_and(|back| back.contains(*file)))
            .cloned()
            .collect();
        if !circle.is_empty() && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[test]
fn no_import_leads_back() {
    for folder in ["src", "crates/plugin/src", "crates/cli/src"] {
        let mut files = BTreeMap::new();
        read(&root().join(folder), &Vec::new(), &mut files);
        assert!(files.len() > 5, "{folder}");
        let uses: BTreeMap<Module, BTreeSet<Module>> = files
            .iter()
            .map(|(module, file)| {
                let targets = file.named.iter().filter_map(|path| file_of(path, &files, 0));
                let others =
                    targets.filter(|target| !target.starts_with(module) && !module.starts_with(target));
                (module.clone(), others.collect())
            })
            .collect();
        let found: Vec<String> = circles(&uses)
            .iter()
            .map(|circle| circle.iter().map(|file| file.join("::")).collect::<Vec<_>>().join(", "))
            .collect();
        assert!(found.is_empty(), "circles of imports in {folder}:\n{}", found.join("\n"));
    }
}
