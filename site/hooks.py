"""What mkdocs does with this tree: links that lead out of docs/ lead to a page of the site that shows the file, and links to
public headers to their reference (api_pages.py).
"""

import logging
import os
import posixpath
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import api_pages  # noqa: E402
from mkdocs.structure.files import File, InclusionLevel  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOG = logging.getLogger("mkdocs.hooks.tslab")
LINK = re.compile(r"(\]\()([^)\s#]*)(#[^)\s]*)?(\))|(<img [^>]*?src=\")([^\"]+)(\")|(<source [^>]*?srcset=\")([^\"]+)(\")")
LANGUAGES = {"c": "c", "h": "c", "cpp": "cpp", "hpp": "cpp", "py": "python", "rs": "rust", "go": "go", "sh": "bash", "bash": "bash", "txt": "cmake",
             "patch": "diff"}
tree = {}  # place on the site: path of the file in the tree


def source_of(place):
    """The path in the tree of a page of the site; None for one that is made."""
    return tree.get(place) or (None if place.startswith("api/") else "docs/" + place)


def place_of(path):
    """Where the site has a file of the tree."""
    if path.startswith("docs/") and not os.path.isdir(os.path.join(ROOT, path)):
        return path[len("docs/"):]
    if re.match(r"include/.*\.h$", path):
        return "api/%s.md" % path[len("include/"):]
    return "tree/" + path + ("" if path.endswith(".md") else ".md")


def links(text):
    """(text outside of code, text of code) by turns, so that links in code stay as they are."""
    return re.split(r"(^(?:```|~~~).*?^(?:```|~~~)\s*$|``.*?``|`[^`\n]*`)", text, flags=re.S | re.M)


def with_links(text, source, found=None):
    """The text with its links as the site has them. `found` gets the files that they lead to."""
    here = place_of(source)

    def change(match):
        before, target, anchor, after = next(g for g in (match.groups()[:4], (*match.groups()[4:6], "", match.group(7)), (*match.groups()[7:9], "", match.group(10)))
                                             if g[0])
        if not target or re.match(r"[a-z]+:", target):
            return match.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if not os.path.exists(os.path.join(ROOT, path)):
            return match.group(0)  # mkdocs tells of it
        if found is not None:
            found.append(path)
        place = place_of(path)
        if place.startswith("api/"):
            anchor = ""
        return before + posixpath.relpath(place, posixpath.dirname(here)) + (anchor or "") + after

    parts = links(text)
    return "".join(part if k % 2 else LINK.sub(change, part) for k, part in enumerate(parts))


def with_lists(text):
    """The text with an empty line before each list: the Markdown of repositories does without."""
    parts = links(text)
    return "".join(part if k % 2 else re.sub(r"^((?![-*>|#]|\d+\.|<!--)\S.*\n)(?=- )", r"\1\n", part, flags=re.M) for k, part in enumerate(parts))


def shown(path):
    """The page of a file or folder outside of docs/."""
    full = os.path.join(ROOT, path)
    if os.path.isdir(full):
        names = sorted(n + ("/" if os.path.isdir(os.path.join(full, n)) else "") for n in os.listdir(full) if not n.startswith((".", "__")))
        return "# %s/\n\n%s\n" % (path, "\n".join("- `%s`" % n for n in names))
    with open(full, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".md"):
        return text
    return "# %s\n\n`````%s\n%s\n`````\n" % (path, LANGUAGES.get(path.rsplit(".", 1)[-1], "text"), text)


def on_files(files, config):
    named = str(config.nav)
    with open(os.path.join(ROOT, "site", "site.css"), encoding="utf-8") as css:
        files.append(File.generated(config, "site.css", content=css.read()))
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in api_pages.make(ROOT, scratch).items():
            files.append(File.generated(config, "api/%s.md" % name, content=text))
    todo = ["docs/" + file.src_uri for file in files.documentation_pages() if not file.src_uri.startswith("api/")]
    todo += re.findall(r"'tree/([^']*)'", named)
    for path in todo:
        place = place_of(path)
        if place.startswith("tree/") and place not in tree:
            tree[place] = path
            level = InclusionLevel.INCLUDED if "'%s'" % place in named else InclusionLevel.NOT_IN_NAV
            files.append(File.generated(config, place, content=shown(path), inclusion=level))
        if path.endswith(".md") and (path.startswith("docs/") or place.startswith("tree/")):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                found = []
                with_links(file.read(), path, found)
                todo += [f for f in found if place_of(f).startswith("tree/") and place_of(f) not in tree and f not in todo]
    return files


def on_page_markdown(markdown, page, config, files):
    source = source_of(page.file.src_uri)
    if not source or not source.endswith(".md"):
        return markdown
    return with_links(with_lists(markdown), source)
