#!/bin/bash
# The statistics that the demo leaves follow the schema.
set -u
. "$TSLAB_SOURCE_DIR/tests/demo/kit.bash"

# The interpreter of the distribution has its jsonschema; another one in front may have none.
for python in python3 /usr/bin/python3 ""; do
    [ -z "$python" ] || ! "$python" -c 'from jsonschema import Draft202012Validator' 2>/dev/null || break
done
[ -n "$python" ] || skip "no python3 with jsonschema 4 (Debian package python3-jsonschema)"
expect 0 --requests 400 --rounds 1 --leak --json stats.json
"$python" - "$TSLAB_SOURCE_DIR/share/stats.schema.json" stats.json <<'END' || complain "not valid"
import json, sys
from jsonschema import Draft202012Validator
schema, document = (json.load(open(name, encoding="utf-8")) for name in sys.argv[1:])
Draft202012Validator(schema).validate(document)
END

finish
