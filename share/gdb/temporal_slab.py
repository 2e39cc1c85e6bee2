"""
temporal_slab.py - gdb commands that show the phases and labels of temporal-slab allocators.

    source temporal_slab.py
    tslab phases [ALLOCATOR]    phases that are open or drain, of every allocator or of one SlabAllocator*
    tslab labels [ALLOCATOR]    what each label holds

They only read memory, so they work on a running process and on a core file, and need the debug information of the
library (CMake: -DTSLAB_DEBUG_INFO=ON, or a build type that has it): every offset comes from there, none is written down here.

The process may have been stopped anywhere, with lists half changed. So nothing is followed further than what is
counted beside it allows, every index is compared with its table, and every record with the era that led to it. A row
whose records disagree is shown with what could be read and a "~"; memory that cannot be read is counted and told.

Ages: a running process shares our clock. A core file does not have the clock's reading, so ages count to the youngest
stamp in the allocator and are shown as ">=".
"""

import time

import gdb

RECORDS_AT_ONCE = 1024
STATES = ["active", "advanced", "draining", "released"]
# As the headers have them (phase/epoch.h); constants leave no trace in debug information.
INC_BITS, CHARGE_BITS = 18, 48
DOMAIN_ID_BIT = 0x80000000


class Layout:
    """Offsets and sizes of the members of a structure, from debug information."""

    def __init__(self, name):
        try:
            kind = gdb.lookup_type(name).strip_typedefs()
        except gdb.error:
            raise gdb.GdbError("no debug information of temporal-slab: build it with -DTSLAB_DEBUG_INFO=ON") from None
        self.size = kind.sizeof
        self.members = {}
        self.add(kind, 0)

    def add(self, kind, start):
        """The members of a structure that begins there, with those of its parts that have no name."""
        for f in kind.strip_typedefs().fields():
            if f.name:
                self.members[f.name] = (start + f.bitpos // 8, f.type)
            else:
                self.add(f.type, start + f.bitpos // 8)

    def at(self, *path):
        """Offset and type of a member; further names are members of it."""
        offset, kind = self.members[path[0]]
        for name in path[1:]:
            inner = {f.name: f for f in kind.strip_typedefs().fields()}[name]
            offset, kind = offset + inner.bitpos // 8, inner.type
        return offset, kind


class Record:
    """A structure whose bytes have been read."""

    def __init__(self, layout, data):
        self.layout, self.data = layout, data

    def number(self, *path):
        offset, kind = self.layout.at(*path)
        return int.from_bytes(self.data[offset : offset + kind.sizeof], "little")

    def bytes(self, *path):
        offset, kind = self.layout.at(*path)
        return self.data[offset : offset + kind.sizeof]

    def text(self, *path):
        return self.bytes(*path).split(b"\0")[0].decode("utf-8", "replace")


def read(address, size):
    """Bytes of the process or core file; None when they cannot be read."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.error, OverflowError):
        return None


def record_at(name, address):
    layout = Layout(name)
    data = read(address, layout.size)
    return Record(layout, data) if data is not None else None


class Table:
    """A TsiTable: records by index."""

    def __init__(self, owner, name, *path):
        table = Record(Layout("TsiTable"), owner.bytes(*path))
        self.layout = Layout(name)
        self.base, self.stride = table.number("base"), table.number("stride")
        self.used, capacity = table.number("used"), table.number("capacity")
        self.unreadable = 0
        self.cache = {}
        if self.used > capacity or self.stride < self.layout.size or self.base == 0:
            self.used = 0

    def get(self, index):
        """A record, or None."""
        if index not in self.cache:
            data = read(self.base + index * self.stride, self.layout.size) if index < self.used else None
            self.cache[index] = Record(self.layout, data) if data is not None else None
        return self.cache[index]

    def each(self, start=0):
        """(index, record) of all that can be read; in large pieces, for there may be 262,000."""
        for first in range(start, self.used, RECORDS_AT_ONCE):
            n = min(RECORDS_AT_ONCE, self.used - first)
            block = read(self.base + first * self.stride, n * self.stride)
            for k in range(n):
                if block is not None:
                    yield first + k, Record(self.layout, block[k * self.stride : k * self.stride + self.layout.size])
                    continue
                record = self.get(first + k)
                if record is not None:
                    yield first + k, record
                else:
                    self.unreadable += 1


class Phase:
    """An incarnation: what its record says, and its heaps."""

    def __init__(self, arena, index, inc):
        word = inc.number("word")
        self.index, self.era, self.state = index, word >> 2, word & 3
        self.id, self.label = inc.number("id"), inc.text("label")
        self.label_at = inc.number("charge") >> CHARGE_BITS
        self.committed = inc.number("charge") & ((1 << CHARGE_BITS) - 1)
        self.open_since = inc.number("open_since_ns") or (arena.record.number("born_ns") if self.era == 1 else 0)
        self.peak = inc.number("peak")
        self.slabs, self.heaps, self.torn = inc.number("slab_count"), 0, False
        self.walk(arena, inc.number("heaps"), inc.number("heap_count"))

    def walk(self, arena, at, counted):
        reference = self.era << INC_BITS | self.index
        wanted = min(counted, arena.heaps.used)
        while at != 0 and self.heaps < wanted:
            heap = arena.heaps.get(at - 1)
            if heap is None or heap.number("ref") != reference:
                break
            self.heaps += 1
            self.slabs += heap.number("slab_count")
            at = heap.number("inc_next")
        self.torn = at != 0 or self.heaps != wanted or wanted != counted

    def is_shown(self, current):
        """Open and in use, or ended and still holding slabs. Ring ids that were never used are open, too."""
        if self.state != 0:
            return self.heaps != 0 or self.slabs != 0 or self.torn
        return self.id & DOMAIN_ID_BIT != 0 or self.index == current or self.heaps != 0 or self.slabs != 0 or self.peak != 0


class Arena:
    """One allocator."""

    def __init__(self, address, serial):
        self.record = record_at("TsiArena", address)
        if self.record is None or self.record.number("serial") != serial:
            raise gdb.error("its record cannot be read")
        self.owner = self.record.number("owner")
        self.incs = Table(self.record, "TsiInc", "phases", "incs")
        self.heaps = Table(self.record, "TsiHeap", "heaps")
        self.bindings = Table(self.record, "TsiBinding", "bindings")
        self.labels = Table(self.record, "TsiLabel", "phases", "labels", "records")
        self.ring_size = self.record.number("phases", "ring_size")
        ring, slot = self.record.bytes("phases", "ring"), self.record.number("phases", "current")
        self.current_id = slot
        current = int.from_bytes(ring[8 * slot : 8 * slot + 8], "little") if slot < self.ring_size else 0
        self.current = current & ((1 << INC_BITS) - 1)
        self.phases, self.idle = [], []
        for index, inc in self.incs.each(1):
            if inc.number("word") >> 2 == 0:
                continue
            phase = Phase(self, index, inc)
            if phase.is_shown(self.current):
                self.phases.append(phase)
            elif phase.state == 0:
                self.idle.append(phase)
        self.phases.sort(key=lambda p: p.era)

    def title(self):
        return "allocator %#x: %u ring ids, current %u" % (self.owner, self.ring_size, self.current_id)

    def remarks(self):
        if self.idle:
            yield "%u open ring ids have not been used" % len(self.idle)
        if any(p.torn for p in self.phases):
            yield "~ the list of heaps was being changed, or memory is missing: what could be counted"
        if self.incs.unreadable != 0:
            yield "%u records cannot be read" % self.incs.unreadable


def slots():
    """(serial, address) of every allocator, of each copy of the library in the process."""
    found = gdb.lookup_static_symbols("arena_slots", gdb.SYMBOL_VAR_DOMAIN)
    if not found:
        raise gdb.GdbError("no temporal-slab with debug information here: build it with -DTSLAB_DEBUG_INFO=ON")
    layout = Layout("TsiTable")
    for symbol in found:
        data = read(int(symbol.value().address), layout.size)
        if data is None:
            raise gdb.GdbError("the list of allocators cannot be read: start the program, attach, or load a core file")
        box = Layout.__new__(Layout)
        box.members = {"arena_slots": (0, gdb.lookup_type("TsiTable"))}
        table = Table(Record(box, data), "TsiArenaSlot", "arena_slots")
        for _, slot in table.each():
            if slot.number("serial") != 0 and slot.number("arena") != 0:
                yield slot.number("serial"), slot.number("arena")


def arenas(argument):
    wanted = int(gdb.parse_and_eval(argument)) & (1 << 64) - 1 if argument.strip() else None
    shown = 0
    for serial, address in slots():
        try:
            arena = Arena(address, serial)
        except gdb.error as error:
            print("allocator record %#x: %s" % (address, error))
            continue
        if wanted is None or arena.owner == wanted:
            shown += 1
            yield arena
    if shown == 0:
        raise gdb.GdbError("no allocator" if wanted is None else "no allocator at %#x" % wanted)


def shares_our_clock():
    connection = getattr(gdb.selected_inferior(), "connection", None)
    return connection is not None and connection.type == "native"


def age(phase, now, exact):
    if phase.open_since == 0 or now < phase.open_since:
        return "-"
    return ("%.1f s" if exact else ">= %.1f s") % ((now - phase.open_since) / 1e9)


def print_rows(head, rows):
    """Columns as wide as they need; the ones whose title starts with a blank are right-aligned."""
    table = [head] + rows
    widths = [max(len(str(row[n]).strip() if row is head else str(row[n])) for row in table) for n in range(len(head))]
    for row in table:
        cells = []
        for n, width in enumerate(widths):
            cell = str(row[n]).strip() if row is head else str(row[n])
            cells.append(cell.rjust(width) if head[n].startswith(" ") else cell.ljust(width))
        print("  " + "  ".join(cells).rstrip())


def phase_id(phase):
    return "%#x" % phase.id if phase.id & DOMAIN_ID_BIT else "%u" % phase.id


class Tslab(gdb.Command):
    """Allocators of temporal-slab: tslab phases, tslab labels."""

    def __init__(self):
        super().__init__("tslab", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


class TslabPhases(gdb.Command):
    """Phases that are open or drain: tslab phases [ALLOCATOR].

    state: active takes allocations; advanced: the ring moved on; draining, released: closed. slabs: of its heaps, and
    those that no thread owns. committed: bytes of slabs and large objects. age: since its first slab; of a core file,
    the least that it can be. "~": the lists were being changed, so heaps and slabs may be too few."""

    def __init__(self):
        super().__init__("tslab phases", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        exact = shares_our_clock()
        head = ["id", " era", "label", "state", " age", " heaps", " slabs", " committed", ""]
        for arena in arenas(argument):
            stamps = [p.open_since for p in arena.phases] + [arena.record.number("born_ns")]
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) if exact else max(stamps)
            rows = [
                [phase_id(p), p.era, p.label, STATES[p.state], age(p, now, exact), p.heaps, p.slabs, p.committed, "~" if p.torn else ""]
                for p in arena.phases
            ]
            print(arena.title())
            print_rows(head, rows)
            for remark in arena.remarks():
                print("  (%s)" % remark)


def field_of(of, name):
    return {f.name: f for f in of.strip_typedefs().fields()}[name]


def offset_in(of, name):
    return field_of(of, name).bitpos // 8


def type_of(of, name):
    return field_of(of, name).type


def ended_in(data, start, of):
    """Phases that sums have: those that ended, and those that ended by the straight way, which are counted apart."""
    sums = start + offset_in(of, "sums")
    counts = type_of(of, "sums")
    return sum(int.from_bytes(data[sums + offset_in(counts, name) :][:8], "little") for name in ("ended", "straight"))


def pending_of(binding):
    """Labels' records, and the phases of each that the thread has ended and the label does not have yet."""
    offset, many = binding.layout.at("pending")
    of = many.target()
    for n in range(many.range()[1] + 1):
        start = offset + n * of.sizeof
        whose = int.from_bytes(binding.data[start + offset_in(of, "whose") :][:4], "little")
        if whose != 0:
            yield whose - 1, ended_in(binding.data, start, of)


class TslabLabels(gdb.Command):
    """What each label holds and has had: tslab labels [ALLOCATOR].

    open, draining: phases now. committed: bytes of their slabs and large objects; peak: the most ever. ended: phases
    so far. escaped: objects that lived when their phase was closed by draining."""

    def __init__(self):
        super().__init__("tslab labels", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        head = ["label", " open", " draining", " committed", " peak", " ended", " escaped", " bytes escaped", " refusals"]
        for arena in arenas(argument):
            ended = {}
            for _, binding in arena.bindings.each():
                for whose, count in pending_of(binding):
                    ended[whose] = ended.get(whose, 0) + count
            rows = []
            for index, label in arena.labels.each():
                mine = [p for p in arena.phases + arena.idle if p.label_at == index]
                shard = label.layout.at("shard")[1]
                offset, count = label.layout.at("shard")[0], shard.range()[1] + 1
                over = ended.get(index, 0)
                for n in range(count):
                    over += ended_in(label.data, offset + n * shard.target().sizeof, shard.target())
                row = [
                    label.text("name"),
                    sum(p.state == 0 for p in mine),
                    sum(p.state != 0 for p in mine),
                    sum(p.committed for p in mine),
                    label.number("peak"),
                    over,
                    label.number("objects_escaped"),
                    label.number("bytes_escaped"),
                    label.number("refusals"),
                ]
                if any(row[1:]):
                    rows.append(row)
            print(arena.title())
            print_rows(head, rows)
            for remark in arena.remarks():
                print("  (%s)" % remark)


Tslab()
TslabPhases()
TslabLabels()
