#!/bin/bash
# The programs on docs/cpp.md and the line of C++ in the README compile without a warning and end with 0; what it says of the document of the benchmark is so.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need g++ "g++ is not installed"
clean
page=$TSLAB_SOURCE_DIR/docs/cpp.md
awk '/^```cpp$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > ("program" n ".cpp") }' "$page"
[ -e program2.cpp ] && [ ! -e program3.cpp ] || fail "docs/cpp.md has not two programs"
for program in program1 program2; do
    g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -I"$TSLAB_SOURCE_DIR/include" $program.cpp "$TSLAB_BUILD_DIR/libtemporal_slab.a" -pthread -o $program ||
        complain "$program does not compile"
    TSLAB_OPTIONS=misuse_fatal=1 "./$program" >$program.out || complain "$program fails"
done
[ "$(cat program1.out)" = "$(printf '4 words\n4 words\n4 words')" ] || complain "program1 says $(cat program1.out)"
[ "$(cat program2.out)" = 42 ] || complain "program2 says $(cat program2.out)"

# The line of the README.
{
    printf '#include <tslab.hpp>\nint main() {\n    tslab::allocator slab;\n'
    awk '/^```cpp$/ { on = 1; next } /^```$/ { on = 0 } on' "$TSLAB_SOURCE_DIR/README.md"
    echo '}'
} >readme.cpp
has readme.cpp 'tslab::scope'
g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$TSLAB_SOURCE_DIR/include" readme.cpp "$TSLAB_BUILD_DIR/libtemporal_slab.a" -pthread -o readme &&
    ./readme || complain "the line of the README"

bench=$TSLAB_BUILD_DIR/tslab_documents
if [ -x "$bench" ]; then
    "$bench" --reps 1 --documents 2 --json out.json >out || complain "tslab_documents fails"
    has out '^a document: 122 allocations of '
    has out '^phase, left  *[0-9]'
    has out.json '^\[{"way": "new", "ns": \[[0-9.]*\]},$'
    "$bench" --reps none >out 2>err && complain "tslab_documents takes --reps none"
    has err '^usage: '
    "$bench" --json /nowhere/out --reps 1 --documents 1 >out 2>err && complain "tslab_documents writes to nowhere"
fi
finish
