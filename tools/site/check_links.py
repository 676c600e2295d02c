"""Checks the links of a built site: python3 check_links.py FOLDER

Each link and each file that a page loads must be in the folder, with the anchor if the link has one. Nothing may be loaded from elsewhere.
Prints one line for each fault. Exits with 1 if there is one. Links to other sites are not followed.
"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(values[key] for key in ("id", "name") if values.get(key))
        if tag in ("a", "area") and values.get("href"):
            self.links.append(values["href"])
        elif tag == "link" and values.get("href") and values.get("rel") in ("stylesheet", "icon", "shortcut icon", "preload"):
            self.loads.append(values["href"])
        elif tag in ("script", "img", "iframe", "source") and values.get("src"):
            self.loads.append(values["src"])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(errors="replace")) for path in sorted(root.rglob("*.html"))}
    faults, count = [], 0
    for path, page in pages.items():
        name = path.relative_to(root)
        for link in dict.fromkeys(page.links + page.loads):
            count += 1
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme not in ("data", "javascript"):
                    faults.append(f"{name}: loads from elsewhere: {link}")
                continue
            to = urllib.parse.unquote(parts.path)
            if not to:
                target = path
            elif to.startswith("/") or name.name == "404.html":
                target = root / to.lstrip("/")
            else:
                target = path.parent / to
            target = target.resolve()
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                faults.append(f"{name}: there is no {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors and not anchor.startswith("__"):
                faults.append(f"{name}: there is no anchor {link}")
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages, {count} links, {len(faults)} faults", file=sys.stderr)
    return 1 if faults or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
