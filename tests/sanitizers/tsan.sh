#!/bin/bash
# ThreadSanitizer, with by_malloc=1, reports a use of an object that another thread has ended or freed: the function that used it,
# and where the thread began. It says nothing of what programs may do. The program is compiled for it, the library is not, so callers
# of the library's functions are missing.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
. "$TSLAB_SOURCE_DIR/tests/sanitizers/uses.bash"
echo 'int main(void) { return 0; }' >empty.c
{ cc -fsanitize=thread empty.c -o empty && ./empty; } >errors 2>&1 || skip "the compiler has no ThreadSanitizer: $(tail -n 1 errors)"
compile_test sanitizers/uses.c uses -fsanitize=thread -fno-omit-frame-pointer
export TSLAB_OPTIONS=by_malloc=1
run_uses() { ./uses "$@" >said 2>&1; }

for words in malloc:other_thread malloc:other_frees calloc:other_thread aligned:other_thread handle:other_thread ring:other_thread; do
    make=${words%:*} end=${words#*:}
    report "$make" "$end" ended "ThreadSanitizer: heap-use-after-free" "object_is_used" "#0 free" "object_is_ended"
done
for words in malloc:end malloc:free malloc:other_thread malloc:other_frees handle:handle ring:close; do quiet "${words%:*}" "${words#*:}" none; done
finish
