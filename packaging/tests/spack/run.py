#!/usr/bin/env python3
"""Checks pdp's package for Spack by executing it against a small model of Spack (model/):

    run.py FOLDER ARCHIVE WORK

FOLDER holds package.py and test/, ARCHIVE is the release that it names, and WORK is an empty folder.
"""

import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import types

folder, archive, work = map(pathlib.Path, sys.argv[1:4])
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent / "model"))
from spack.package import Spec  # noqa: E402

# The libraries of this machine, by the names of Spack's packages.
HEADERS = {
    "gloo": ["/usr/include/gloo/context.h"],
    "mpi": ["/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h", "/usr/lib/aarch64-linux-gnu/openmpi/include/mpi.h"],
    "onednn": ["/usr/include/oneapi/dnnl/dnnl.h"],
    "tools": ["/usr/include/CLI/CLI.hpp"],
}


def fail(message):
    sys.exit(f"spack: {message}")


def run(*command):
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        fail(f"this command fails: {' '.join(map(str, command))}\n{result.stdout}")
    return result.stdout


def load():
    loader = importlib.util.spec_from_file_location("package", folder / "package.py")
    module = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(module)
    return module.Pdp


Pdp = load()

# ---- The directives -------------------------------------------------------------------------------------------------

if [name for (name,), _ in Pdp.recorded("license")] != ["BSD-3-Clause"]:
    fail("the licence must be BSD-3-Clause, as in LICENSE")
if not Pdp.__doc__ or not Pdp.homepage.startswith("https://") or not Pdp.git.startswith("https://"):
    fail("the package has no description, homepage or repository")
releases = {name: keywords["sha256"] for (name,), keywords in Pdp.recorded("version") if keywords["sha256"]}
if list(releases.values()) != [hashlib.sha256(archive.read_bytes()).hexdigest()]:
    fail(f"the hash of the release is not that of {archive}")
if "cxx" not in Spec(Pdp, {}).dependencies:
    fail("the package does not depend on a C++ compiler")
for name in ("requires", "conflicts"):
    for specs, keywords in Pdp.recorded(name):
        if not keywords["msg"]:
            fail(f"{name}({specs}) has no message")

own = [(name, keywords) for kind, (name, *_), keywords in Pdp.own_records if kind == "variant" and name != "generator"]
variants = sorted({"cuda", *(name for name, _ in own)})


def package_with(chosen):
    package = Pdp()
    package.spec = Spec(Pdp, chosen)
    return package


def arguments(chosen):
    return [argument for argument in package_with(chosen).cmake_args() if argument]


# Each variant changes exactly one switch of CMake.
for name in variants:
    base = {"cuda": True} if name == "nccl" else {}
    off, on = set(arguments({**base, name: False})), set(arguments({**base, name: True}))
    changed = sorted(on - off)
    if len(changed) != 1 or len(off - on) != 1 or not changed[0].endswith("=ON"):
        fail(f"the variant {name} changes {changed}; expected one switch")
    switch = changed[0].split(":")[0][2:]
    if switch not in (f"PDP_WITH_{name.upper()}", f"PDP_BUILD_{name.upper()}"):
        fail(f"the variant {name} sets {switch}")
    extra = sorted(set(Spec(Pdp, {**base, name: True}).dependencies) - set(Spec(Pdp, {**base, name: False}).dependencies))
    print(f"{name}: {switch}, {', '.join(extra) or 'no further package'}")
try:
    Spec(Pdp, {"nccl": True})
    fail("the variant nccl exists without cuda")
except Exception as error:  # pylint: disable=broad-except
    if "nccl" not in str(error):
        raise
if "-DCMAKE_CUDA_ARCHITECTURES:STRING=80;90" not in arguments({"cuda": True, "cuda_arch": ("80", "90")}):
    fail("cuda_arch does not reach CMake")

# ---- Installations --------------------------------------------------------------------------------------------------

with tarfile.open(archive) as files:
    files.extractall(work / "source")
source = next((work / "source").iterdir())


def install(label, chosen):
    """Installs the package as Spack's builder for CMake does, and runs the sanity checks."""
    package = package_with(chosen)
    package.prefix = work / label / "prefix"
    build = work / label / "build"
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release", "-D", f"CMAKE_INSTALL_PREFIX={package.prefix}", *arguments(chosen))
    run("cmake", "--build", build)
    run("cmake", "--install", build)
    for path in Pdp.sanity_check_is_file:
        if not (package.prefix / path).is_file():
            fail(f"the sanity check of {label} finds no file {path}")
    for path in Pdp.sanity_check_is_dir:
        if not (package.prefix / path).is_dir():
            fail(f"the sanity check of {label} finds no folder {path}")
    found = {path.name[4:-14] for path in (package.prefix / "share" / "cmake" / "pdp").glob("pdp-*-targets.cmake")}
    wanted = {name for name, variant in package.spec.variants.items() if variant.value is True and name != "tools"} | {"launch", "safetensors"}
    if {"shm", "tcp"} <= wanted:
        wanted.add("hierarchical")
    if found != wanted:
        fail(f"{label} has the components {sorted(found)}; expected {sorted(wanted)}")
    if (package.prefix / "bin" / "pdp-checkpoint").exists() != (chosen.get("tools") is True):
        fail(f"{label} has pdp-checkpoint, or lacks it")
    print(f"installed {label}: {', '.join(sorted(found))}")
    return package


off = {name: False for name, keywords in own if keywords["default"]}
install("without", off)
package = install("default", {})
others = [name for name, paths in HEADERS.items() if name != "tools" and any(os.path.exists(path) for path in paths)]
chosen = {**off, **{name: True for name in others}}
if shutil.which("nvcc"):
    chosen["cuda"] = True
install("others", chosen)
if "--tools" in sys.argv and any(os.path.exists(path) for path in HEADERS["tools"]):
    install("tools", {"tools": True})

# ---- The stand-alone test -------------------------------------------------------------------------------------------

stage = work / "stage"
stage.mkdir()
package.test_suite = types.SimpleNamespace(current_test_data_dir=folder / "test")
os.environ.setdefault("CXX", shutil.which("g++"))
os.chdir(stage)
package.test_train()
print("the stand-alone test trains")

# It must fail if the program does.
text = (folder / "test" / "train.cpp").read_text(encoding="utf-8")
shutil.copytree(folder / "test", work / "broken")
(work / "broken" / "train.cpp").write_text("#include <cstdio>\nint main() { std::puts(\"no training\"); }\n", encoding="utf-8")
package.test_suite.current_test_data_dir = work / "broken"
shutil.rmtree(stage / "build")
try:
    package.test_train()
except RuntimeError as error:
    if "expected" not in str(error):
        raise
else:
    fail("the stand-alone test accepts a program that does not train")
print("the stand-alone test fails if nothing is trained")
