"""Hooks of mkdocs.yml for pages that are also read without the site.

- A link to a file outside of docs/ leads to a copy of that file in the site.
- A mermaid drawing becomes an SVG drawing, so that no script is needed (diagrams.py).
- The API reference of Doxygen, in the folder that the variable PDP_SITE_API names, becomes the folder api/ of the site.
"""

import json
import os
import pathlib
import posixpath
import re
import sys
import tempfile

from mkdocs.structure.files import File

sys.path.insert(0, os.path.dirname(__file__))
import diagrams  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["CHANGELOG.md", "CONTRIBUTING.md"]  # pages of the site that lie outside of docs/
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".cuh": "cpp", ".md": "markdown", ".py": "python", ".sh": "sh", ".sbatch": "sh"}
LINK = re.compile(r"(!?\[[^\]\[]*(?:\[[^\]]*\])?[^\]\[]*\])\(([^)\s]+)\)")
ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
FENCE = re.compile(r"^```[^\n]*\n.*?^```$", re.MULTILINE | re.DOTALL)

copies = tempfile.TemporaryDirectory(prefix="pdp-site-")  # removed at the end of the process


def source_of(uri):
    """Returns the path, relative to the root of the repository, of the file that a page of the site is made from."""
    return uri if uri in PAGES else posixpath.join("docs", uri)


def page_of(path):
    """Returns the page of the site that shows a file or a folder of the repository."""
    if path in PAGES:
        return path
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path[len("docs/"):]
    return f"source/{path}.md"


def targets(uri, text):
    """Yields the links of a page to files and folders outside of docs/, as paths relative to the root of the repository."""
    for _, link in LINK.findall(FENCE.sub("", text)):
        path = link.partition("#")[0]
        if path and ":" not in path:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(source_of(uri)), path))
            if not path.startswith("docs/"):
                yield path


def sources_in(folder):
    """Returns the sources directly in a folder."""
    return [entry for entry in sorted((ROOT / folder).iterdir()) if entry.suffix in LANGUAGES and entry.is_file()]


def copy_of(path):
    """Returns the text of the page that shows a file or a folder."""
    full = ROOT / path
    text = f"# {path}\n\n"
    if full.is_dir():
        return text + "\n".join(f"- [{entry.name}]({full.name}/{entry.name}.md)" for entry in sources_in(path)) + "\n"
    if full.suffix == ".md":
        return full.read_text()
    ticks = "`" * 4
    return f"{text}{ticks}{LANGUAGES.get(full.suffix, 'text')}\n{full.read_text()}{ticks}\n"


def on_files(files, config):
    def add(path, folder):
        files.append(File(path, str(folder), config["site_dir"], config["use_directory_urls"]))

    for page in PAGES:
        add(page, ROOT)
    linked = set()
    for file in files.documentation_pages():
        linked.update(targets(file.src_uri, pathlib.Path(file.abs_src_path).read_text()))
    for path in [path for path in linked if (ROOT / path).is_dir()]:
        linked.update(f"{path}/{entry.name}" for entry in sources_in(path))
    for path in sorted(linked):
        if page_of(path) not in files and (ROOT / path).exists():
            copy = pathlib.Path(copies.name, page_of(path))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(copy_of(path))
            add(page_of(path), copies.name)

    api = os.environ.get("PDP_SITE_API")
    if api:
        for path in sorted(pathlib.Path(api).rglob("*")):
            if path.is_file():
                add(f"api/{path.relative_to(api).as_posix()}", pathlib.Path(api).parent)
    return files


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    if uri.startswith("source/"):
        page.meta["hide"] = ["navigation", "toc"]
        return LINK.sub(r"\1", markdown) if uri.endswith(".md.md") else markdown

    def link(match):
        path, mark, anchor = match[2].partition("#")
        if not path or ":" in path:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source_of(uri)), path))
        to = page_of(path)
        return f"{match[1]}({posixpath.relpath(to, posixpath.dirname(uri) or '.')}{mark}{anchor})"

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts.append(LINK.sub(link, markdown[end:fence.start()]))
        block = fence[0]
        parts.append(diagrams.svg(block.split("\n", 1)[1].rsplit("\n", 1)[0]) if block.startswith("```mermaid\n") else block)
        end = fence.end()
    parts.append(LINK.sub(link, markdown[end:]))
    # In code in a table, GitHub needs a backslash before a pipe, and MkDocs would show it.
    return ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), "".join(parts))


def on_post_build(config):
    """Leaves the copies of source files out of the search."""
    index = pathlib.Path(config["site_dir"], "search", "search_index.json")
    found = json.loads(index.read_text())
    found["docs"] = [entry for entry in found["docs"] if not entry["location"].startswith("source/")]
    index.write_text(json.dumps(found))
