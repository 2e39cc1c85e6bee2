"""Holds the programs shown on the pages of a folder against the files in its folder code/.

    pages.py FOLDER            says what differs, exit code 1 when anything does
    pages.py --update FOLDER   writes the files' text into the pages

A program on a page is a fenced block with a language, and the last link to code/ before it names its file.
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(code/([\w.-]+)\)")


def blocks(lines):
    """(first line, line after the last, file that a link named) of the text inside of each fence."""
    named, begin = None, None
    for at, line in enumerate(lines):
        if begin is None:
            for name in LINK.findall(line):
                named = name
            if line.startswith("```"):
                begin = at + 1
        elif line == "```":
            yield begin, at, named
            named, begin = None, None
    if begin is not None:
        yield begin, len(lines), None


def main(arguments):
    update = arguments[:1] == ["--update"]
    folder = pathlib.Path(arguments[-1])
    files = {f.name: f.read_text().splitlines() for f in sorted((folder / "code").iterdir())}
    wrong, shown = [], {}
    for page in sorted(folder.glob("*.md")):
        lines = page.read_text().splitlines()
        for begin, end, name in reversed(list(blocks(lines))):
            if name is None:
                wrong.append(f"{page.name}:{begin}: a program without a link to its file in code/")
            elif name not in files:
                wrong.append(f"{page.name}:{begin}: there is no file code/{name}")
            else:
                shown[name] = page.name
                if lines[begin:end] != files[name]:
                    wrong.append(f"{page.name}:{begin}: is not the text of code/{name}")
                    lines[begin:end] = files[name]
        if update:
            page.write_text("\n".join(lines) + "\n")
    wrong += [f"code/{name}: no page shows it" for name in files if name not in shown]
    if not shown:
        wrong.append(f"{folder}: no page shows a program")
    print("\n".join(wrong) or f"{len(shown)} programs are shown as they are")
    return bool(wrong) and not update


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
