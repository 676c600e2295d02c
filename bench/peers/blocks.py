"""What the scripts beside this file share: programs that run in blocks and take turns, what is said about their figures, and flags."""

import argparse
import ctypes
import datetime
import json
import os
import platform
import random
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENOUGH_PAIRS = 11  # for a figure to quote
PRECISIONS = ("float32", "tf32", "bfloat16")  # of a step on a GPU


class Failure(Exception):
    """Something that was to run did not, or its output is not what it should be."""


def say(*words):
    print(f"{Path(sys.argv[0]).name}:", *words, file=sys.stderr, flush=True)


# ---- Processes ------------------------------------------------------------------------------------------------------


def die_with_parent(prctl=ctypes.CDLL(None).prctl):
    """In a child before it starts its program: a rank that outlives its script would spoil every later figure."""
    pr_set_pdeathsig = 1
    prctl(pr_set_pdeathsig, signal.SIGKILL)


def run(command, timeout, env=None):
    """What a command prints. Its processes are gone when this returns, however it returns."""
    command = [str(word) for word in command]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
        start_new_session=True,
        preexec_fn=die_with_parent,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"{' '.join(command)}: no end within {timeout} s; --timeout gives it longer") from None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    if process.returncode != 0:
        raise Failure(f"{' '.join(command)}: exit status {process.returncode}\n" + "\n".join((err or out).strip().splitlines()[-12:]))
    return out


def run_object(command, timeout, expected, times):
    """The one JSON object that a command prints. It must hold what is expected, and a number above 0 under each of the names in times."""
    return object_of(run(command, timeout), command, expected, times)


def object_of(out, command, expected, times):
    try:
        found = json.loads(out)
        right = all(found[name] == value for name, value in expected.items()) and all(float(found[name]) > 0 for name in times)
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        words = " ".join(map(str, command))
        raise Failure(f"{words}: expected one JSON object with {json.dumps(expected)} and {', '.join(times)} above 0; found:\n{out[:500]}")
    return found


class Served:
    """A program that stays, and for each line on its standard input makes a block and prints a JSON object."""

    def __init__(self, command, timeout, expected, times):
        self.command, self.timeout, self.expected, self.times = [str(word) for word in command], timeout, expected, times
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True, preexec_fn=die_with_parent
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.communicate()
        self.log.close()

    def block(self):
        words = " ".join(self.command)
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line, end = b"", time.monotonic() + self.timeout
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise Failure(f"{words}: no answer within {self.timeout} s; --timeout gives it longer")
            some = os.read(self.process.stdout.fileno(), 65536)
            if not some:
                self.log.seek(0)
                raise Failure(f"{words}: exit status {self.process.wait()}\n" + "\n".join(self.log.read().strip().splitlines()[-12:]))
            line += some
        return object_of(line.decode(), words.split(), self.expected, self.times)


def started(main):
    """The exit status of a script's main function."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the block that runs is ended, too
    try:
        return main()
    except (Failure, OSError) as failure:
        say(failure)
        return 1
    except KeyboardInterrupt:
        return 130


# ---- The machine ----------------------------------------------------------------------------------------------------


def cores():
    return len(os.sched_getaffinity(0))


def cpu_info(name):
    """A field of the first processor; empty where the kernel names it otherwise."""
    found = re.search(rf"^{name}\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1).strip() if found else ""


def maker():
    return {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}.get(cpu_info("vendor_id"), platform.machine())


def machine():
    return f"{cpu_info('model name') or platform.machine()}, {cores()} cores, {datetime.date.today()}"


# ---- Turns ----------------------------------------------------------------------------------------------------------

# block(): starts the program and gives what it printed, a dictionary.
Program = namedtuple("Program", "name block")


class Turns:
    """Programs that take turns, one after another and then in the opposite order, A B B A: so neighbours form pairs, and what changes
    slowly on the machine favours neither side of them."""

    def __init__(self, pairs, raw):
        self.pairs, self.raw, self.interrupted, self.failed = pairs, raw, False, False
        warn_of_few(pairs)

    def rounds(self, programs, needed=("pdp",), **what):
        """For each round the programs' figures by name. `what` says in the messages and the raw file what is measured. A program that
        fails is left out of all rounds; without one of those needed there are none."""
        found, where, present = [], ", ".join(map(str, what.values())), list(programs)
        try:
            while len(found) < self.pairs:
                order = present if len(found) % 2 == 0 else present[::-1]
                figures = {}
                for program in order:
                    try:
                        figures[program.name] = program.block()
                    except Failure as error:
                        say(f"{where}: {program.name} is left out: {error}")
                        self.failed = True
                        present.remove(program)
                        if program.name in needed:
                            return []
                        break  # and this round again without it
                else:
                    found.append(figures)
                    self.record(what, len(found), figures)
        except KeyboardInterrupt:
            self.interrupted = True  # what is complete goes into the table
        say(f"{where}, rounds: {len(found)}")
        names = {program.name for program in present}
        return [{name: block for name, block in figures.items() if name in names} for figures in found]

    def record(self, what, number, figures):
        """The blocks are in the order in which they ran."""
        if self.raw is None:
            return
        json.dump({**what, "round": number, "blocks": figures}, self.raw)
        self.raw.write("\n")
        self.raw.flush()

    def report(self, title, head, body, markdown):
        """Prints the table; returns the script's exit status."""
        if body:
            print(title + ("\n" if markdown else ""))
            print_table(head, body, markdown)
        if self.interrupted:
            say("interrupted: the table holds what was measured until then, with fewer rounds in its last row")
            return 130
        return 1 if self.failed or not body else 0


# ---- Figures --------------------------------------------------------------------------------------------------------

Estimate = namedtuple("Estimate", "median low high")


def interval(values):
    """The median and its 95 % interval by 4000 resamples (B. Efron, Bootstrap methods, 1979); the same for the same values."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(4000))
    return Estimate(statistics.median(values), medians[100], medians[3899])


# The peer's time over pdp's.
Ratio = namedtuple("Ratio", "median low high peer")


def fastest(ratios):
    """Of the ratios by the peer's name those to the fastest peer, which are the least; None if there are none."""
    if not ratios:
        return None
    name = min(ratios, key=lambda name: statistics.median(ratios[name]))
    return Ratio(*interval(ratios[name]), name)


def warn_of_few(pairs):
    if pairs < ENOUGH_PAIRS:
        say(f"{pairs} pairs are enough to see that it works, not to tell who is faster: that takes at least {ENOUGH_PAIRS}")


def at_least_verdict(estimate, least):
    """Whether an aim is reached: yes if the whole interval is, no if nothing of it is, else unclear."""
    return "yes" if estimate.low >= least else "no" if estimate.high < least else "unclear"


def at_most_verdict(estimate, most):
    return "yes" if estimate.high <= most else "no" if estimate.low > most else "unclear"


def time_text(time):
    return f"{time:.2f}" if time < 10 else f"{time:.1f}" if time < 100 else f"{time:.0f}"


def estimate_text(estimate):
    return f"{estimate.median:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def ratio_text(ratio):
    return f"{estimate_text(ratio)} {ratio.peer}"


def print_table(head, body, markdown):
    if markdown:
        for row in (head, ["---"] * len(head), *body):
            print("| " + " | ".join(row) + " |")
        return
    widths = [max(len(row[column]) for row in (head, *body)) for column in range(len(head))]
    for row in (head, *body):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


# ---- Flags ----------------------------------------------------------------------------------------------------------


def listed(convert):
    """An argparse type: a list with commas."""

    def split(text):
        return tuple(dict.fromkeys(convert(word) for word in text.split(",")))

    return split


def one_of(names):
    def convert(word):
        if word not in names:
            raise argparse.ArgumentTypeError(f"'{word}' is unknown; it is one of {', '.join(names)}")
        return word

    return convert


def at_least(least):
    def convert(word):
        if not word.isdecimal() or int(word) < least:
            raise argparse.ArgumentTypeError(f"must be a number from {least}; found '{word}'")
        return int(word)

    return convert
