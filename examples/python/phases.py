#!/usr/bin/env python3
"""Buffers of native code whose lifetime is a batch, from Python by ctypes: decode, filter, hand on, all gone at once.

Python's own objects are Python's. What a phase serves here is memory that C code reads and writes, pixels or columns, which Python
sees through memoryviews. The end of a phase invalidates the views first: whoever kept one gets a ValueError, and never reads what
has gone.

Usage: phases.py [LIBRARY]     exit status 1 when what it claims does not hold
"""

import asyncio
import ctypes
import ctypes.util
import sys
from ctypes import POINTER, Structure, byref, c_bool, c_char, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p


class Receipt(Structure):
    """EpochReceipt of slab_alloc.h, version 2."""

    _fields_ = [
        ("version", c_uint32), ("epoch_id", c_uint32), ("epoch_era", c_uint64), ("label", c_char * 32),
        *[(name, c_uint64) for name in (
            "objects_allocated", "objects_freed", "objects_released", "objects_escaped",
            "bytes_allocated", "bytes_freed", "bytes_released", "bytes_escaped",
            "slabs_returned", "bytes_returned", "slabs_deferred", "bytes_deferred", "rss_before", "rss_after", "close_ns")],
        ("interrupts", c_uint32), ("regions_returned", c_uint32),
    ]


def load(path):
    """The library, with the types of the calls below: without them ctypes would cut pointers to 32 bits."""
    lib = ctypes.CDLL(path)
    for name, result, *arguments in (
        ("slab_allocator_create", c_void_p),
        ("slab_allocator_free", None, c_void_p),
        ("slab_last_error", c_char_p),
        ("epoch_domain_create_labeled", c_void_p, c_void_p, c_char_p),
        ("epoch_domain_malloc", c_void_p, c_void_p, c_size_t),
        ("epoch_domain_destroy_ex", c_bool, c_void_p, POINTER(Receipt)),
        ("epoch_receipt_text", c_size_t, POINTER(Receipt), c_char_p, c_size_t),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class Phase:
    """A phase that is named at each call. No thread enters it, so tasks of one thread may have theirs side by side."""

    def __init__(self, lib, allocator, label):
        self.lib, self.views, self.receipt = lib, [], Receipt()
        self.domain = lib.epoch_domain_create_labeled(allocator, label.encode())
        if not self.domain:
            raise MemoryError(lib.slab_last_error().decode())

    def buffer(self, size):
        """A writable view of `size` bytes, which ends with the phase."""
        address = self.lib.epoch_domain_malloc(self.domain, size)
        if not address:
            raise MemoryError("no memory for a buffer")
        view = memoryview((c_char * size).from_address(address)).cast("B")
        self.views.append(view)
        return view

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for view in self.views:
            view.release()  # a BufferError where something made of it is alive: the phase is not ended under it
        if not self.lib.epoch_domain_destroy_ex(self.domain, byref(self.receipt)):
            raise RuntimeError(self.lib.slab_last_error().decode())


async def batch(lib, allocator, number, results):
    """Other batches run while this one waits."""
    with Phase(lib, allocator, f"batch {number % 4}") as phase:
        columns = [phase.buffer(1000) for _ in range(50)]
        for n, column in enumerate(columns):
            ctypes.memset((c_char * 1000).from_buffer(column), (number + n) % 256, 1000)  # what native code would do
            if n % 10 == 0:
                await asyncio.sleep(0)
        total = sum(column[0] + column[-1] for column in columns)
        kept = columns[0]
    results.append((number, total, kept, phase.receipt))


async def work(lib, allocator, count):
    results = []
    await asyncio.gather(*(batch(lib, allocator, n, results) for n in range(count)))
    return results


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else ctypes.util.find_library("temporal_slab")
    if path is None:
        print("phases.py: no libtemporal_slab.so is installed where the system looks; name one: phases.py LIBRARY", file=sys.stderr)
        return 2
    try:
        lib = load(path)
    except OSError as error:
        print(f"phases.py: {error}", file=sys.stderr)
        return 2
    allocator = lib.slab_allocator_create()
    results = asyncio.run(work(lib, allocator, 200))
    wrong = 0
    for number, total, kept, receipt in results:
        wrong += total != sum(2 * ((number + n) % 256) for n in range(50))
        wrong += receipt.version != 2 or receipt.objects_released != 50 or receipt.bytes_released < 50_000
        try:
            wrong += kept[0] >= 0  # it can be read: it must not
        except ValueError:
            pass
    text = ctypes.create_string_buffer(512)
    lib.epoch_receipt_text(byref(results[-1][3]), text, len(text))
    print(text.value.decode())
    print(f"{len(results)} batches of 50 buffers, {wrong} things wrong")
    lib.slab_allocator_free(allocator)
    return 1 if wrong or len(results) != 200 else 0


if __name__ == "__main__":
    sys.exit(main())
