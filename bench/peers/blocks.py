"""Shared by the scripts in this folder: programs that run in blocks and take turns, the statistics of their figures, and flags."""

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
ENOUGH_PAIRS = 11  # for a figure that may be quoted
PRECISIONS = ("float32", "tf32", "bfloat16")  # of a step on a GPU


class Failure(Exception):
    """A program did not run, or its output is not as expected."""


def say(*words):
    print(f"{Path(sys.argv[0]).name}:", *words, file=sys.stderr, flush=True)


# ---- Processes ------------------------------------------------------------------------------------------------------


def die_with_parent(prctl=ctypes.CDLL(None).prctl):
    """Makes the calling process end when its parent ends. Call it in a child: a rank that outlived its script would distort later
    figures."""
    pr_set_pdeathsig = 1
    prctl(pr_set_pdeathsig, signal.SIGKILL)


def run(command, timeout, env=None):
    """Runs a command and returns its output. All its processes have ended when this returns or raises."""
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
            raise Failure(f"{' '.join(command)}: did not end within {timeout} s; raise --timeout") from None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    if process.returncode != 0:
        raise Failure(f"{' '.join(command)}: exit status {process.returncode}\n" + "\n".join((err or out).strip().splitlines()[-12:]))
    return out


def run_object(command, timeout, expected, times):
    """Runs a command that prints one JSON object, and returns it. It must hold the items of `expected`, and a positive number for each name in
    `times`."""
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
    """A program that keeps running. For each line on its standard input, it runs a block and prints a JSON object."""

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
                raise Failure(f"{words}: no answer within {self.timeout} s; raise --timeout")
            some = os.read(self.process.stdout.fileno(), 65536)
            if not some:
                self.log.seek(0)
                raise Failure(f"{words}: exit status {self.process.wait()}\n" + "\n".join(self.log.read().strip().splitlines()[-12:]))
            line += some
        return object_of(line.decode(), words.split(), self.expected, self.times)


def started(main):
    """Runs the main function of a script and returns its exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # raises, so that the running block is ended too
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
    """Returns a field of the first processor in /proc/cpuinfo; empty if there is no field of that name."""
    found = re.search(rf"^{name}\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1).strip() if found else ""


def maker():
    return {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}.get(cpu_info("vendor_id"), platform.machine())


def machine():
    return f"{cpu_info('model name') or platform.machine()}, {cores()} cores, {datetime.date.today()}"


# ---- Turns ----------------------------------------------------------------------------------------------------------

# block() starts the program and returns its figures: a dictionary, or a list in run_builds.
Program = namedtuple("Program", "name block")


class Turns:
    """Programs that take turns: one after another, then in the opposite order (A B B A). Neighbouring blocks form pairs, so that slow changes
    of the machine favour neither program."""

    def __init__(self, pairs, raw):
        self.pairs, self.raw, self.interrupted, self.failed = pairs, raw, False, False
        warn_of_few(pairs)

    def rounds(self, programs, needed=("pdp",), **what):
        """Returns, for each round, the figures of the programs by name. `what` describes the measurement in messages and in the raw file. A
        program that fails is left out of all rounds. If one of the `needed` programs fails, there are no rounds."""
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
                        break  # the round is repeated without the program
                else:
                    found.append(figures)
                    self.record(what, len(found), figures)
        except KeyboardInterrupt:
            self.interrupted = True  # the complete rounds go into the table
        say(f"{where}, rounds: {len(found)}")
        names = {program.name for program in present}
        return [{name: block for name, block in figures.items() if name in names} for figures in found]

    def record(self, what, number, figures):
        """Appends a round to the raw file, its blocks in the order in which they ran."""
        if self.raw is None:
            return
        json.dump({**what, "round": number, "blocks": figures}, self.raw)
        self.raw.write("\n")
        self.raw.flush()

    def report(self, title, head, body, markdown):
        """Prints the table and returns the exit status of the script."""
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
    """Returns the median and its 95 % bootstrap interval from 4000 resamples (B. Efron, Bootstrap methods, 1979). The seed is fixed, so that
    equal values give equal intervals."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(4000))
    return Estimate(statistics.median(values), medians[100], medians[3899])


# The peer's time divided by pdp's.
Ratio = namedtuple("Ratio", "median low high peer")


def fastest(ratios):
    """Returns the ratio to the fastest peer, which has the smallest ratios; None if there are none. `ratios` maps peers to their ratios."""
    if not ratios:
        return None
    name = min(ratios, key=lambda name: statistics.median(ratios[name]))
    return Ratio(*interval(ratios[name]), name)


def warn_of_few(pairs):
    if pairs < ENOUGH_PAIRS:
        say(f"{pairs} pairs show that it works, but are too few to compare speeds; use at least {ENOUGH_PAIRS}")


def at_least_verdict(estimate, least):
    """Returns whether an aim is reached: yes if the whole interval reaches it, no if no part of it does, else unclear."""
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
    """Returns an argparse type: a comma-separated list of values, without duplicates. `convert` is the type of one value."""

    def split(text):
        return tuple(dict.fromkeys(convert(word) for word in text.split(",")))

    return split


def one_of(names):
    def convert(word):
        if word not in names:
            raise argparse.ArgumentTypeError(f"'{word}' is unknown; use one of {', '.join(names)}")
        return word

    return convert


def at_least(least):
    def convert(word):
        if not word.isdecimal() or int(word) < least:
            raise argparse.ArgumentTypeError(f"must be a number of at least {least}; found '{word}'")
        return int(word)

    return convert
