"""A small model of Spack's package API, for pdp's package: directives record what they are called with, and a Spec is a choice of variants.

Conditions are conjunctions of +name, ~name, name=value and @version. The tests of pdp's package use nothing else.
"""

import os
import pathlib
import re
import shutil
import subprocess

# What the directives of the class that is being defined have recorded. PackageBase moves it into the class.
_records = []


class DirectiveError(Exception):
    pass


def _directive(name, *positional, **keywords):
    _records.append((name, positional, keywords))


def license(name, *, checked_by=None, when=None):
    _directive("license", name)


def version(name, *, sha256=None, branch=None):
    if (sha256 is None) == (branch is None):
        raise DirectiveError(f"version {name} needs either a sha256 or a branch")
    if sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise DirectiveError(f"the sha256 of version {name} is {sha256!r}")
    _directive("version", name, sha256=sha256)


def variant(name, *, default=False, description="", values=None, when=None, sticky=False):
    if not description:
        raise DirectiveError(f"the variant {name} has no description")
    _directive("variant", name, default=default, when=when)


def depends_on(spec, *, type=("build", "link"), when=None):
    match = re.fullmatch(r"([a-z][a-z0-9-]*)(@[0-9.]*:?[0-9.]*)?", spec)
    if not match:
        raise DirectiveError(f"{spec!r} is no spec of a dependency")
    types = (type,) if isinstance(type, str) else tuple(type)
    if not set(types) <= {"build", "link", "run", "test"}:
        raise DirectiveError(f"{spec} has the types {types}")
    _directive("depends_on", match.group(1), types=types, when=when)


def requires(*specs, policy="one_of", when=None, msg=None):
    _directive("requires", *specs, when=when, msg=msg)


def conflicts(spec, *, when=None, msg=None):
    _directive("conflicts", spec, when=when, msg=msg)


def join_path(*parts):
    return os.path.join(*parts)


class Executable:
    def __init__(self, path):
        self.path = str(path)

    def __call__(self, *arguments, output=None, error=None):
        result = subprocess.run([self.path, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{self.path} {' '.join(map(str, arguments))} fails:\n{result.stdout}")
        return result.stdout if output is not None else None


def which(name, *, required=False):
    path = shutil.which(name) or (name if os.access(name, os.X_OK) else None)
    if path is None and required:
        raise RuntimeError(f"{name} is not there")
    return Executable(os.path.abspath(path)) if path else None


def check_outputs(expected, actual):
    for pattern in expected:
        if not re.search(pattern, actual):
            raise RuntimeError(f"expected {pattern!r}, found {actual!r}")


def get_cmake_prefix_path(package):
    return [pathlib.Path("/usr")]


class PackageBase:
    sanity_check_is_file = []
    sanity_check_is_dir = []

    def __init_subclass__(cls):
        cls.records = [record for base in reversed(cls.__mro__[1:]) for record in base.__dict__.get("own_records", [])] + list(_records)
        cls.own_records = list(_records)
        _records.clear()

    @classmethod
    def recorded(cls, name):
        return [(positional, keywords) for kind, positional, keywords in cls.records if kind == name]


class Variant:
    def __init__(self, value):
        self.value = value


class Dependency:
    def __init__(self, name):
        self.command = which(name)


class Spec:
    """A package with a value for each of its variants whose condition holds."""

    def __init__(self, package, chosen):
        self.variants = {}
        self._package = package
        for (name,), keywords in package.recorded("variant"):
            if self._holds(keywords["when"]):
                self.variants[name] = Variant(chosen.get(name, keywords["default"]))
        unknown = set(chosen) - set(self.variants)
        if unknown:
            raise DirectiveError(f"there are no variants {', '.join(sorted(unknown))} in this spec")
        self.dependencies = {name: keywords["types"] for (name,), keywords in package.recorded("depends_on") if self._holds(keywords["when"])}

    def _holds(self, condition):
        return condition is None or self.satisfies(condition)

    def satisfies(self, condition):
        for part in condition.split():
            match = re.fullmatch(r"([+~])([a-z_]+)|([a-z_]+)=(\w+)", part)
            if not match:
                raise DirectiveError(f"this model does not know the condition {part!r}")
            name = match.group(2) or match.group(3)
            if name not in {variant for (variant,), _ in self._package.recorded("variant")}:
                raise DirectiveError(f"the condition {part!r} names no variant")
            value = self.variants[name].value if name in self.variants else None
            wanted = match.group(4) if match.group(3) else match.group(1) == "+"
            if value is None or (wanted not in value if isinstance(value, tuple) else value != wanted):
                return False
        return True

    def __getitem__(self, name):
        if name not in self.dependencies:
            raise KeyError(f"{name} is no dependency of this spec")
        return Dependency(name)
