"""How the pictures look: ours in one strong blue, peers in muted colours that are told apart without red and green, and by
their markers. An allocator has the same colour in every picture, and its phases the colour of their allocator, dashed."""

import os

from matplotlib import pyplot, ticker

from .tables import text_of

OURS, BEHIND, LEVEL_GREY = "#0b5fd0", "#d55e00", "#6b6b6b"
WIDTH = 9.2
MOST_BYTES = 300 * 1000

PEERS = {  # colour, marker, line
    "glibc": ("#333333", "s", "-"),
    "mimalloc": ("#c9a227", "^", "-"), "mimalloc2": ("#e6cf7a", "v", "-"), "mi-heap": ("#c9a227", "^", "--"),
    "jemalloc": ("#aa4499", "D", "-"), "je-arena": ("#aa4499", "D", "--"),
    "tcmalloc": ("#44aa99", "P", "-"), "tbbmalloc": ("#8b6f4e", "X", "-"), "snmalloc": ("#117733", "<", "-"),
    "rpmalloc": ("#cc6677", ">", "-"), "rp-heap": ("#cc6677", ">", "--"), "scudo": ("#88ccee", "p", "-"),
    "apr": ("#999933", "h", "--"), "talloc": ("#882255", "d", "--"), "pmr": ("#66a0c0", "*", "--"),
    "obstack": ("#a0a0a0", "8", "--"), "arena": ("#000000", "x", ":"), "arena-inlined": ("#777777", "x", ":"),
    "snmalloc-checks": ("#117733", "<", "-."), "mimalloc-secure": ("#e6cf7a", "v", "-."),
}
OWN_LINES = {"tslab": "-", "tslab-handle": "--", "tslab-single": (0, (6, 2)), "tslab-sampled": "-.", "tslab-domain": (0, (3, 1)), "tslab-static": ":"}
MORE_COLOURS = ("#b7a3c9", "#7f9a65", "#c08a8a", "#8a9bb5")

pyplot.rcParams.update({"font.size": 8.5, "axes.titlesize": 9.5, "axes.spines.top": False, "axes.spines.right": False,
                        "axes.edgecolor": "#888888", "xtick.color": "#333333", "ytick.color": "#333333",
                        "axes.titlelocation": "left", "legend.frameon": False, "savefig.facecolor": "white",
                        "svg.hashsalt": "", "font.family": "DejaVu Sans"})


def is_ours(name):
    return name == "tslab" or name.startswith("tslab-")


def colour(name):
    if is_ours(name):
        return OURS
    return PEERS[name][0] if name in PEERS else MORE_COLOURS[sum(name.encode()) % len(MORE_COLOURS)]


def look(name):
    """Of a line."""
    if is_ours(name):
        main = name == "tslab"
        return {"color": OURS, "linestyle": OWN_LINES.get(name, "--"), "marker": "o", "markersize": 5 if main else 3,
                "linewidth": 2.4 if main else 1.1, "zorder": 6 if main else 5}
    _, marker, line = PEERS.get(name, (None, ".", "-"))
    return {"color": colour(name), "linestyle": line, "marker": marker, "markersize": 3.6, "linewidth": 1.1, "zorder": 3}


def plain(value):
    """Of a tick: no more digits than it has."""
    text = text_of(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def time_of(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size * 0.999:
            return "%s %s" % (plain(ns / size), unit)
    return "%s ns" % plain(ns)


def plain_ticks(axis, most=2000, form=plain):
    """Numbers on a logarithmic axis as people write them; 2 and 5 between powers of ten unless it spans more than a factor of `most`."""
    axis.set_major_formatter(ticker.FuncFormatter(lambda v, _: form(v)))
    axis.set_minor_formatter(ticker.NullFormatter())
    low, high = axis.get_view_interval()
    if low <= 0 or high / low > most:
        axis.set_major_locator(ticker.LogLocator(10, numticks=12))
    else:
        axis.set_major_locator(ticker.LogLocator(10, subs=(1, 2, 5) if high / low > 8 else (1, 1.5, 2, 3, 4, 5, 7), numticks=20))


def lines(axes, series, note=None, least=None):
    """series: {name: [(x, y, low, high)]}. Values below `least` are drawn there: a logarithm has no zero."""
    for name, points in series.items():
        xs = [p[0] for p in points]
        shown = [[max(v, least) if least else v for v in (p[1], p[2], p[3])] for p in points]
        handle, = axes.plot(xs, [s[0] for s in shown], label=name + (note or {}).get(name, ""), **look(name))
        if any(s[1] != s[2] for s in shown):
            axes.vlines(xs, [s[1] for s in shown], [s[2] for s in shown], color=handle.get_color(), linewidth=1, alpha=0.45, zorder=2)


def dots(axes, rows, unit):
    """rows: (name, value, low, high, note), the best first. A dot each, over a logarithm where the values differ much."""
    positive = [v for r in rows for v in r[1:4] if v > 0]
    wide = bool(positive) and max(positive) / min(positive) > 12
    for y, (name, value, low, high, _) in enumerate(rows):
        strong = is_ours(name)
        axes.plot([low, high], [y, y], color=OURS if strong else "#9a9a9a", linewidth=1.2, alpha=0.5, solid_capstyle="butt", zorder=2)
        axes.plot([value], [y], "o" if strong else "x" if name.startswith("arena") else "s", color=OURS if strong else "#9a9a9a" if name != "glibc" else "#333333",
                  markersize=6 if name == "tslab" else 5 if strong else 4, zorder=4)
    if wide and min(r[2] for r in rows) > 0:
        axes.set_xscale("log")
        low, high = min(positive), max(positive)
        axes.set_xlim(low / 1.25, high * (high / low) ** 0.22)
        plain_ticks(axes.xaxis, 150)
    elif wide:
        axes.set_xscale("symlog", linthresh=min(positive))
        axes.xaxis.set_major_locator(ticker.SymmetricalLogLocator(base=10, linthresh=min(positive)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: text_of(v)))
        axes.set_xlim(min(0, *(r[2] for r in rows)), max(r[3] for r in rows) * 8)
    else:
        low, high = min(0, *(r[2] for r in rows)), max(r[3] for r in rows)
        axes.set_xlim(low * 1.1, (high or 1) * 1.22)
    for y, (name, value, low, high, note) in enumerate(rows):
        axes.annotate(text_of(value) + note, (max(value, high), y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=7,
                      color=OURS if is_ours(name) else "#444444", zorder=5)
    axes.set_yticks(range(len(rows)), [r[0] for r in rows], fontsize=7.5)
    for label, row in zip(axes.get_yticklabels(), rows):
        if is_ours(row[0]):
            label.set_color(OURS)
            label.set_fontweight("bold" if row[0] == "tslab" else "normal")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(unit)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)


def whole_numbers():
    return ticker.MaxNLocator(nbins=8, integer=True)


def grid(axes):
    axes.grid(which="major", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)


def legend(figure, order, columns=8):
    """One legend for all axes, below them, in that order."""
    handles = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    rank = {name: i for i, name in enumerate(order)}
    names = sorted(handles, key=lambda label: (rank.get(label.split(" ")[0], len(rank)), label))
    columns = min(columns, max(len(names), 1))
    rows = -(-len(names) // columns)
    room = (rows * 0.18 + 0.12) / figure.get_figheight()
    figure.tight_layout(rect=(0, room, 1, 1))
    figure.legend([handles[n] for n in names], names, loc="lower center", ncol=columns, fontsize=7.5, columnspacing=1.2,
                  handlelength=2.6, borderaxespad=0.2)


def panels(count, height=2.9, columns=2):
    """A figure with so many axes, and the list of them."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(WIDTH, height * rows), squeeze=False)
    flat = [a for line in axes for a in line]
    for spare in flat[count:]:
        spare.remove()
    return figure, flat[:count]


def save(figure, path):
    """Writes it, smaller where the file would be too large; the same results give the same bytes."""
    for dots_per_inch in (110, 90, 72, 55):
        figure.savefig(path + ".new", format="png", dpi=dots_per_inch, metadata={"Software": None})
        if os.path.getsize(path + ".new") < MOST_BYTES:
            break
    os.replace(path + ".new", path)
    pyplot.close(figure)
