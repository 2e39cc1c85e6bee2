#!/bin/bash
# Of the binary interface of 0.3 nothing has changed, and of that of 0.2 nothing but what abi/allowed.ini names; functions may be new.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
here=$TSLAB_SOURCE_DIR/tests/package/abi
need abidiff "no abidiff: Debian has it in abigail-tools"
grep -q '^TSLAB_DEBUG_INFO:BOOL=ON' "$TSLAB_BUILD_DIR/CMakeCache.txt" || skip "the library has no debug information"
clean
compare() { # STATUS DESCRIPTION [ALLOWED]
    local wanted=$1 status=0
    shift
    "$TSLAB_SOURCE_DIR/scripts/abi.sh" compare "$TSLAB_BUILD_DIR" "$@" >said 2>&1 || status=$?
    [ $status -eq "$wanted" ] || complain "$*: $status instead of $wanted: $(cat said)"
}
compare 0 "$here/0.2.xml" "$here/allowed.ini"
compare 0 "$here/0.3.xml"

# It notices: what is allowed when it is not, a function that is gone, a type that has another size, arguments that are others.
compare 1 "$here/0.2.xml"
for type in SlabOptions SlabGlobalStats SlabLabelStats SlabSegmentView; do has said "struct $type' at .* changed"; done
sed "s/slab_free_checked/slab_gone/" "$here/0.2.xml" >gone.xml
compare 1 gone.xml "$here/allowed.ini"
has said 'slab_gone'
sed "s/\(name='EpochReceipt' size-in-bits='\)[0-9]*/\164/" "$here/0.2.xml" >size.xml
compare 1 size.xml "$here/allowed.ini"
has said 'EpochReceipt'
awk '/function-decl/ { of = /name=.slab_malloc_outside. / } of && /<parameter/ && !n++ { next } { print }' "$here/0.2.xml" >arguments.xml
compare 1 arguments.xml "$here/allowed.ini"
has said 'slab_malloc_outside'
finish
