"""synthetic_bench: files appear whole or not at all, those that cannot be written are told of, signals end a run or a phase."""

import glob
import json
import os
import shutil
import signal
import stat
import time

from synthetic_kit import call, check, finish, load, start

LONG = ("--pattern=steady", "--duration_s=100", "--progress_s=0")


def clean():
    shutil.rmtree("live", ignore_errors=True)
    os.mkdir("live")


def wait_for(name):
    for _ in range(18000):
        if os.path.exists(name):
            return
        time.sleep(0.01)
    check(False, name, "does not appear")


def end(run, number, wanted=0):
    run.send_signal(number)
    out, err = run.communicate(timeout=300)
    check(run.returncode == wanted, "after signal", number, "exit", run.returncode, err[:300])
    return out, err


def signals_end_the_run():
    for number, allocator, duration in ((signal.SIGINT, "tslab", "100"), (signal.SIGTERM, "malloc", "100"),
                                        (signal.SIGTERM, "tslab", "0")):
        clean()
        run = start(*LONG, "--duration_s", duration, "--allocator", allocator, "--json=live/result.json",
                    "--stats-file=live/stats.json", "--stats_s=0.05")
        wait_for("live/stats.json")
        out, err = end(run, number)
        check("interrupted" in out and "allocated" in out and err == "", out, err)
        r, d = load("live/result.json"), load("live/stats.json")
        check(r and r["interrupted"] and r["balanced"] and r["elapsed_s"] > 0, "result", r)
        check(r and d and d["benchmark_requests_completed"] == r["requests"], "the last statistics are not the end's")


def signal_ends_the_phase():
    for phases, threads in (("ring", 2), ("domain", 1)):
        clean()
        run = start("--epoch_policy=manual", "--phases", phases, "--threads", str(threads), "--duration_s=100", "--json=live/result.json",
                    "--stats-file=live/stats.json", "--stats_s=0.05")
        wait_for("live/stats.json")
        run.send_signal(signal.SIGUSR1)
        before = load("live/stats.json")["benchmark_requests_completed"]
        for _ in range(9000):  # until requests have been served since
            if load("live/stats.json")["benchmark_requests_completed"] > before + 50:
                break
            time.sleep(0.02)
        end(run, signal.SIGINT)
        r = load("live/result.json")
        ended = 1 if phases == "ring" else 2  # a thread ends its last phase as it leaves
        check(r and r["phases"]["ended"] == ended and r["balanced"], phases, r and r["phases"])


def readers_see_whole_documents():
    clean()
    run = start(*LONG, "--stats-file=live/stats.json", "--stats_s=0.001")
    wait_for("live/stats.json")
    seen, last, falls = set(), (0, 0), 0
    for turn in range(60000):  # 150, and more where it is written seldom
        if turn >= 150 and len(seen) > 3:
            break
        with open("live/stats.json", encoding="utf-8") as text:
            try:
                d = json.loads(text.read())
            except ValueError as error:
                check(False, "half a document:", error)
                break
        now = (d["benchmark_requests_completed"], d["benchmark_objects_allocated"])
        check(d["benchmark_objects_freed"] + d["benchmark_objects_leaked"] <= now[1], "more freed than allocated")
        falls += now < last
        last = now
        seen.add(now)
        time.sleep(0.002)
    end(run, signal.SIGINT)
    check(len(seen) > 3 and falls == 0, "documents:", len(seen), "falls:", falls)
    check(glob.glob("live/*") == ["live/stats.json"], "left behind:", glob.glob("live/*"))


def names_that_cannot_be_written():
    for flag in ("--stats-file", "--json"):
        for name, said in (("live/no/such/file", "No such file"), (".", "Is a directory"), ("", "needs a value")):
            clean()
            out, err = call(flag + "=" + name, "--requests=1", wanted=1 if name else 2)
            check(said in err and name in err and out == "", flag, name, out[:100], err)
    if os.path.exists("/dev/full"):
        for flag in ("--stats-file", "--json"):
            _, err = call(flag + "=/dev/full", "--requests=1", "--req_rate=0", wanted=1)
            check("/dev/full: No space" in err, flag, err)
            check(stat.S_ISCHR(os.stat("/dev/full").st_mode), "/dev/full was replaced")
        with open("/dev/full", "w", encoding="utf-8") as full:
            for arguments in (("--requests=1", "--req_rate=0"), ("--help",), ("--version",)):
                call(*arguments, wanted=1, stdout=full)


def a_folder_that_goes_away():
    clean()
    run = start(*LONG, "--stats-file=live/stats.json", "--stats_s=0.05")
    wait_for("live/stats.json")
    shutil.move("live", "gone")
    time.sleep(0.3)
    out, err = end(run, signal.SIGINT, wanted=1)
    shutil.rmtree("gone")
    check(err.count("live/stats.json: No such file") == 1 and "allocated" in out, "told once:", err)


def an_older_file_stays_until_then():
    clean()
    with open("live/result.json", "w", encoding="utf-8") as text:
        text.write("older")
    run = start(*LONG, "--json=live/result.json", "--stats-file=live/stats.json", "--stats_s=0.05")
    wait_for("live/stats.json")
    with open("live/result.json", encoding="utf-8") as text:
        check(text.read() == "older", "the result is there before the end")
    run.kill()
    run.communicate()
    with open("live/result.json", encoding="utf-8") as text:
        check(text.read() == "older", "a run that was killed leaves a result")


for test in (signals_end_the_run, signal_ends_the_phase, readers_see_whole_documents, names_that_cannot_be_written,
             a_folder_that_goes_away, an_older_file_stays_until_then):
    test()
finish()
