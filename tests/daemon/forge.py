"""A process whose segment is a copy of another's, changed as the first argument says. Ends with its standard input.

What is damaged is what the reader in the server has to notice, or must not be made slow by."""
import fcntl
import os
import struct
import sys

kind, source = sys.argv[1:]
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2
TABLES = {"scopes": 120, "metrics": 136, "slots": 152}

data = bytearray(open(source, "rb").read())


def u64(at, value=None):
    if value is not None:
        struct.pack_into("<Q", data, at, value)
    return struct.unpack_from("<Q", data, at)[0]


def table(name):
    return struct.unpack_from("<QII", data, TABLES[name])


start_time = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
u64(32, os.getpid())
u64(40, start_time)
slots, _, stride = table("slots")
number = u64(slots + 16) // 2
size = len(data)
if kind == "garbage":
    data = bytearray(os.urandom(4096))
elif kind == "version":
    struct.pack_into("<H", data, 12, 99)
elif kind == "inconsistent":  # its buffers are of other publications than it says
    u64(slots + 16, 2 * number + 8)
elif kind == "second":  # the first place makes no sense, the next one does
    data[slots + stride:slots + 2 * stride] = data[slots:slots + stride]
    u64(slots + 64, 1 << 40), u64(slots + 72, 1 << 40)
elif kind in ("ended", "two"):  # two allocators with other figures; the first one was destroyed, or lives as well
    data[slots + stride:slots + 2 * stride] = data[slots:slots + stride]
    if kind == "ended":
        u64(slots, 2)
    new, old = len(data), u64(slots + 64 + 8 * (number & 1))
    data += data[old:old + u64(slots + 56)]
    size = len(data)
    u64(24, size), u64(slots + stride + 64 + 8 * (number & 1), new)
    scopes, _, step = table("scopes")
    metrics, count, row = table("metrics")
    for at in range(metrics, metrics + count * row, row):
        if data[at:at + 16].split(b"\0")[0] == b"live_bytes":
            scope, offset = struct.unpack_from("<I", data, at + 320)[0], struct.unpack_from("<I", data, at + 336)[0]
            if data[scopes + scope * step:].startswith(b"GLOBAL\0"):
                u64(new + u64(scopes + scope * step + 128) + offset, 12345)
elif kind == "unpublished":
    u64(slots + 16, 1)
elif kind == "future":
    u64(slots + 24, 1 << 63)
elif kind == "huge":
    size = 1 << 30
    u64(24, size)
elif kind == "rows":  # a buffer of zeros behind the rest, and as many phases as it has room for
    size = 60 << 20
    scopes, count, step = table("scopes")
    names = [data[scopes + n * step:][:32].split(b"\0")[0] for n in range(count)]
    scope = scopes + names.index(b"PHASE") * step
    row_bytes, offset = struct.unpack_from("<I", data, scope + 116)[0], u64(scope + 128)
    old, new = u64(slots + 64 + 8 * (number & 1)), len(data)
    room = size - new
    capacity = (room - offset) // row_bytes
    struct.pack_into("<I", data, scope + 120, capacity)
    data += data[old:old + u64(slots + 56)]
    u64(slots + 56, room), u64(slots + 64 + 8 * (number & 1), new), u64(24, size)
    u64(new + 32 + 16 * names.index(b"PHASE"), capacity)
    assert capacity > 65536, capacity
elif kind != "honest":
    sys.exit("no such kind")

fd = os.memfd_create("temporal-slab", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
os.ftruncate(fd, size)
os.fchmod(fd, 0o600)
os.pwrite(fd, data, 0)
fcntl.fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)
print("ready", flush=True)
sys.stdin.read()
