"""Validates documents against a JSON Schema and damages the first in many ways: schema.py SCHEMA DOCUMENT...

Every damage must be noticed: a member taken away or added, a number that is negative, a fraction, a string, or beyond
64 bits. Also: every property of the schema has a description.
"""

import copy
import json
import sys

from jsonschema import Draft202012Validator


def undescribed(schema, path="document"):
    for key, sub in list(schema.get("properties", {}).items()) + list(schema.get("patternProperties", {}).items()):
        if not sub.get("description", "").strip():
            yield "%s.%s" % (path, key)
        yield from undescribed(sub, "%s.%s" % (path, key))
    if "items" in schema:
        yield from undescribed(schema["items"], path + "[]")


def objects(value, path=()):
    """Paths of one object of each kind in a document."""
    if isinstance(value, dict):
        yield path
        for key, sub in value.items():
            yield from objects(sub, path + (key,))
    elif isinstance(value, list) and value:
        yield from objects(value[0], path + (0,))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def real_keys(schema, found):
    """Keys of numbers that need not be integers, and whether they may be negative."""
    for key, sub in schema.get("properties", {}).items():
        if sub.get("type") == "number":
            found[key] = "minimum" not in sub
        real_keys(sub, found)
    if "items" in schema:
        real_keys(schema["items"], found)
    return found


def changes(key, value, real):
    """(what, new value) for each way to spoil a member."""
    yield "null", None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    yield "text", "12"
    if not real.get(key):
        yield "negative", -1
    if key not in real:
        yield "fraction", 0.5
        yield "huge", 2**64


def damages(document, real):
    """(what, damaged document)"""
    for path in objects(document):
        for key, value in at(document, path).items():
            for what, change in changes(key, value, real):
                damaged = copy.deepcopy(document)
                at(damaged, path)[key] = change
                yield "%s %s.%s" % (what, path, key), damaged
            if "contention_by_label" not in path[:-1]:
                damaged = copy.deepcopy(document)
                del at(damaged, path)[key]
                yield "without %s.%s" % (path, key), damaged
        damaged = copy.deepcopy(document)
        at(damaged, path)["surplus"] = 1
        yield "surplus in %s" % (path,), damaged


def one_of_each(document):
    """The document with one row in each list of rows: damages are many and rows are alike."""
    small = dict(document)
    for key, value in small.items():
        if isinstance(value, list):
            small[key] = value[:1]
    return small


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        schema = json.load(text)
    Draft202012Validator.check_schema(schema)
    if schema["$schema"] != "https://json-schema.org/draft/2020-12/schema":
        return "the schema is of another draft"
    for path in undescribed(schema):
        return "no description: " + path
    real = real_keys(schema, {})
    validator = Draft202012Validator(schema)
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as text:
            document = json.load(text)
        for error in validator.iter_errors(document):
            return "%s: %s: %s" % (name, list(error.absolute_path), error.message[:200])
        print("%s: valid" % name)
        if name != sys.argv[2]:
            continue
        validator.validate({**document, "benchmark_requests_completed": 1})
        count = 0
        for what, damaged in damages(one_of_each(document), real):
            count += 1
            if validator.is_valid(damaged):
                return "%s: not noticed: %s" % (name, what)
        print("%s: %d damages noticed" % (name, count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
