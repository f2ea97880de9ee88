//! Holds that a default stands once, in the table of arguments: operators and readers write none into their code.

use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::visit::Visit;

use crate::root;

/// Methods that give a value where there is none.
const FALLBACKS: [&str; 5] = ["unwrap_or", "unwrap_or_else", "unwrap_or_default", "map_or", "map_or_else"];

/// Finds defaults in the code of one file.
#[derive(Default)]
struct Finder {
    found: Vec<String>,
}

/// Whether `expr` is what an argument was given as, `args.given_int("x")?` or a method of that, and its argument's name
/// if it is written there.
fn given(expr: &syn::Expr) -> Option<Option<String>> {
    match expr {
        syn::Expr::Try(tried) => given(&tried.expr),
        syn::Expr::MethodCall(call) if call.method.to_string().starts_with("given_") => {
            let name = call.args.first().and_then(|name| match name {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. }) => Some(name.value()),
                syn::Expr::Path(path) => path.path.get_ident().map(ToString::to_string).filter(|name| {
                    // A constant.
                    name.chars().all(|c| c.is_uppercase() || c == '_')
                }),
                _ => None,
            });
            Some(name)
        }
        syn::Expr::MethodCall(call) => given(&call.receiver),
        _ => None,
    }
}

/// Whether `expr` is a value that is written out: a literal, an element type, or a list of such, whatever it is wrapped
/// into. A value that is computed is none.
fn is_written_out(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Lit(_) => true,
        syn::Expr::Path(path) => path.path.segments.first().is_some_and(|first| first.ident == "DType"),
        syn::Expr::Macro(made) => made.mac.path.is_ident("vec") && is_literal_list(&made.mac.tokens),
        syn::Expr::Array(array) => array.elems.iter().any(is_written_out),
        syn::Expr::Unary(unary) => is_written_out(&unary.expr),
        syn::Expr::Paren(paren) => is_written_out(&paren.expr),
        syn::Expr::Reference(reference) => is_written_out(&reference.expr),
        syn::Expr::Closure(closure) => is_written_out(&closure.body),
        syn::Expr::MethodCall(call) => is_written_out(&call.receiver),
        syn::Expr::Call(call) => is_wrapper(&call.func) && call.args.iter().any(is_written_out),
        _ => false,
    }
}

/// `Ok` and `Some`.
fn is_wrapper(function: &syn::Expr) -> bool {
    matches!(function, syn::Expr::Path(path) if path.path.is_ident("Ok") || path.path.is_ident("Some"))
}

/// Not `0; count`, whose length is computed.
fn is_literal_list(tokens: &proc_macro2::TokenStream) -> bool {
    let is_literal = |token: &_| matches!(token, proc_macro2::TokenTree::Literal(_));
    tokens.clone().into_iter().all(|token| is_literal(&token) || token.to_string() == ",")
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let method = call.method.to_string();
        if let (true, Some(name)) = (FALLBACKS.contains(&method.as_str()), given(&call.receiver)) {
            let is_default = method == "unwrap_or_default" || call.args.first().is_some_and(is_written_out);
            // Without a name the value comes from elsewhere in the code, as for a closure that takes name and default.
            if is_default || name.is_none() {
                self.found.push(call.to_token_stream().to_string());
            }
        }
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_match(&mut self, matched: &'ast syn::ExprMatch) {
        if given(&matched.expr).is_some() {
            for arm in &matched.arms {
                let pattern = arm.pat.to_token_stream().to_string();
                let stands_for_some = pattern.contains("None") && pattern.contains("Some");
                if stands_for_some || pattern == "None" && is_written_out(&arm.body) {
                    self.found.push(format!("match {} {{ {pattern}", matched.expr.to_token_stream()));
                }
            }
        }
        syn::visit::visit_expr_match(self, matched);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            syn::visit::visit_item_mod(self, module);
        }
    }
}

fn defaults(code: &str) -> Vec<String> {
    let mut finder = Finder::default();
    finder.visit_file(&syn::parse_file(code).unwrap());
    finder.found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn operators_and_readers_write_no_defaults() {
    let mut files = Vec::new();
    for folder in ["src/ops", "src/readers", "src/operator/shared"] {
        sources(&root().join(folder), &mut files);
    }
    let wrong: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let found = defaults(&std::fs::read_to_string(file).unwrap());
            found.into_iter().map(move |found| format!("{}: {found}", file.display()))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "defaults belong into the table of arguments (`.or_int(1)`), and `args.int(..)` answers them:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_default_that_is_written_is_found() {
    for wrong in [
        r#"args.given_int("x")?.unwrap_or(3)"#,
        r#"args.given_ints("x")?.unwrap_or_else(|| vec![0])"#,
        r#"args.given_bool("x")?.filter(|x| *x).unwrap_or(true)"#,
        r#"args.given_dtype("x")?.unwrap_or(DType::F32)"#,
        r#"args.given_string("x")?.unwrap_or_default()"#,
        r#"args.given_bool(name)?.unwrap_or(default)"#,
        r#"match args.given_int("x")? { None => Ok(1), Some(x) => Ok(x) }"#,
        r#"match args.given_int("x")? { None | Some(0) => a(), _ => b() }"#,
    ] {
        assert_eq!(defaults(&format!("fn build() {{ {wrong}; }}")).len(), 1, "{wrong}");
    }
    for right in [
        r#"args.int("x")?"#,
        r#"args.given_int("x")?.unwrap_or(length)"#,
        r#"args.given_float("x")?.unwrap_or_else(|| rate / 2.0)"#,
        r#"args.given_ints("x")?.unwrap_or_else(|| vec![0; count])"#,
        r#"args.given_bool("x")?.unwrap_or(!args.has("y"))"#,
        r#"args.given_int(SEED)?.unwrap_or_else(seed_of_now)"#,
        r#"match args.given_int("x")? { None => Ok(None), Some(x) => Ok(Some(x)) }"#,
    ] {
        assert_eq!(defaults(&format!("fn build() {{ {right}; }}")), [""; 0], "{right}");
    }
}
