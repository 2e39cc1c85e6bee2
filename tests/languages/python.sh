#!/bin/bash
# examples/python holds what it claims with the shared library, and its receipt is the header's.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
export PYTHONDONTWRITEBYTECODE=1
example=$TSLAB_SOURCE_DIR/examples/python/phases.py
timeout 120 python3 "$example" "$TSLAB_BUILD_DIR/libtemporal_slab.so" || fail "it ended with $?"
timeout 120 python3 "$example" ./no-library.so >out 2>&1
[ $? -eq 2 ] && [ "$(grep -c '^phases.py: ./no-library.so: ' out)" = "$(wc -l <out)" ] || fail "a library that is not there: $(cat out)"

# Each field where C has it.
python3 - "$example" >fields.py <<'END' || fail "no fields"
import importlib.util, sys
spec = importlib.util.spec_from_file_location("phases", sys.argv[1])
phases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(phases)
import ctypes
print("whole", ctypes.sizeof(phases.Receipt))
for name, *_ in phases.Receipt._fields_:
    print(name, getattr(phases.Receipt, name).offset)
END
{
    printf '#include <epoch_domain.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) { printf("whole %%zu\\n", sizeof(EpochReceipt));\n'
    tail -n +2 fields.py | while read -r name _; do echo "printf(\"$name %zu\\n\", offsetof(EpochReceipt, $name));"; done
    echo '}'
} >fields.c
cc -I"$TSLAB_SOURCE_DIR/include" fields.c -o fields && ./fields >fields.txt || fail "a field that C has not"
diff fields.py fields.txt >&2 || fail "fields lie elsewhere"
