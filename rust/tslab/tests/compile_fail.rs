//! What must not compile does not, for the reason that it is there for.
//!
//! A case is a file of `tests/fail`. Its first line has the code of the error, or "no code", and a part of its message; the line
//! at fault ends with "// here". Compiled with `--cfg good` the case is the same program without the fault, and must compile: so it
//! fails for that line and nothing else. No test compares the compiler's full text, which changes from version to version.

#![cfg(feature = "allocator-api2")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library of a crate that was built last among those beside this test.
fn library(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let prefix = format!("lib{name}-");
    std::fs::read_dir(deps)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name().unwrap().to_str().is_some_and(|f| f.starts_with(&prefix) && f.ends_with(".rlib"))
        })
        .max_by_key(|path| path.metadata().unwrap().modified().unwrap())
        .unwrap_or_else(|| panic!("no library of {name} beside the test"))
}

/// What the compiler says of the file: true when it compiles, and the errors, one a line.
fn compile(file: &Path, out: &Path, good: bool) -> (bool, Vec<String>) {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let tslab = library("tslab");
    rustc.args(["--edition=2021", "--emit=metadata", "--error-format=short", "--check-cfg=cfg(good)", "-Aunused"]);
    rustc.arg("--out-dir").arg(out).arg("-L").arg(format!("dependency={}", tslab.parent().unwrap().display()));
    rustc.arg("--extern").arg(format!("tslab={}", tslab.display()));
    rustc.arg("--extern").arg(format!("allocator_api2={}", library("allocator_api2").display()));
    if good {
        rustc.args(["--cfg", "good"]);
    }
    let output = rustc.arg(file).output().expect("rustc");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors = said.lines().filter(|line| line.contains(": error")).map(str::to_owned).collect();
    (output.status.success(), errors)
}

#[test]
fn what_must_not_compile_does_not_and_for_its_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fail");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut cases = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let (code, message) = text.lines().next().unwrap().strip_prefix("// ").unwrap().split_once(": ").unwrap();
        let at = 1 + text.lines().position(|line| line.ends_with("// here")).unwrap();
        let code = if code == "no code" { String::from("error:") } else { format!("error[{code}]:") };
        cases += 1;

        let (done, errors) = compile(&file, out, true);
        if !done {
            wrong.push(format!("{name} without its fault: {errors:?}"));
        }
        let (done, errors) = compile(&file, out, false);
        let errors: Vec<_> = errors.iter().filter(|e| !e.contains("error: aborting")).collect();
        let there = errors.iter().all(|e| e.contains(&code) && e.contains(&format!("{name}:{at}:")));
        if done || !there || !errors.iter().any(|e| e.contains(message)) {
            wrong.push(format!("{name}: not `{code} {message}` in line {at}, but {errors:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= 30, "{cases} cases");
}
