"""Shared by run_step, run_pipelines and run_digits: the PyTorch to compare with, how its programs are built and started, and flags."""

import argparse
import json
import sys
from pathlib import Path

from blocks import ENOUGH_PAIRS, ROOT, Failure, at_least, run, run_object, say

HERE = Path(__file__).resolve().parent
INSTALLING = 3600  # seconds: PyTorch and its dependencies are several gigabytes


def version_of(python, timeout):
    return run([python, "-c", "import torch; print(torch.__version__)"], timeout).strip()


def find(python, work, timeout):
    """Returns an interpreter that has PyTorch, and PyTorch's version. If `python` is None, it is the interpreter of a virtual environment
    in `work`, which is created if necessary."""
    if python:
        return python, version_of(python, timeout)
    python = work / "pytorch" / "bin" / "python"
    if python.exists():
        try:
            return python, version_of(python, timeout)
        except Failure:
            pass  # an incomplete installation
    say(f"installing PyTorch into {work / 'pytorch'}")
    run([sys.executable, "-m", "venv", work / "pytorch"], timeout)
    run([python, "-m", "pip", "install", "--quiet", "--no-input", "torch", "numpy"], max(timeout, INSTALLING))
    return python, version_of(python, timeout)


def find_jax(python, may_install, timeout):
    """Returns the version of JAX. If it is missing and `may_install` is true, it is installed."""

    def version():
        return run([python, "-c", "import jax; print(jax.__version__)"], timeout).strip()

    try:
        return version()
    except Failure:
        if not may_install:
            raise
    say("installing JAX")
    run([python, "-m", "pip", "install", "--quiet", "--no-input", "jax"], max(timeout, INSTALLING))
    return version()


def torch_step(python, timeout, mode, **flags):
    """Runs a block of torch_step.py and returns its JSON object."""
    words = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", value)]
    return run_object([python, HERE / "torch_step.py", mode, *words], timeout, {"mode": mode, **flags}, ["median_us"])


HOW_TO_COMPILE = """
import json, torch
from torch.utils import cpp_extension
print(json.dumps([cpp_extension.include_paths(), cpp_extension.library_paths(), int(torch.compiled_with_cxx11_abi())]))
"""


def build_libtorch_step(python, work, timeout):
    """Builds libtorch_step if necessary and returns its path. A program that was built by the same command from the same sources is kept,
    because compiling takes half a minute."""
    includes, libraries, abi = json.loads(run([python, "-c", HOW_TO_COMPILE], timeout))
    source, program, stamp = HERE / "libtorch_step.cpp", work / "libtorch_step", work / "libtorch_step.stamp"
    command = ["g++", "-std=c++20", "-O3", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{HERE.parent}"]
    command += [word for folder in includes for word in ("-isystem", folder)] + [source, "-o", program]
    for folder in libraries:
        command += [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    command += ["-ltorch_cpu", "-lc10"]
    sources = [source, HERE.parent / "common" / "timing.hpp"]
    made = "\n".join([*map(str, command), version_of(python, timeout), *(path.read_text() for path in sources)])
    if not (program.exists() and stamp.exists() and stamp.read_text() == made):
        stamp.unlink(missing_ok=True)
        run(command, max(timeout, 600))
        stamp.write_text(made)
    return program


def add_flags(parser, quick):
    add = parser.add_argument
    add("--pairs", type=at_least(1), default=None, help=f"blocks of each program (default: {ENOUGH_PAIRS}; fewer are inconclusive)")
    add("--quick", action="store_true", help=f"{quick}, to see that it works")
    add("--markdown", action="store_true", help="print the table as Markdown, for docs/performance.md")
    add("--raw", type=argparse.FileType("w"), default=None, metavar="FILE", help="write the output of the blocks to this file, one JSON line a round")
    add("--timeout", type=at_least(1), default=300, metavar="S", help="seconds for one block (default: 300)")
    add("--build", type=Path, default=ROOT / "build" / "release", help="build folder (default: build/release); peers go into its peers/")
    add("--python", default=None, metavar="PROGRAM", help="an interpreter that has torch (default: one made with pip in the build folder)")
