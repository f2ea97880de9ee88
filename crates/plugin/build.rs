//! Link arguments for the tests. The library itself needs none: it looks Triton's functions up at run time
//! (`triton/api/server.rs`), so nothing that contains it has an undefined symbol, whatever the linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Test executables stand in for the server: the functions of Triton that they define must be found by `dlsym`.
    // A server that unloads the plugin must not unmap it: rayon's threads may still be on their way out.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // What is ours must be called, whatever else of those names the process holds.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // Programs that were linked with it find it by its name, not where it was then.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtriton_gesso.so");
    println!("cargo::rustc-link-arg-tests=-Wl,--export-dynamic-symbol=TRITON*");
}
