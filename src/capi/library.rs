//! Loads libraries with operators, or takes those of the program, and adds them to the table of all. What the operators
//! do is in `foreign`.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::foreign;
use super::operator::{GESSO_OPERATOR_ABI_VERSION, OperatorTable, Operators};
use super::size;
use super::status::{Status, c_text, guard};
use super::types;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits;
use crate::operator::{ArgSpec, OpDef};
use crate::ops::{custom, schema};
use crate::tensor::Device;

/// The function that a library exports.
const ENTRY: &CStr = c"gesso_operators";

/// Names of the operators that each library brought.
static LOADED: Mutex<BTreeMap<PathBuf, Vec<&'static str>>> = Mutex::new(BTreeMap::new());

/// The operators as JSON, by their number.
static TEXTS: Mutex<BTreeMap<usize, CString>> = Mutex::new(BTreeMap::new());

/// Loads the library at `path` and adds its operators, for all pipelines that are read from then on; returns their
/// names. The library stays in the process, and its code runs in it: whoever names the file trusts it. Nothing happens
/// the second time.
///
/// # Errors
/// Unavailable, when the file cannot be loaded; unsupported, when it has no operators for Gesso or none of this
/// version; invalid, when a table is wrong; already exists, when a name is taken. Then none of its operators is added.
pub fn load(path: &Path) -> Result<Vec<&'static str>> {
    let mut loaded = LOADED.lock();
    let known = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(names) = loaded.get(&known) {
        return Ok(names.clone());
    }
    let names = load_from(path).context(|| format!("library `{}`", path.display()))?;
    loaded.insert(known, names.clone());
    Ok(names)
}

fn load_from(path: &Path) -> Result<Vec<&'static str>> {
    // SAFETY: running the initialisers of a library that was named for this is what is asked.
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))?;
    // SAFETY: a library that exports this name gives it this type.
    let entry: Operators = unsafe { library.get(ENTRY.to_bytes()) }.map(|symbol| *symbol).map_err(|_| {
        Error::unsupported("it exports no `gesso_operators`: libraries made for DALI cannot be used")
    })?;
    // Operators point into it for as long as the process lives, also when they are refused: threads of its own may run.
    std::mem::forget(library);
    let entry = entry.ok_or_else(|| Error::invalid("its `gesso_operators` is null"))?;
    // SAFETY: the function is of this type, as its name says.
    let tables = unsafe { entry(GESSO_OPERATOR_ABI_VERSION) };
    if tables.is_null() {
        let text = format!("it has no operators for version {GESSO_OPERATOR_ABI_VERSION} of their interface");
        return Err(Error::unsupported(text));
    }
    // SAFETY: the interface says: pointers to tables, a null pointer behind them, alive as long as the library.
    unsafe { register(tables) }
}

/// Adds the operators of tables; returns their names.
///
/// # Safety
/// `tables` points at pointers to operators as `gesso.h` describes them, behind them a null pointer; what they point at
/// stays.
unsafe fn register(tables: *const *const OperatorTable) -> Result<Vec<&'static str>> {
    size::check_pointer("table", tables)?;
    // SAFETY: as the caller says.
    let tables = unsafe { until_null("operators", tables) }?;
    let checked = tables
        .iter()
        .enumerate()
        // SAFETY: as above.
        .map(|(i, &table)| unsafe { check(table) }.context(|| format!("operator {i}")))
        .collect::<Result<Vec<_>>>()?;
    let names: Vec<&'static str> = checked.iter().map(|operator| operator.name).collect();
    custom::check(&names)?;
    custom::register(checked.into_iter().map(Checked::define).collect())?;
    Ok(names)
}

/// The pointers in front of a null pointer.
///
/// # Safety
/// `pointers` points at pointers that stay, with a null pointer behind them.
unsafe fn until_null<T>(what: &str, pointers: *const *const T) -> Result<&'static [*const T]> {
    let mut count = 0;
    // SAFETY: everything up to the null pointer can be read.
    while !unsafe { pointers.wrapping_add(count).read() }.is_null() {
        count += 1;
        if count > limits::MAX_CUSTOM_OPERATORS {
            return Err(Error::invalid(format!("no null pointer behind {count} {what}")));
        }
    }
    // SAFETY: so many were read.
    unsafe { types::slice(what, pointers, count) }
}

/// An operator that can be added. What it keeps is freed if another of its library is refused.
struct Checked {
    table: OperatorTable,
    name: &'static str,
    doc: &'static str,
    arguments: Vec<ArgSpec>,
}

impl Checked {
    /// The definition, for as long as the process lives.
    fn define(self) -> OpDef {
        const BOTH: &[Device] = &[Device::Cpu, Device::Gpu];
        let Self { table, name, doc, arguments } = self;
        let table: &'static OperatorTable = Box::leak(Box::new(table));
        OpDef {
            name,
            doc,
            devices: if table.run_gpu.is_some() { BOTH } else { &BOTH[..1] },
            inputs: (table.min_inputs, table.max_inputs),
            args: Vec::leak(arguments),
            build: Box::leak(Box::new(move |args: &_, inputs| foreign::build(table, args, inputs))),
            outputs: Box::leak(Box::new(|_: &_, _| Ok(table.output_count))),
            ..OpDef::BASE
        }
    }
}

/// # Safety
/// `table` points at an operator as `gesso.h` describes it, which stays.
unsafe fn check(table: *const OperatorTable) -> Result<Checked> {
    // What a newer library has more is not asked for, and what an older one has less is null.
    // SAFETY: as the caller says.
    let table: OperatorTable = unsafe { size::read("operator", table) }?;
    // SAFETY: texts stay as long as the library.
    let name = unsafe { types::text("name", table.name) }?;
    // SAFETY: as above.
    let doc = unsafe { types::text("doc", table.doc) }?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.len() > limits::MAX_NAME_BYTES || !name.chars().all(is_name) {
        return Err(Error::invalid(format!(
            "its name is `{}`, expected letters, digits and `_`",
            name.escape_debug()
        )));
    }
    let inputs = (table.min_inputs, table.max_inputs);
    let most = limits::MAX_EDGES_PER_OPERATOR;
    if inputs.0 > inputs.1 || inputs.1 > most {
        return Err(Error::invalid(format!(
            "`{name}` takes {} to {} inputs, expected a range up to {most} at most",
            inputs.0, inputs.1
        )));
    }
    let outputs = table.output_count;
    if outputs == 0 || outputs > most {
        return Err(Error::invalid(format!("`{name}` has {outputs} outputs, expected 1 to {most}")));
    }
    if table.infer.is_none() || table.run_cpu.is_none() {
        return Err(Error::invalid(format!("`{name}` has no `infer` or no `run_cpu`")));
    }
    // SAFETY: as above.
    let arguments = unsafe { arguments(table.arguments) }.context(|| format!("`{name}`"))?;
    Ok(Checked { table, name, doc, arguments })
}

/// # Safety
/// `names` is null, or points at texts that stay, with a null pointer behind them.
unsafe fn arguments(names: *const *const c_char) -> Result<Vec<ArgSpec>> {
    if names.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: as the caller says.
    let names = unsafe { until_null("arguments", names) }?;
    let spec = |&name: &*const c_char| {
        // SAFETY: as the caller says.
        unsafe { types::text("argument", name) }.map(|name| ArgSpec::any(name, "").tensor())
    };
    names.iter().map(spec).collect()
}

/// Loads a library with operators of its own, which pipelines that are loaded from then on may use. The library stays
/// in the process. What it exports is described at `gesso_operators_fn`. After an error none of its operators is there.
/// Any thread.
///
/// # Safety
/// `path` ends with a zero byte. What the library does is its own affair.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_load_operators(path: *const c_char) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the text.
        let path = unsafe { types::text("path", path) }?;
        load(Path::new(path)).map(drop)
    })
}

/// Adds operators of the program itself, without a library: `table` points at pointers to them, behind which stands a
/// null pointer. The structs and all that they point at must stay as long as the process. Pipelines that are loaded
/// from then on may use them. After an error none of them is there. Any thread; the functions are called by threads of
/// the library, too.
///
/// # Safety
/// `table` is null or what is described above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_register_operators(table: *const *const OperatorTable) -> Status {
    // SAFETY: the caller vouches for the same.
    guard(|| unsafe { register(table) }.map(drop))
}

/// The operators that are known now, as JSON: an array of objects, as `gesso operators --json` prints it. It has those
/// that were loaded or registered before, too. The text is the library's and is never freed; it is null after an error.
/// Any thread.
///
/// # Safety
/// `json` points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_operators_json(json: *mut *const c_char) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("json", json) }?;
        *out = std::ptr::null();
        let mut texts = TEXTS.lock();
        // Operators are only ever added, so that their number tells one text from the next.
        let count = schema::all().len();
        let text = texts.entry(count).or_insert_with(|| c_text(&schema::json()));
        *out = text.as_ptr();
        Ok(())
    })
}
