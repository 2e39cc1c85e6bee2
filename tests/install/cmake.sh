#!/bin/bash
# An installed tree, moved elsewhere, serves find_package(temporal-slab) and has the schema of the statistics.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean first moved build
cmake --install "$TSLAB_BUILD_DIR" --prefix "$PWD/first" >/dev/null
mv first moved
[ -s moved/share/temporal-slab/stats.schema.json ] || { echo "the schema of the statistics is not installed" >&2; exit 1; }
[ -s moved/share/temporal-slab/temporal_slab.py ] || { echo "the gdb commands are not installed" >&2; exit 1; }
diff -r "$TSLAB_SOURCE_DIR/include/temporal_slab" moved/include/temporal_slab || { echo "the adapters are not installed" >&2; exit 1; }
cmake -G Ninja -S "$TSLAB_SOURCE_DIR/tests/install/consumer" -B build -DCMAKE_PREFIX_PATH="$PWD/moved"
cmake --build build
for program in build/c_temporal_slab build/cpp_temporal_slab build/c_temporal_slab_static build/cpp_temporal_slab_static; do
    echo "$program"
    "$program"
done
