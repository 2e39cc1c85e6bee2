#!/usr/bin/env python3
"""Finds the fewest operations of a run of model_test that still fail in the same way, and prints them.

usage: shrink.py PROGRAM --seed N --ops N --threads N [--planted] [--save FILE]

PROGRAM is model_test; the rest is what it says after "replay:". --save writes what was found as model_test --replay reads it: in
tests/model/kept such a file is a test. Operations are left out by delta debugging (Zeller and
Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), each attempt in a process of its own. Exit status:
0 a shorter run was found, or the shortest was there already; 1 the run does not fail; 2 wrong usage.
"""
import argparse
import re
import subprocess
import sys

PATIENCE = 120  # seconds an attempt may take; one that hangs fails by that


def as_list(operations):
    """Returns the operations as --keep takes them: 3,17-20."""
    parts = []
    for op in operations:
        if parts and parts[-1][1] == op - 1:
            parts[-1][1] = op
        else:
            parts.append([op, op])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


class Run:
    """A run of the program, with some of its operations."""

    def __init__(self, options):
        self.command = [options.program, "--seed", str(options.seed), "--threads", str(options.threads)]
        if options.planted:
            self.command.append("--planted")
        self.options = options
        self.failure = None
        self.attempts = 0

    def said(self, ops, kept=None):
        """Runs it, and returns its standard error, or None if nothing failed."""
        self.attempts += 1
        command = self.command + ["--ops", str(ops)] + (["--keep", as_list(kept)] if kept is not None else [])
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return "FAILED hangs"
        return done.stderr if done.returncode != 0 else None

    def save(self, path, ops, kept):
        """Writes the run to a file, with the names of its operations."""
        self.command.append("--list")
        named = dict(re.findall(r"^  op (\d+) (\w+)$", self.said(ops, kept), re.MULTILINE))
        with open(path, "w", encoding="utf-8") as out:
            for key, value in (("seed", self.options.seed), ("threads", self.options.threads), ("ops", ops)):
                print(key, value, file=out)
            for op in kept:
                if str(op) in named:
                    print("op", op, named[str(op)], file=out)

    def same(self, said):
        """Whether this is the failure that is being looked for: the same line, whatever its numbers and addresses are."""
        first = next((line for line in said.splitlines() if line.startswith("FAILED")), said[:200])
        kind = re.sub(r"0x[0-9a-f]+|\d+", "#", first)
        if self.failure is None:
            self.failure = kind
        return kind == self.failure


def shrink(run, ops):
    """Returns the fewest operations below `ops` that fail, by delta debugging."""
    kept, parts = list(range(ops)), 2

    def fails(some):
        said = run.said(ops, some)
        return said is not None and run.same(said)

    while len(kept) >= 2:
        size = (len(kept) + parts - 1) // parts
        chunks = [kept[i : i + size] for i in range(0, len(kept), size)]
        without = (([op for k, chunk in enumerate(chunks) if k != n for op in chunk]) for n in range(len(chunks)))
        found = next((rest for rest in without if rest and fails(rest)), None)
        if found is not None:
            kept, parts = found, max(parts - 1, 2)
        elif parts >= len(kept):
            break
        else:
            parts = min(parts * 2, len(kept))
    return kept


def main():
    parser = argparse.ArgumentParser(description="Finds the fewest operations of a run of model_test that still fail.")
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ops", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--save", metavar="FILE", help="write the run for model_test --replay")
    options = parser.parse_args()

    run = Run(options)
    said = run.said(options.ops)
    if said is None:
        print("shrink.py: the run does not fail", file=sys.stderr)
        return 1
    run.same(said)
    at = re.search(r"operation (\d+)", said)
    ops = min(options.ops, int(at[1]) + 1) if at else options.ops
    if run.said(ops, range(ops)) is None:  # it fails after the last operation, in what all runs end with
        ops = options.ops
    kept = shrink(run, ops)
    print(run.said(ops, kept), end="")
    print(f"{len(kept)} of {ops} operations fail, found in {run.attempts} attempts:")
    print(" ".join(run.command + ["--ops", str(ops), "--keep", as_list(kept)]))
    if options.save:
        run.save(options.save, ops, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
