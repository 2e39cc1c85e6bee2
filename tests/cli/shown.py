"""shown.py PAGE COMMAND FILE: what the page shows under `$ COMMAND`, or `(gdb) COMMAND`, is what FILE holds, which the command has
printed.
shown.py --exactly PAGE COMMAND FILE: with the same numbers, too, for an output that is the same each time. Only what another run or
build changes may differ: addresses, process ids, ages, the numbers of frames and the lines of the library's own files.
shown.py --among PAGE WORDS FILE: the line of the page that has WORDS, unless it is a command, and each line after it up to the
next command or the end of the block, is a line of FILE.
shown.py --words PAGE WORDS FILE: each word of the block of the page that has WORDS in its first line is in FILE, a screen.

Otherwise numbers, sizes, times and addresses may differ, and a cell may be empty (-). A line of three points stands for lines that the page leaves out.
"""
import re
import sys

NUMBER = re.compile(r"0x[0-9a-f]+|[+-]?\d+d\d+h|[+-]?(\d+h)?\d+m(\d+s)?\b(?!iB)|[+-]?\d+h\d+m|[+-]?\d[\d.,]*( ?(%|(ns|us|ms|s|min|B|KiB|MiB|GiB|kB|MB|GB|k|M)\b))?")

VARIES = re.compile(r"0x[0-9a-f]{9,}|(?<===)\d+(?===)|\b\d+\.\d s\b|(?<=^#)\d+(?= 0x)|(?<=\bpid )\d+|\bsrc/\S+:\d+")
exactly = False


def fail(text):
    sys.exit("FAILED: " + text)


def masked(line):
    if exactly:
        return VARIES.sub(lambda found: found[0].split(":")[0] + ":#" if found[0].startswith("src/") else "#", " ".join(line.split()))
    line = NUMBER.sub("#", line)
    line = re.sub(r"(?<!\S)-(?!\S)", "#", line)
    line = re.sub(r"# things? needs? attention", "# things need attention", line)
    for one in "object", "phase", "label", "class", "slab", "stack":
        line = re.sub(r"# %s(e?s)?\b" % one, "# %ss" % one, line)
    return " ".join(line.split())


def blocks(page):
    """The blocks of code of a page, each a list of lines; an empty line between indented ones is left out."""
    fenced, found = False, [[]]
    for line in open(page, encoding="utf-8").read().split("\n"):
        if line.startswith("```"):
            fenced = not fenced
            found.append([])
        elif fenced or line.startswith("    "):
            found[-1].append(line if fenced else line[4:])
        elif line and found[-1]:
            found.append([])
    return found


def under(page, command):
    """The lines that the page shows as the command's output."""
    for block in blocks(page):
        for at, line in enumerate(block):
            if re.sub(r" +#.*", "", line) in ("$ " + command, "(gdb) " + command):
                rest = block[at + 1:]
                ends = [n for n, text in enumerate(rest) if text.startswith(("$ ", "(gdb) "))]
                return rest[:ends[0]] if ends else rest
    fail("%s shows no output of: %s" % (page, command))


def whole(shown, printed):
    """Whether the lines are there, in order, and none between them but where points are."""
    at, free = 0, False
    part = []
    for line in [*shown, None]:
        if line != "..." and line is not None:
            part.append(line)
            continue
        starts = range(at, len(printed) - len(part) + 1) if free else [at]
        fits = [n for n in starts if printed[n:n + len(part)] == part]
        if not fits:
            return part
        at = fits[0] + len(part)
        if line is None and not free and at != len(printed):
            return printed[at:]
        if line is None and free and part and printed[len(printed) - len(part):] != part:
            return part
        part, free = [], True
    return None


def among(page, first, printed):
    lines = [line for block in blocks(page) for line in [*block, "$ "]]
    starts = [n for n, line in enumerate(lines) if first in line]
    if len(starts) != 1:
        fail("%s has %d lines with %s" % (page, len(starts), first))
    rest = lines[starts[0] + (lines[starts[0]].startswith(("$ ", "(gdb) "))):]
    shown = rest[:[n for n, line in enumerate(rest) if line.startswith(("$ ", "(gdb) "))][0]]
    have = {masked(line) for line in printed.split("\n")}
    missing = [line for line in shown if line and masked(line) not in have]
    if not shown or missing:
        fail("%s: %s is not so, but:\n%s" % (page, missing, printed))


def words(page, first, screen):
    block = [b for b in blocks(page) if b and first in b[0]]
    if len(block) != 1:
        fail("%s has %d blocks with %s" % (page, len(block), first))
    text = " ".join(masked(re.sub(r"\x1b\[[^@-~]*[@-~]|\x1b\][^\x07]*\x07|[▁-█]", " ", screen)).split())
    cells = [c for line in block[0] for c in re.split(r" {2,}|[▁-█]+| (?=pid )", line)]
    # What needs attention is the business of the moment.
    cells = [c for c in map(masked, cells) if re.search("[a-z]{2}", c) and not re.search("!|doctor|attention", c)]
    if len(cells) < 9:
        fail("only %s" % cells)
    missing = [c for c in cells if c not in text]
    if missing:
        fail("the screen has no %s but: %s" % (missing, text))


if __name__ == "__main__":
    if sys.argv[1] == "--words":
        words(sys.argv[2], sys.argv[3], open(sys.argv[4], encoding="utf-8").read())
        sys.exit()
    if sys.argv[1] == "--among":
        among(sys.argv[2], sys.argv[3], open(sys.argv[4], encoding="utf-8").read())
        sys.exit()
    exactly = sys.argv[1] == "--exactly"
    page, command, file = sys.argv[1 + exactly:]
    shown = [masked(line) for line in under(page, command)]
    if len([line for line in shown if line != "..."]) < 1:
        fail("%s shows nothing under %s" % (page, command))
    printed = [masked(line) for line in open(file, encoding="utf-8").read().rstrip("\n").split("\n")]
    wrong = whole([line for line in shown if line], [line for line in printed if line])
    if wrong is not None:
        fail("%s, under %s: %s is not so, but:\n%s" % (page, command, wrong, "\n".join(printed)))
