//! Links the library: the one that `TSLAB_LIB_DIR` has, or, without it, one that is compiled from the sources in `c/`.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo:rerun-if-env-changed=TSLAB_LIB_DIR");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).expect("cargo names the target");
    assert!(target("OS") == "linux" && target("POINTER_WIDTH") == "64", "temporal-slab runs on 64-bit Linux only");
    // What build scripts of crates that depend on this one read as DEP_TEMPORAL_SLAB_INCLUDE.
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo names the package");
    println!("cargo:include={root}/c/include");
    if let Some(dir) = env::var_os("TSLAB_LIB_DIR") {
        let library = Path::new(&dir).join("libtemporal_slab.a");
        assert!(library.is_file(), "TSLAB_LIB_DIR has no libtemporal_slab.a: {}", library.display());
        println!("cargo:rerun-if-changed={}", library.display());
        println!("cargo:rustc-link-search=native={}", Path::new(&dir).display());
        println!("cargo:rustc-link-lib=static=temporal_slab");
        return;
    }
    let mut build = cc::Build::new();
    let mut files = 0;
    for folder in sorted(Path::new("c/src")) {
        if !folder.is_dir() {
            continue;
        }
        for file in sorted(&folder) {
            if file.extension().is_some_and(|e| e == "c") {
                build.file(&file);
                files += 1;
            }
        }
    }
    assert!(files > 50, "c/src has {files} C files, which is not the library");
    println!("cargo:rerun-if-changed=c/src");
    println!("cargo:rerun-if-changed=c/include");
    build.include("c/include").include("c/src").std("gnu11");
    // An allocator is optimised in every profile: what is debugged is the program.
    build.opt_level(3).define("TSI_NO_USDT", None).define("SLAB_STATIC", None);
    build
        .flag("-pthread")
        .flag("-fvisibility=hidden")
        .flag("-ftls-model=initial-exec")
        .flag("-fno-semantic-interposition");
    build.warnings(false).compile("temporal_slab");
}

fn sorted(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("a folder that can be read").path())
        .collect();
    entries.sort();
    entries
}
