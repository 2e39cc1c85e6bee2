"""Objects of many kinds and lives, as programs in Python make them: JSON, text, dictionaries, classes, sorting."""
import collections
import hashlib
import json
import re

digest = hashlib.sha256()


class Node:
    __slots__ = ("key", "left", "right")

    def __init__(self, key):
        self.key, self.left, self.right = key, None, None


def tree(n):
    root, state = Node(0), 12345
    for _ in range(n):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        node = root
        while True:
            side = "left" if state < node.key else "right"
            below = getattr(node, side)
            if below is None:
                setattr(node, side, Node(state))
                break
            node = below
    return root


for turn in range(3):
    documents = {f"key{i}": {"numbers": list(range(i % 23)), "text": "x" * (i % 80), "nested": [{"n": i}] * 3} for i in range(12000)}
    text = json.dumps(documents)
    again = json.loads(text)
    assert again == documents
    digest.update(text.encode())
    words = collections.Counter(re.findall(r"[a-z]+[0-9]+", text))
    digest.update(str(sorted(words.items())[:100]).encode())
    lines = [f"{i * 7919 % 10007:06d} line of some text {i}" for i in range(60000)]
    lines.sort()
    digest.update("\n".join(lines).encode())
    kept = tree(20000)
    parts = [line.split() for line in lines[::2]]
    digest.update(str(sum(len(p) for p in parts)).encode())
print(digest.hexdigest())
