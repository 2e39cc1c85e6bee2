#!/usr/bin/env python3
"""Runs a command under a memory limit that is sampled: watch_limit.py MIB COMMAND...

For machines where no control group can be made. About every millisecond the command's anonymous and shared resident
memory, children left out, is read; above the limit the command is killed, as the kernel would kill it in a group without
swap. A peak that is shorter than a sample is not seen. The last line on standard error is "watch_limit: peak N KiB, killed"
or "..., ended"; the exit status is the command's, 137 when it was killed.
"""
import subprocess
import sys
import time


def resident_kb(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
            fields = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon", "RssShmem")))
        return sum(int(value.split()[0]) for value in fields.values())
    except (OSError, ValueError):
        return 0


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        print("usage: watch_limit.py MIB COMMAND...", file=sys.stderr)
        return 2
    limit_kb, peak, killed = int(sys.argv[1]) * 1024, 0, False
    with subprocess.Popen(sys.argv[2:]) as child:
        while child.poll() is None:
            now = resident_kb(child.pid)
            peak = max(peak, now)
            if now > limit_kb and not killed:
                killed = True
                child.kill()
            time.sleep(0.001)
    print(f"watch_limit: peak {peak} KiB, {'killed' if killed else 'ended'}", file=sys.stderr)
    return 137 if killed else child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(main())
