#!/usr/bin/env python3
"""Draws the pictures that explain: docs/pictures/NAME.svg from docs/pictures/NAME.drawing.

    drawings.py            draws all of them
    drawings.py --check    they are what their text says, and each is small enough

A drawing is a line for each thing, places in pixels from the top left; `|` in a text begins a new line:

    title TEXT                       what it shows, for those who cannot see it; the first line
    size WIDTH HEIGHT
    box X Y WIDTH HEIGHT STYLE TEXT  TEXT in the middle; `-` for none
    text X Y STYLE TEXT              X is the left end; of a style that ends with `+` the middle
    arrow X Y X Y ...                with a head at its end; `arrow+` in the colour of what happens
    line X Y X Y ...

Styles of boxes: plain live gone free warn band note. Styles of texts: head body note code. Colours follow the reader's theme, by
prefers-color-scheme, and each picture has a ground of its own. A text that is wider than its box is refused.

Exit status: 0; 1 something differs or cannot be drawn; 2 for wrong arguments.
"""

import argparse
import os
import sys
from xml.sax.saxutils import escape

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "pictures")
MOST_BYTES = 60000
SIZES = {"head": 15, "body": 13, "note": 12, "code": 12}
WIDTHS = {"head": 0.60, "body": 0.55, "note": 0.55, "code": 0.61}  # of a letter, in its size: a little more than fonts have
BOXES = {"plain": "body", "live": "body", "gone": "note", "free": "note", "warn": "body", "band": "note", "note": "note"}
THEMES = {  # ground, text, faint text, edge; then fill and edge of live, warn, free; fill of plain and band; what happens
    "light": ("#fbfbfc", "#1f2430", "#5b6472", "#8b94a3", "#cdeee7", "#00897b", "#ffe3d3", "#d9480f", "#eceef2", "#ffffff", "#f1f3f6", "#c2410c"),
    "dark": ("#1b1f28", "#e4e7ee", "#a3adbd", "#6f7a8c", "#114a43", "#2bb5a2", "#53301c", "#f08c4a", "#2a303c", "#232936", "#212633", "#f4a261"),
}


def style():
    def colours(theme):
        ground, text, faint, edge, live, live_edge, warn, warn_edge, free, plain, band, happens = THEMES[theme]
        return (".ground{fill:%s}text{fill:%s}.t-note,.in-gone,.in-free,.in-band,.in-note{fill:%s}.edge{stroke:%s}.head-edge{fill:%s}.b-plain{fill:%s;stroke:%s}.b-live{fill:%s;stroke:%s}"
                ".b-warn{fill:%s;stroke:%s}.b-free{fill:%s;stroke:%s}.b-gone{stroke:%s}.b-band{fill:%s}.happens{stroke:%s}.head-happens{fill:%s}"
                % (ground, text, faint, edge, edge, plain, edge, live, live_edge, warn, warn_edge, free, edge, edge, band, happens, happens))
    sizes = "".join(".t-%s{font-size:%dpx}" % item for item in SIZES.items())
    return ("text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}.t-head{font-weight:600}.t-code{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,monospace}"
            "%s.middle{text-anchor:middle}.b-gone{fill:none;stroke-dasharray:4 3}.b-band,.b-note{stroke:none}.b-note{fill:none}.edge,.happens{fill:none;stroke-width:1.5}%s"
            "@media(prefers-color-scheme:dark){%s}" % (sizes, colours("light"), colours("dark")))


def text_lines(x, y, kind, text, middle, also=""):
    """Lines of text, the first with its base at y."""
    step = SIZES[kind] + 4
    of = "t-%s%s%s" % (kind, " middle" if middle else "", also)
    return ['<text class="%s" x="%g" y="%g">%s</text>' % (of, x, y + k * step, escape(line.strip())) for k, line in enumerate(text.split("|"))]


def wide(kind, line):
    return len(line.strip()) * SIZES[kind] * WIDTHS[kind]


def drawn(source):
    """The SVG of a drawing; ValueError for what it cannot be."""
    out, title, width, height = [], None, 0, 0
    for number, line in enumerate(source.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            kind = words[0]
            if kind == "title":
                title = line.split(None, 1)[1]
            elif kind == "size":
                width, height = map(int, words[1:])
            elif kind == "box":
                x, y, w, h = map(float, words[1:5])
                look, text = words[5], line.split(None, 6)[6]
                font = "code" if text.startswith("`") else BOXES[look]
                text = text.replace("`", "")
                inside(number, x, y, w, h, width, height)
                out.append('<rect class="b-%s" x="%g" y="%g" width="%g" height="%g" rx="4"/>' % (look, x, y, w, h))
                if text != "-":
                    lines = text.split("|")
                    if max(wide(font, t) for t in lines) > w - 4:
                        raise ValueError("the text is wider than its box: " + max(lines, key=len))
                    step = SIZES[font] + 4
                    if len(lines) * step > h + 2:
                        raise ValueError("the text is higher than its box: " + text)
                    out += text_lines(x + w / 2, y + h / 2 - (len(lines) - 1) * step / 2 + SIZES[font] * 0.36, font, text, True, " in-" + look)
            elif kind == "text":
                x, y, look, text = float(words[1]), float(words[2]), words[3], line.split(None, 4)[4]
                middle = look.endswith("+")
                widest = max(wide(look.rstrip("+"), t) for t in text.split("|"))
                left = x - widest / 2 if middle else x
                inside(number, left, y - 12, widest, 12, width, height)
                out += text_lines(x, y, look.rstrip("+"), text, middle)
            elif kind.rstrip("+") in ("arrow", "line"):
                at = list(map(float, words[1:]))
                points = list(zip(at[::2], at[1::2]))
                of = "happens" if kind.endswith("+") else "edge"
                ends = points[-1]
                if kind.startswith("arrow"):
                    out.append(head(points[-2], ends, of))
                    points[-1] = back(points[-2], ends)
                out.append('<path class="%s" d="M%s"/>' % (of, "L".join("%g %g" % p for p in points)))
            else:
                raise ValueError("no thing is called %s" % kind)
        except (IndexError, KeyError, ValueError) as error:
            raise ValueError("line %d: %s" % (number, error)) from error
    if not title or not width:
        raise ValueError("no title, or no size")
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">' % (width, height, width, height, escape(title, {'"': "&quot;"})),
                      "<title>%s</title>" % escape(title), "<style>%s</style>" % style(), '<rect class="ground" width="%d" height="%d" rx="8"/>' % (width, height), *out, "</svg>"]) + "\n"


def inside(number, x, y, w, h, width, height):
    if x < 0 or y < 0 or x + w > width or y + h > height:
        raise ValueError("it is outside of the picture")


def unit(a, b):
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = (dx * dx + dy * dy) ** 0.5
    return dx / length, dy / length


def back(a, b):
    ux, uy = unit(a, b)
    return b[0] - 7 * ux, b[1] - 7 * uy


def head(a, b, of):
    ux, uy = unit(a, b)
    base = (b[0] - 9 * ux, b[1] - 9 * uy)
    corners = [b, (base[0] - 4.5 * uy, base[1] + 4.5 * ux), (base[0] + 4.5 * uy, base[1] - 4.5 * ux)]
    return '<path class="head-%s" d="M%sZ"/>' % (of, "L".join("%.1f %.1f" % p for p in corners))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    p.add_argument("--check", action="store_true", help="write nothing, compare")
    p.add_argument("--folder", default=FOLDER)
    o = p.parse_args()
    status = 0

    def complain(text):
        nonlocal status
        print("drawings.py: " + text, file=sys.stderr)
        status = 1

    names = sorted(name[:-len(".drawing")] for name in os.listdir(o.folder) if name.endswith(".drawing"))
    for name in names:
        path = os.path.join(o.folder, name)
        try:
            with open(path + ".drawing", encoding="utf-8") as file:
                svg = drawn(file.read())
            if len(svg.encode()) > MOST_BYTES:
                complain("%s.svg has more than %d bytes" % (name, MOST_BYTES))
            if not o.check:
                with open(path + ".svg", "w", encoding="utf-8") as file:
                    file.write(svg)
                continue
            with open(path + ".svg", encoding="utf-8") as file:
                if file.read() != svg:
                    complain("%s.svg is not what its text says" % name)
        except (OSError, ValueError) as error:
            complain("%s: %s" % (name, error))
    for name in sorted(os.listdir(o.folder)):
        if name.endswith(".svg") and name[:-4] not in names:
            complain("%s has no text that it is drawn from" % name)
    return status


if __name__ == "__main__":
    sys.exit(main())
