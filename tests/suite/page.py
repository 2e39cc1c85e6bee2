"""Who is ahead in tools/bench_plots/suite_metrics.py, on numbers made up."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TSLAB_SOURCE_DIR"], "tools"))

from bench_plots.suite_metrics import Compared, Metric, at  # noqa: E402


class Made:
    """Runs of one program: {allocator: a value for each repetition}."""

    def __init__(self, values, **kinds):
        self.kinds = {a: kinds.get(a, "general") for a in values}
        self.runs = [type("Run", (), {"program": "p", "allocator": a, "repetition": k, "report": {"x": v}})
                     for a, list_of in values.items() for k, v in enumerate(list_of) if v is not None]


def verdicts(values, unit="ns", better="lower", path="x", **kinds):
    c = Compared(Metric("p", path, "", unit, better), Made(values, **kinds))
    return c.verdict(), c.verdict("glibc"), c.best


def same(what, got, wanted):
    if got != wanted:
        print("FAILED: %s: %s instead of %s" % (what, got, wanted), file=sys.stderr)
        sys.exit(1)


same("less is better", verdicts({"tslab": [5, 5], "glibc": [10, 10], "a": [4, 4]}), ("behind", "won", "a"))
same("more is better", verdicts({"tslab": [5], "glibc": [10], "a": [4]}, better="higher"), ("behind", "behind", "glibc"))
same("within 5 %", verdicts({"tslab": [104], "glibc": [100]}), ("level", "level", "glibc"))
same("beyond 5 %", verdicts({"tslab": [106], "glibc": [100]}), ("behind", "behind", "glibc"))
same("those that check are never the best", verdicts({"tslab": [5], "glibc": [10], "c": [1]}, c="checked"), ("won", "won", "glibc"))
# Against the best of each repetition: medians alone would say level.
same("the best in each repetition", verdicts({"tslab": [10, 10, 10], "glibc": [10, 5, 10], "a": [5, 10, 5]}), ("behind", "level", "a"))
same("points", verdicts({"tslab": [1.5], "glibc": [1.0]}, "%"), ("level", "level", "glibc"))
same("points beyond", verdicts({"tslab": [3.5], "glibc": [1.0]}, "%"), ("behind", "behind", "glibc"))
same("points, more is better", verdicts({"tslab": [97.0], "glibc": [60.0]}, "%", "higher"), ("won", "won", "glibc"))
same("no quotient", verdicts({"tslab": [0], "glibc": [10]}), ("won", "won", "glibc"))
same("no quotient, level", verdicts({"tslab": [0], "glibc": [0]}), ("level", "level", "glibc"))
same("plain", verdicts({"tslab": [5], "glibc": [10]}, better="plain")[:2], (None, None))
same("nobody else", verdicts({"tslab": [5]})[:2], (None, None))
same("entries by name", at({"l": [{"threads": 1, "v": 5}, {"threads": 8, "v": 7}]}, "l[8].v"), 7.0)
same("entries by two names", at({"l": [{"policy": "a", "recycling": "b", "v": 2}]}, "l[a:b].v"), 2.0)
same("what is not there", (at({"l": [{"threads": 1}]}, "l[2].v"), at({"l": None}, "l[2].v"), at({"a": 1}, "a.b")), (None, None, None))
