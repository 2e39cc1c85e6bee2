#!/bin/bash
# Sentences of comments in src/, include/ and preload/: none begins with a word that hides what it speaks of, and none has an
# amount without its name. What a program cannot see of the rules for sentences (CONTRIBUTING.md) is for readers.
# usage: comments.sh [FILE...]
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"
export LC_ALL=C.UTF-8

# Prints "file:line: what: sentence" for each sentence of a comment that breaks a rule.
broken() {
    python3 - "$@" <<'PY'
import re
import sys

COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*(.*?)\*/|//([^\n]*)', re.S)
OPENERS = re.compile(r"(As|It|One|Those|Else|Also|Of|Not|Who|Whoever|What|The same)\b(?!:)")
WORDS = re.compile(r"\b(so many|so much|that many|that much|in vain|for ever|mostly)\b", re.I)
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as source:
        text = source.read()
    for found in COMMENT.finditer(text):
        body = found[1] if found[1] is not None else found[2]
        if body is None:
            continue
        line = text.count("\n", 0, found.start()) + 1
        body = re.sub(r"\n[ \t]*\*? ?", "\n", body)
        for part in re.split(r"\n[ \t]*\n|\n[ \t]+(?=[A-Z][0-9]  )|\n(?=[ \t]{3,})|\n(?=- )", body):
            for sentence in re.split(r"(?<=[.!?])\s+", part.strip()):
                said = " ".join(sentence.split())
                opener = OPENERS.match(said)
                word = WORDS.search(said)
                if opener:
                    print(f"{path}:{line}: begins with \"{opener[0]}\": {said[:90]}")
                if word:
                    print(f"{path}:{line}: \"{word[0]}\": {said[:90]}")
PY
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '/* As above. */\nint a; /* so many bytes */\n/* Returns what it finds. The same again. */\n/* Frees p. */\n' >"$scratch/known.h"
[ "$(broken "$scratch/known.h" | wc -l)" = 3 ] || fail "the rules find $(broken "$scratch/known.h")"
files=("$@")
[ $# != 0 ] || mapfile -t files < <(find src include preload -name '*.[ch]' -o -name '*.hpp' -path '*include*' | sort)
found=$(broken "${files[@]}")
[ -z "$found" ] || complain "$(wc -l <<<"$found") sentences of comments break a rule:
$found"
finish
