#!/usr/bin/env python3
"""Checks a vcpkg.json of a port against the rules of vcpkg's schema, and against the portfile beside it:

    manifest.py FOLDER
"""

import json
import pathlib
import re
import sys

IDENTIFIER = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
RESERVED = re.compile(r"prn|aux|nul|con|lpt[1-9]|com[1-9]|core|default")
# The fields of a port and of its parts, in the order in which `vcpkg format-manifest` writes them.
PORT = ["$schema", "name", "version", "version-semver", "version-date", "version-string", "port-version", "maintainers", "summary", "description",
        "homepage", "documentation", "license", "supports", "builtin-baseline", "dependencies", "default-features", "overrides", "features"]
FEATURE = ["description", "license", "supports", "dependencies"]
DEPENDENCY = ["name", "host", "default-features", "features", "platform", "version>="]
PLATFORMS = {"x64", "x86", "arm", "arm64", "windows", "mingw", "linux", "osx", "uwp", "android", "emscripten", "ios", "native", "static"}

errors = []


def expect(condition, message):
    if not condition:
        errors.append(message)


def check_fields(value, allowed, what):
    unknown = [field for field in value if field not in allowed and not field.startswith("$")]
    expect(not unknown, f"{what} has unknown fields: {', '.join(unknown)}")
    order = [allowed.index(field) for field in value if field in allowed]
    expect(order == sorted(order), f"the fields of {what} are not in the order of `vcpkg format-manifest`: {', '.join(value)}")


def check_name(name, what):
    expect(isinstance(name, str) and IDENTIFIER.fullmatch(name) and not RESERVED.fullmatch(name), f"{what} has a name that vcpkg rejects: {name!r}")


def check_platform(text, what):
    """Parses a platform expression: names, !, &, | and parentheses. & and | may not be mixed without parentheses."""
    tokens = re.findall(r"[a-z0-9]+|[!&|()]|\S", text)

    def take(expected=None):
        if not tokens or (expected and tokens[0] != expected):
            raise ValueError(f"expected {expected or 'more'}")
        return tokens.pop(0)

    def unary():
        token = take()
        if token == "!":
            unary()
        elif token == "(":
            expression()
            take(")")
        elif token not in PLATFORMS:
            raise ValueError(f"{token!r} is no platform")

    def expression():
        unary()
        operator = tokens[0] if tokens and tokens[0] in "&|" else None
        while tokens and operator and tokens[0] == operator:
            take()
            unary()
        if tokens and tokens[0] in "&|":
            raise ValueError("& and | are mixed without parentheses")

    try:
        expression()
        if tokens:
            raise ValueError(f"{tokens[0]!r} is left over")
    except ValueError as error:
        errors.append(f"the platform expression of {what}, {text!r}, is wrong: {error}")


def check_description(value, what):
    expect(isinstance(value.get("description"), str) and value["description"], f"{what} has no description")
    expect(not value.get("description", "").endswith("."), f"the description of {what} ends with a full stop")


def check_dependencies(value, own_name, own_features, what):
    names = []
    for dependency in value.get("dependencies", []):
        if isinstance(dependency, str):
            dependency = {"name": dependency}
        else:
            check_fields(dependency, DEPENDENCY, f"a dependency of {what}")
            expect(set(dependency) != {"name"}, f"the dependency {dependency.get('name')} of {what} needs no object")
        check_name(dependency.get("name"), f"a dependency of {what}")
        names.append(dependency.get("name"))
        if "platform" in dependency:
            check_platform(dependency["platform"], f"a dependency of {what}")
        if dependency.get("name") == own_name:
            expect(dependency.get("default-features") is False, f"{what} depends on its own port with default features")
            for feature in dependency.get("features", []):
                expect(feature in own_features, f"{what} depends on the feature {feature}, which the port does not have")
    expect(names == sorted(names), f"the dependencies of {what} are not sorted: {', '.join(names)}")
    expect(len(names) == len(set(names)), f"{what} has a dependency twice")


def main(folder):
    def unique(pairs):
        keys = [key for key, _ in pairs]
        expect(len(keys) == len(set(keys)), f"a field is there twice: {', '.join(keys)}")
        return dict(pairs)

    port = json.loads((folder / "vcpkg.json").read_text(encoding="utf-8"), object_pairs_hook=unique)
    features = port.get("features", {})
    check_fields(port, PORT, "the port")
    check_name(port.get("name"), "the port")
    expect(port.get("name") == folder.name, f"the port {port.get('name')} is in the folder {folder.name}")
    expect(re.fullmatch(r"\d+(\.\d+)*", port.get("version", "")), f"the version {port.get('version')!r} is not of the form 1.2.3")
    expect(len([field for field in port if field.startswith("version")]) == 1, "the port needs exactly one version field")
    expect(port.get("license") == "BSD-3-Clause", "the licence must be BSD-3-Clause, as in LICENSE")
    expect(re.fullmatch(r"https://\S+", port.get("homepage", "")), "the homepage is no address")
    expect(not port.get("default-features"), "no feature may be on by default")
    check_description(port, "the port")
    check_platform(port.get("supports", ""), "the port")
    check_dependencies(port, port.get("name"), features, "the port")
    expect(list(features) == sorted(features), "the features are not sorted")
    for name, feature in features.items():
        what = f"the feature {name}"
        check_name(name, what)
        check_fields(feature, FEATURE, what)
        check_description(feature, what)
        check_dependencies(feature, port.get("name"), features, what)
        if "supports" in feature:
            check_platform(feature["supports"], what)

    portfile = (folder / "portfile.cmake").read_text(encoding="utf-8")
    switches = dict(re.findall(r"^ +([a-z0-9-]+) +(PDP_WITH_[A-Z]+)$", portfile, re.MULTILINE))
    expect(set(switches) == set(features), f"the portfile has switches for {', '.join(sorted(switches))}; the port has {', '.join(sorted(features))}")
    usage = (folder / "usage").read_text(encoding="utf-8")
    for name in features:
        expect(f"pdp::{name}" in usage, f"the file usage does not name pdp::{name}")
    for field in re.findall(r"vcpkg[-_]cmake(?:[-_]config)?(?=_(?:configure|config_fixup))", portfile):
        helper = "vcpkg-cmake-config" if "config" in field else "vcpkg-cmake"
        expect({"name": helper, "host": True} in port.get("dependencies", []), f"the portfile uses {helper}, which must be a host dependency")


main(pathlib.Path(sys.argv[1]).resolve())
for error in errors:
    print(f"manifest: {error}", file=sys.stderr)
sys.exit(1 if errors else 0)
