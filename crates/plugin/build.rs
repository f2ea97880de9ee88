//! Link arguments for the tests. The library itself needs none: it looks Triton's functions up at run time
//! (`triton/api/server.rs`), so nothing that contains it has an undefined symbol, whatever the linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Test executables stand in for the server: the functions of Triton that they define must be found by `dlsym`.
    // A server that unloads the plugin must not unmap it: rayon's threads may still be on their way out.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // The AV1 decoder's crate exports the names of the C library that it stands for: ours must be called, though the process may hold
    // that library too.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo::rustc-link-arg-tests=-Wl,--export-dynamic-symbol=TRITON*");
}
