"""tests/mutants/run.py on a library of one function: what is caught, by which test and how; what survives; what is an
error; that results are kept, by content, and that an interrupted run goes on."""
import os
import shutil
import signal
import subprocess
import sys
import time

RUN = os.path.join(os.environ["TSLAB_SOURCE_DIR"], "tests", "mutants", "run.py")
TREE = os.path.abspath("tree")
failures = 0

CMAKE = """cmake_minimum_required(VERSION 3.21)
project(small LANGUAGES C)
add_library(tslab_objects OBJECT src/base/sum.c)
target_include_directories(tslab_objects PRIVATE src)
add_library(temporal_slab_static STATIC $<TARGET_OBJECTS:tslab_objects>)
set_target_properties(temporal_slab_static PROPERTIES OUTPUT_NAME temporal_slab)
foreach(name one two)
    add_executable(unit_${name} tests/unit/${name}.c)
    target_include_directories(unit_${name} PRIVATE src)
    target_link_libraries(unit_${name} PRIVATE temporal_slab_static)
    set_target_properties(unit_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests/unit OUTPUT_NAME ${name})
endforeach()
"""
ONE = """#include "base/sum.h"
#include <stdio.h>
int main(void) {
    if (sum(4) != 10) return puts("failed: sum of 4"), 1;
    return 0;
}
"""
TWO = """#include "base/sum.h"
#include <stdlib.h>
int main(void) {
    if (twice(4) != 8) abort();
    return 0;
}
"""
SUM = """#include "base/sum.h"
int sum(int n) {
    int s = 0;
    for (int i = 0; i <= n; i++) s += i;
    return s;
}
"""
HEADER = "int sum(int n);\nstatic inline int twice(int n) { return 2 * n; }\n"
FILES = {"CMakeLists.txt": CMAKE, "src/base/sum.h": HEADER, "src/base/sum.c": SUM, "tests/unit/one.c": ONE, "tests/unit/two.c": TWO}


def put(path, text):
    path = os.path.join(TREE, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def mutant(name, tests, old, new, file="src/base/sum.c", head=""):
    put(f"tests/mutants/{name}.mutant", f"why: a test of the runner,\n  in two lines.\n{head}tests: {tests}\n"
        f"@file {file}\n@old\n{old}\n@new\n{new}\n@end\n")


def drop(*names):
    for name in names:
        os.unlink(os.path.join(TREE, "tests", "mutants", name + ".mutant"))


def fail(*words):
    global failures
    failures += 1
    print("FAILED:", *words, file=sys.stderr)


def expect(status, *said, words=(), never=()):
    done = subprocess.run([sys.executable, RUN, "--source", TREE, "--limit", "5", *words], capture_output=True, text=True,
                          timeout=300, check=False)
    text = done.stdout + done.stderr
    missing = [s for s in said if s not in " ".join(text.split())] + [f"not {s}" for s in never if s in text]
    if done.returncode != status or missing:
        fail(words, f"exit {done.returncode} instead of {status}, without {missing}:\n{text}")


shutil.rmtree(TREE, ignore_errors=True)
for path, text in FILES.items():
    put(path, text)

# Caught: by a test that fails, one that dies, one that hangs; in a header of the library and of the test; by the first
# that notices.
mutant("less", "unit/one", "i <= n", "i < n")
mutant("header", "unit/one unit/two", "2 * n", "n + n + 1", file="src/base/sum.h")
mutant("waits", "unit/two unit/one", "i++", "i += 0", head="build: release\n")
expect(0, "3 of 3 mutants caught", "less", "unit/one: failed: sum of 4", "unit/two: (SIGABRT)", "unit/one: time limit")
expect(0, "3 of 3 are known from before", "3 of 3 mutants caught")
# Known by content: a changed test, a changed source.
put("tests/unit/two.c", TWO + "\n")
expect(0, "1 of 3 are known from before")
put("src/base/sum.c", SUM + "\n")
expect(0, "0 of 1 are known from before", words=["less"])

# What survives, and who else would have noticed.
mutant("lives", "unit/two", "int s = 0", "int s = 1")
expect(1, "3 of 4 mutants caught; SURVIVED: lives", "survived lives")
expect(1, "0 of 1 mutants caught", "is noticed by unit/one: failed: sum of 4", words=["--all", "lives"])
drop("lives")

# Errors: none of them is caught.
mutant("gone", "unit/one", "no such text", "x")
mutant("four_times", "unit/one", "int", "long")
mutant("does_not_compile", "unit/one", "return s;", "return t;")
mutant("no_test", "unit/three", "int s = 0", "int s = 1")
mutant("outside", "unit/one", "if", "while", file="tests/unit/one.c")
put("tests/mutants/no_form.mutant", "why: it\ntests: unit/one\n@file src/base/sum.c\n@new\nx\n@end\n")
expect(2, "3 of 9 mutants caught", "CANNOT BE JUDGED: does_not_compile, four_times, gone, no_form, no_test, outside",
       "it does not compile", "has its old text 0 times", "has its old text 4 times", "there is no test unit/three")
expect(2, "gone: src/base/sum.c has its old text 0 times", "no_form: ", words=["--check"], never=["does_not_compile"])
drop("gone", "four_times", "does_not_compile", "no_test", "outside", "no_form")
expect(0, "3 mutants apply", words=["--check"])
expect(2, "no mutant is called so", words=["nobody"])

# A test that fails without a patch catches nothing.
put("tests/unit/one.c", ONE.replace("!= 10", "!= 11"))
expect(2, "unit/one fails on the unpatched tree")
put("tests/unit/one.c", ONE + "\n\n")

# Interrupted while a test hangs: what is known stays known.
child = subprocess.Popen([sys.executable, RUN, "--source", TREE, "--limit", "100", "-j", "1"], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
for line in child.stdout:
    if line.startswith("caught") and "less" in line:
        break
time.sleep(1)
child.send_signal(signal.SIGTERM)
rest = child.communicate(timeout=300)[0]
if child.returncode != 130 or "interrupted" not in rest:
    fail(f"interrupted: exit {child.returncode}: {rest}")
expect(0, "2 of 3 are known from before", "3 of 3 mutants caught")
sys.exit(1 if failures else 0)
