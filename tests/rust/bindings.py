"""Prints a C file that compiles only where bindings.rs says what the headers say."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
text = text.replace("::core::ffi::", "").replace("::core::option::", "").replace("::core::mem::", "")
text = re.sub(r"\b(type|fn|where)_\b", r"\1", text)  # words of Rust
SCALARS = {"c_void": "void", "c_char": "char", "c_int": "int", "c_uint": "unsigned", "usize": "size_t", "bool": "bool",
           "f64": "double", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "i32": "int32_t", "i64": "int64_t"}


STRUCTS = re.findall(r"^pub struct (\w+)", text, re.M)


def split(arguments):
    """Arguments at the commas that are in no bracket."""
    depth, part = 0, ""
    for c in arguments:
        depth += (c in "([<") - (c in ")]" or (c == ">" and not part.endswith("-")))
        if c == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += c
    if part.strip():
        yield part.strip()


def declare(rust, name=""):
    """A declaration of `name` in C, of a type of Rust."""
    rust = " ".join(rust.split())
    if m := re.fullmatch(r"\*mut (.*)", rust):
        return declare(m[1], "*" + name)
    if m := re.fullmatch(r"\*const (.*)", rust):
        if m[1].startswith("*"):
            return declare(m[1], "*const " + name)
        return "const " + declare(m[1], "*" + name)
    if m := re.fullmatch(r"\[(.*); (\d+)usize\]", rust):
        return declare(m[1], f"{name}[{m[2]}]")
    if m := re.fullmatch(r"Option< ?unsafe extern \"C\" fn\((.*)\)(?: -> ([^()]*?))?,? ?>", rust):
        arguments = ", ".join(declare(a.split(":", 1)[1]) for a in split(m[1]))
        return declare(m[2] or "c_void", f"(*{name})({arguments or 'void'})")
    if not re.fullmatch(r"\w+", rust):
        raise ValueError(rust)
    return f"{SCALARS.get(rust, rust)} {name}".strip()


print('#include <epoch_domain.h>\n#include <slab_diagnostics.h>\n#include <slab_lane.h>\n#include <slab_segment.h>\n#include <slab_stats.h>')
for tag in "epoch_domain", "SlabLaneHeap_", "SlabLaneRegion_":
    print(f"typedef struct {tag} {tag}; /* what bindgen calls by its tag */")
count = dict.fromkeys(("functions", "fields", "constants", "types", "layouts"), 0)
for name, rust in re.findall(r"^pub type (\w+) = (.*?);$", text, re.M | re.S):
    if name.startswith("_bindgen") or re.fullmatch(r"c_u?int", rust):
        continue  # an enum
    print(f"_Static_assert(__builtin_types_compatible_p({name}, {declare(rust)}), \"{name}\");")
    count["types"] += 1
for name, body in re.findall(r"^pub struct (\w+) \{\n(.*?)^\}", text, re.M | re.S):
    fields = [f for f in re.findall(r"^    pub (\w+): (.*?),$", body, re.M | re.S) if f[0] != "_unused"]
    if fields:  # gcc warns of a value that is missing at the end, and of one too many
        values = ", ".join("{0}" if rust.startswith("[") or rust in STRUCTS else "0" for _, rust in fields)
        print(f"static const {name} all_of_{name} __attribute__((unused)) = {{{values}}};")
    for field, rust in fields:
        element = re.sub(r"^\[(.*); \d+usize\]$", r"*mut \1", " ".join(rust.split()))  # of an array: as it decays
        print(f'_Static_assert(_Generic((({name}*)0)->{field}, {declare(element)}: 1, default: 0), "{name}.{field}");')
        count["fields"] += 1
for what, rust, number in re.findall(r'\["(Size|Alignment) of (\w+)"\]\[[^;]*? - (\d+)usize\];', text):
    print(f"_Static_assert({'sizeof' if what == 'Size' else '_Alignof'}({rust}) == {number}, \"{rust}\");")
    count["layouts"] += 1
for rust, field, number in re.findall(r'\["Offset of field: (\w+)::(\w+)"\]\s*\[[^;]*? - (\d+)usize\];', text):
    print(f"_Static_assert(offsetof({rust}, {field}) == {number}, \"{rust}.{field}\");")
    count["layouts"] += 1
for name, value in re.findall(r"^pub const (\w+): \w+ = (-?\d+);$", text, re.M):
    print(f"_Static_assert({value} == {name}, \"{name}\");")
    count["constants"] += 1
for name, value in re.findall(r'^pub const (\w+): &\[u8; \d+\] = b"(.*)\\0";$', text, re.M):
    print(f'_Static_assert(__builtin_strcmp({name}, "{value}") == 0, "{name}");')
for name, arguments, result in re.findall(r"^    pub fn (\w+)\((.*?)\)\s*(?:-> ([^;()]*?))?;$", text, re.M | re.S):
    types = [a if a == "..." else declare(a.split(":", 1)[1]) for a in split(arguments)]
    print(f"extern {declare(result or 'c_void', f'{name}(' + (', '.join(types) or 'void') + ')')};")
    count["functions"] += 1
if count["functions"] < 130 or count["fields"] < 300 or count["constants"] < 80 or count["types"] < 5 or count["layouts"] < 300:
    raise ValueError(count)
