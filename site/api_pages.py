"""Pages about the public headers, from what Doxygen reads in them: {name of a page: Markdown}.

Comments of the headers are plain C comments; a copy of each header has them in the form that Doxygen looks for. The comment
at the head of a file is left out of that copy and becomes the introduction of its page.
"""

import os
import re
import subprocess
import xml.etree.ElementTree as ET

# What compilers are told of a function is not part of its declaration here.
ATTRIBUTES = ["SLAB_API", "SLAB_ALLOC", "SLAB_ALLOC_SIZE(n)", "SLAB_ALLOC_ARRAY(n,m)", "SLAB_ALLOC_ALIGNED(n,m)", "SLAB_REALLOC_SIZE(n)",
              "SLAB_FORMAT(n,m)", "__attribute__(x)"]
DOXYFILE = """
PROJECT_NAME = temporal-slab
INPUT = %(headers)s
RECURSIVE = YES
OUTPUT_DIRECTORY = %(out)s
STRIP_FROM_PATH = %(headers)s
OPTIMIZE_OUTPUT_FOR_C = YES
EXTENSION_MAPPING = h=C
MARKDOWN_SUPPORT = NO
JAVADOC_AUTOBRIEF = NO
EXTRACT_ALL = YES
EXTRACT_STATIC = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
SORT_MEMBER_DOCS = NO
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = __GNUC__ __ELF__ __linux__ __LP64__ __x86_64__ %(attributes)s
QUIET = YES
WARN_IF_DOC_ERROR = NO
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = YES
"""


def escaped(text):
    """A comment's text as Doxygen takes it literally."""
    return re.sub(r'([\\@&$#<>%"])', r"\\\1", text)


def for_doxygen(text):
    """The header with its comments in Doxygen's form, line for line."""
    end = text.index("*/") + 2
    head, rest = text[:end], text[end:]
    out, at = ["\n" * head.count("\n")], 0
    for comment in re.finditer(r"/\*.*?\*/", rest, re.S):
        before = rest[at:comment.start()]
        opened = re.findall(r"^[A-Za-z}].*", rest[:comment.start()], re.M)
        line = rest[rest.rfind("\n", 0, comment.start()) + 1:comment.start()]
        words = comment.group(0)[2:-2]
        after = rest[comment.end():].lstrip(" ")
        in_function = line.startswith("  ") and opened and re.search(r"\(.*\{$", opened[-1])
        if in_function or words.startswith(" ----"):
            words = re.sub("[^\n]", " ", comment.group(0))
        elif line.strip():
            words = "/**<" + escaped(words) + "*/"
        elif after.startswith("\n#if") or after.startswith("\n\n"):
            words = re.sub("[^\n]", " ", comment.group(0))
        else:
            words = "/**" + escaped(words) + "*/"
        out += [before, words]
        at = comment.end()
    return "".join(out) + rest[at:]


def table_of(lines):
    """The pairs of lines like "name  what it is", whose further lines stand below the text; or None."""
    pairs, column = [], 0
    for line in lines:
        found = re.match(r"(\S+(?: \S+)?) {2,}(\S.*)", line)
        if found and column in (0, found.start(2)):
            column = found.start(2)
            pairs.append([found.group(1), found.group(2)])
        elif pairs and line[:column].strip() == "" and line.strip():
            pairs[-1][1] += " " + line.strip()
        else:
            return None
    return pairs


def introduction(text, written=None):
    """The comment at the head of a file: what it is for, and the rest as Markdown."""
    written = written or plain
    lines = [re.sub(r"^ \* ?", "", line).rstrip() for line in text[:text.index("*/")].splitlines()[1:]]
    purpose, out, block = lines[0].split(" - ", 1)[1], [], []

    def flush():
        while block and not block[-1]:
            block.pop()
        if block:
            depth = min(len(line) - len(line.lstrip()) for line in block if line)
            lines = [line[depth:] for line in block]
            named = table_of(lines)
            out.extend(["", "| | |", "|---|---|", *["| %s | %s |" % tuple(map(written, pair)) for pair in named], ""] if named else
                       ["", "```c", *lines, "```", ""])
            block.clear()

    lines = lines[1:]
    while lines and lines[0]:
        purpose += " " + lines.pop(0)
    for line in lines:
        if line.startswith("  ") or (block and not line):
            block.append(line)
            continue
        flush()
        out.append(written(line))
    flush()
    return purpose, "\n".join(out)


def plain(text):
    """Text that Markdown leaves as it is, but for what stands between backquotes."""
    parts = text.split("`")
    return "`".join(part if k % 2 else re.sub(r"([\\*_<>\[\]|{}#])", r"\\\1", part) for k, part in enumerate(parts))


def is_hidden(name):
    return name.endswith("_") or name.endswith("_H") or name in [a.split("(")[0] for a in ATTRIBUTES] + ["SLAB_STATIC"]


class Pages:
    def __init__(self, folder, names):
        self.folder, self.names, self.at, self.of, self.named = folder, names, {}, {}, {}
        index = ET.parse(os.path.join(folder, "index.xml")).getroot()
        for compound in index:
            kind, name = compound.get("kind"), compound.find("name").text
            tree = ET.parse(os.path.join(folder, compound.get("refid") + ".xml")).getroot().find("compounddef")
            page = tree.find("location").get("file") if tree.find("location") is not None else None
            if page not in names:
                continue
            self.of[compound.get("refid")] = (kind, tree)
            self.at[compound.get("refid")] = (page, None if kind == "file" else name)
            if kind != "file":
                self.name(name, page)
            for member in tree.iter("memberdef"):
                within = member.get("kind") in ("variable",)
                self.at[member.get("id")] = (page, name if within else member.find("name").text)
                if not within and (member.find("name").text or "_").strip("_") and not is_hidden(member.find("name").text):
                    self.name(member.find("name").text, page)
                for value in member.findall("enumvalue"):
                    self.at[value.get("id")] = (page, member.find("name").text or value.find("name").text)

    def name(self, name, page):
        """Of a name that several headers have, that of the papers' is another's."""
        if page != "slab_papers_compat.h" or name not in self.named:
            self.named[name] = page

    def reach(self, name, page):
        """The link to a name, from a page."""
        to = self.named[name]
        return "[`%s`](%s#%s)" % (name, "" if to == page else os.path.relpath(to + ".md", os.path.dirname(page) or "."), name)

    def linked(self, text, page):
        """Text with names of the headers as links, and other identifiers as code."""
        out = []
        for k, part in enumerate(text.split("`")):
            if k % 2:
                out.append(self.reach(part, page) if part in self.named else "`%s`" % part)
                continue
            at = 0
            for word in re.finditer(r"\b(?:[A-Za-z]\w*_\w+|(?:Slab|Epoch)[A-Z]\w+)\b(?:\(\)|\.h\b)?", part):
                name = word.group(0).replace("()", "")
                if name in self.names:
                    link = "[%s](%s)" % (plain(name), os.path.relpath(name + ".md", os.path.dirname(page) or "."))
                else:
                    link = self.reach(name, page) if name in self.named else "`%s`" % word.group(0)
                out += [plain(part[at:word.start()]), link]
                at = word.end()
            out.append(plain(part[at:]))
        return "".join(out)

    def words(self, node, page):
        """A description as one paragraph of Markdown."""
        out = [self.linked(node.text or "", page)]
        for child in node:
            if child.tag == "ref" and child.get("refid") in self.at:
                to, anchor = self.at[child.get("refid")]
                out.append("[`%s`](%s)" % ("".join(child.itertext()), ("" if to == page else os.path.relpath(to + ".md", os.path.dirname(page) or "."))
                                          + ("#" + anchor if anchor else "")))
            elif child.tag in ("para", "ref", "simplesect", "parameterlist"):
                out.append(self.words(child, page))
            else:
                out.append({"ndash": "--", "mdash": "---"}.get(child.tag, "") + self.words(child, page))
            out.append(self.linked(child.tail or "", page))
        return re.sub(r"\s+", " ", "".join(out)).strip()

    def described(self, node, page):
        return " ".join(filter(None, (self.words(node.find(tag), page) for tag in ("briefdescription", "detaileddescription", "inbodydescription")
                                      if node.find(tag) is not None)))

    def write(self, page, text):
        """The page of a header, in the order of the header."""
        purpose, head = introduction(text, lambda line: self.linked(line, page))
        items = []
        for refid, (kind, tree) in self.of.items():
            if self.at[refid][0] != page:
                continue
            if kind in ("struct", "union") and not self.at[refid][1].endswith("_") and "@" not in self.at[refid][1]:
                items.append((int(tree.find("location").get("line")), kind, tree))
            elif kind == "file":
                items += [(int(m.find("location").get("line")), m.get("kind"), m) for m in tree.iter("memberdef")]
        for k, line in enumerate(text.splitlines(), 1):
            heading = re.match(r"/\* -{4} (.*?) -+ \*/", line)
            if heading:
                items.append((k, "section", heading.group(1)))
        items.sort(key=lambda item: item[0])
        lines, out, before = text.splitlines(), ["# %s" % page, "", purpose[0].upper() + purpose[1:], "", "```c", "#include <%s>" % page, "```", "", head, ""], None
        for line, kind, node in items:
            if kind == "section":
                out += ["", "## " + node[0].upper() + node[1:], ""]
                before = None
                continue
            name = (node.find("compoundname") if kind in ("struct", "union") else node.find("name")).text
            if name and is_hidden(name):
                continue
            if kind == "typedef" and any(other != "typedef" and not isinstance(n, str) and n.find("compoundname") is not None
                                         and n.find("compoundname").text == name for _, other, n in items):
                continue
            if kind == "typedef" and node.find("definition").text.startswith("typedef enum "):
                continue
            made = getattr(self, "of_" + kind, None)
            if not made:
                continue
            declaration, said, rest = made(node, page, name)
            if before and kind == "typedef" and before[0] in ("struct", "union") and said == before[3]:
                said, before = "", ("typedef", line - 1, *before[2:])
            # A declaration without a comment, right behind another, shares that one's.
            if before and not said and kind == before[0] and "" not in lines[before[1]:line - 1]:
                at = out.index("```", before[2])
                out.insert(at, declaration)
                out[before[2] - 2] += "<span id=\"%s\"></span>" % name
                before = (kind, line, *before[2:])
                continue
            out += ["### %s { #%s }" % (plain(name or declaration.split("\n")[1].strip(" ,").split(" ")[0]), name or declaration.split("\n")[1].strip(" ,").split(" ")[0]), "", "```c"]
            before = (kind, line, len(out), said)
            out += [declaration, "```", "", said, "", *rest, ""]
        return "\n".join(out) + "\n"

    def of_function(self, node, page, name):
        text = lambda n: re.sub(r"\s+", " ", "".join(n.itertext())).strip()
        kind = re.sub(r"^static inline |^SLAB_\w+(\([^)]*\))? ", "", text(node.find("type")))
        said = ["%s%s%s%s" % (text(p.find("type")), "" if text(p.find("type")).endswith("*") else " ", p.findtext("declname") or "", p.findtext("array") or "")
                for p in node.findall("param")]
        return call("%s %s(" % (kind.replace(" *", "*"), name), [re.sub(r" (\*+)", r"\1 ", s.strip()) for s in said], ");"), self.described(node, page), []

    def of_define(self, node, page, name):
        value = "".join(node.find("initializer").itertext()) if node.find("initializer") is not None else ""
        args = [p.findtext("defname") for p in node.findall("param")]
        value = re.sub(r"\s*\\\n\s*", " ", value)
        text = "#define %s%s%s" % (name, "(%s)" % ", ".join(args) if args else "", " " + value if value and len(value) < 80 else "")
        return text, self.described(node, page), []

    def of_typedef(self, node, page, name):
        return node.find("definition").text + (node.findtext("argsstring") or "") + ";", self.described(node, page), []

    def of_variable(self, node, page, name):
        return node.find("definition").text + ";", self.described(node, page), []

    def of_enum(self, node, page, name):
        values = [(v.find("name").text, "".join((v.find("initializer").itertext())) if v.find("initializer") is not None else "", self.described(v, page))
                  for v in node.findall("enumvalue")]
        values = [v for v in values if not v[0].endswith("_")]
        declaration = "enum %s{\n%s\n}" % (name + " " if name else "", "\n".join("    %s%s," % (v, " " + i if i else "") for v, i, _ in values))
        return declaration, self.described(node, page), rows([(v, said) for v, _, said in values])

    def of_struct(self, node, page, name, word="struct"):
        fields, declared = [], []
        for m in node.iter("memberdef"):
            field = m.find("name").text
            if field.endswith("_"):
                continue
            definition, args = m.find("definition").text.replace(name + "::", ""), m.findtext("argsstring") or ""
            declared.append("    %s%s;" % (definition, "" if definition.endswith(args) else args))
            line = m.find("location").get("line")
            if fields and fields[-1][2] == line:
                fields[-1] = (fields[-1][0] + "`, `" + field, self.described(m, page) or fields[-1][1], line)
            else:
                fields.append((field, self.described(m, page), line))
        text = "%s %s {\n%s\n}" % (word, name, "\n".join(declared)) if declared else "%s %s" % (word, name)
        return text, self.described(node, page), rows([f[:2] for f in fields])

    def of_union(self, node, page, name):
        return self.of_struct(node, page, name, "union")


def call(before, parts, after):
    """A declaration in lines of up to 90 characters."""
    text = before + ", ".join(parts) + after
    return text if len(text) <= 90 else before + "\n" + ",\n".join("    " + part for part in parts) + after


def rows(pairs):
    told = [(name, said) for name, said in pairs if said]
    return ["| | |", "|---|---|"] + ["| `%s` | %s |" % pair for pair in told] if told else []


def make(root, scratch):
    include, headers = os.path.join(root, "include"), os.path.join(scratch, "headers")
    names, texts = [], {}
    for folder in ("", "temporal_slab"):
        for name in sorted(os.listdir(os.path.join(include, folder))):
            if name.endswith(".h"):
                path = os.path.join(folder, name)
                with open(os.path.join(include, path), encoding="utf-8") as file:
                    texts[path] = file.read()
                os.makedirs(os.path.join(headers, folder), exist_ok=True)
                with open(os.path.join(headers, path), "w", encoding="utf-8") as file:
                    file.write(for_doxygen(texts[path]))
                names.append(path)
    with open(os.path.join(scratch, "Doxyfile"), "w", encoding="utf-8") as file:
        file.write(DOXYFILE % {"headers": headers, "out": scratch, "attributes": " ".join('"%s:="' % a for a in ATTRIBUTES)})
    subprocess.run(["doxygen", os.path.join(scratch, "Doxyfile")], check=True, stdout=subprocess.DEVNULL)
    pages = Pages(os.path.join(scratch, "xml"), names)
    made = {name: pages.write(name, texts[name]) for name in names}
    index = ["# Public headers", "", "Every function, type and constant that a program may use, as its header declares it.", "", "| header | |", "|---|---|"]
    index += ["| [%s](%s.md) | %s |" % (name, name, plain(introduction(texts[name])[0])) for name in names]
    made["index"] = "\n".join(index) + "\n"
    return made
