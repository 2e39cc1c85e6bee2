#!/bin/bash
# Valgrind has nothing to say of the library: no value that nobody has set decides anything, not even of a first allocator or of
# one whose reservation was halved until it fitted.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need valgrind "valgrind is not installed"
compile_test sanitizers/calls.c calls
./calls set >plain
# What the library does with memory of its own: objects in their slots.
export TSLAB_OPTIONS=by_malloc=2
valgrind -q --error-exitcode=9 --log-file=log ./calls set >out || fail "exit code $?: $(grep -v 'Warning: set address range' log | head -n 40)"
cat out
# An address space in which no default reservation fits.
(ulimit -v 50000000 && exec valgrind -q --error-exitcode=9 --log-file=log ./calls set) >out || fail "with a halved reservation: exit code $?: $(grep -v 'Warning: set address range' log | head -n 40)"
cat out
# Objects as Valgrind sees them, one by one.
unset TSLAB_OPTIONS
valgrind -q --error-exitcode=9 --log-file=log ./calls >out || fail "with objects by malloc: exit code $?: $(grep -v 'Warning: set address range' log | head -n 40)"
cat out
