"""Draws the mermaid diagrams of the pages as SVG. It knows those parts of the language that the pages use:

- flowchart: nodes with texts, arrows with texts, and `&` between nodes. Graphviz finds the places.
- sequenceDiagram: participants and the messages ->>.
- xychart-beta: one bar for each name of the x axis.

Raises ValueError for a line that it does not know. Colours follow the page, so that a drawing fits light and dark pages.
"""

import html
import re
import subprocess

WIDTH_OF_LETTER = 7.2  # of the font in the drawings, in pixels
HEIGHT_OF_LINE = 18


def svg(text):
    """Returns the drawing of a mermaid diagram as one block of HTML."""
    kind, *lines = [line for line in text.splitlines() if line.strip()]
    words = kind.split()
    if words[0] == "flowchart":
        return flowchart(words[1], lines)
    if words[0] == "sequenceDiagram":
        return sequence(lines)
    if words[0] == "xychart-beta":
        return bars(lines)
    raise ValueError(f"a diagram of an unknown kind: {kind}")


def wrapped(width, height, elements, label):
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" style="width:{width:.0f}px;min-width:{0.7 * width:.0f}px"'
    return f'\n<div class="diagram"><svg role="img" aria-label="{html.escape(label)}" {size}>' + "".join(elements) + "</svg></div>\n"


def text_at(x, y, lines, anchor="middle", kind="label"):
    """Returns a text of several lines, whose middle is at y."""
    top = y - (len(lines) - 1) * HEIGHT_OF_LINE / 2
    return "".join(
        f'<text class="{kind}" x="{x:.1f}" y="{top + number * HEIGHT_OF_LINE:.1f}" dominant-baseline="middle" text-anchor="{anchor}">{html.escape(line)}</text>'
        for number, line in enumerate(lines))


def head_of_arrow(x, y, dx, dy):
    """Returns the head of an arrow that ends at (x, y) and points to (dx, dy), a direction of length 1."""
    corners = [(x, y), (x - 9 * dx - 4 * dy, y - 9 * dy + 4 * dx), (x - 9 * dx + 4 * dy, y - 9 * dy - 4 * dx)]
    return '<polygon points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in corners) + '"/>'


# ---- flowchart --------------------------------------------------------------------------------------------------------

NODE = re.compile(r'\s*(\w+)(?:\["([^"]*)"\])?\s*')
ARROW = re.compile(r'(?:--\s*"([^"]*)"\s*)?-->')


def read_flowchart(lines):
    """Returns the texts of the nodes, and the arrows as (from, to, text)."""
    nodes, arrows = {}, []
    for line in lines:
        at, before, text, ends = 0, None, None, []
        while at < len(line):
            node = NODE.match(line, at)
            if not node:
                raise ValueError(f"an unknown line of a flowchart: {line}")
            if node[2] is not None or node[1] not in nodes:
                nodes[node[1]] = (node[2] or node[1]).split("<br/>")
            ends.append(node[1])
            at = node.end()
            if at < len(line) and line[at] == "&":
                at += 1
                continue
            if before:
                arrows += [(a, b, text) for a in before for b in ends]
            if at == len(line):
                break
            arrow = ARROW.match(line, at)
            if not arrow:
                raise ValueError(f"an unknown line of a flowchart: {line}")
            before, text, ends, at = ends, arrow[1], [], arrow.end()
    return nodes, arrows


def flowchart(direction, lines):
    nodes, arrows = read_flowchart(lines)
    dot = [f"digraph {{ rankdir={direction}; nodesep=0.25; ranksep=0.4; node [shape=box, fixedsize=true];"]
    for name, words in nodes.items():
        width = max(len(line) for line in words) * WIDTH_OF_LETTER + 24
        dot.append(f'"{name}" [label="", width={width / 72:.3f}, height={(len(words) * HEIGHT_OF_LINE + 14) / 72:.3f}];')
    for start, end, text in arrows:
        # Blanks as wide as the text keep its place free.
        width = 0 if text is None else len(text) * WIDTH_OF_LETTER + 16
        label = "" if text is None else f', label=<<table border="0" fixedsize="true" width="{width:.0f}" height="20"><tr><td></td></tr></table>>'
        dot.append(f'"{start}" -> "{end}" [arrowhead=none{label}];')
    plain = subprocess.run(["dot", "-Tplain"], input="\n".join(dot) + "}", capture_output=True, text=True, check=True).stdout
    texts = [text for _, _, text in arrows]
    return draw_plain(plain, nodes, {(a, b): text for (a, b, text) in arrows} if any(texts) else {})


def draw_plain(plain, nodes, texts):
    """Draws what Graphviz has placed: lines with the words `graph`, `node` and `edge`, in inches from the lower left."""
    elements, width, height = [], 0, 0

    def place(x, y):
        return float(x) * 72 + 2, height - float(y) * 72 - 2

    for line in plain.splitlines():
        words = line.replace('"', "").split()
        if words[0] == "graph":
            width, height = float(words[2]) * 72 + 4, float(words[3]) * 72 + 4
        elif words[0] == "node":
            x, y = place(words[2], words[3])
            w, h = float(words[4]) * 72, float(words[5]) * 72
            elements.append(f'<rect x="{x - w / 2:.1f}" y="{y - h / 2:.1f}" width="{w:.1f}" height="{h:.1f}" rx="4"/>')
            elements.append(text_at(x, y, nodes[words[1]]))
        elif words[0] == "edge":
            count = int(words[3])
            points = [place(*words[4 + 2 * i:6 + 2 * i]) for i in range(count)]
            path = f"M{points[0][0]:.1f},{points[0][1]:.1f}C" + " ".join(f"{x:.1f},{y:.1f}" for x, y in points[1:])
            elements.append(f'<path d="{path}"/>')
            (ax, ay), (x, y) = points[-2], points[-1]
            length = ((x - ax) ** 2 + (y - ay) ** 2) ** 0.5 or 1
            elements.append(head_of_arrow(x, y, (x - ax) / length, (y - ay) / length))
            text = texts.get((words[1], words[2]))
            if text:
                elements.append(text_at(*place(*label_place(words, count)), [text]))
    return wrapped(width, height, elements, "flowchart: " + ", ".join(" ".join(words) for words in nodes.values()))


def label_place(words, count):
    """Returns the place of an edge's label, which follows the points: the label's text may be empty, so count from the end."""
    return words[-4:-2]


# ---- sequenceDiagram --------------------------------------------------------------------------------------------------

PARTICIPANT = re.compile(r"\s*participant (\w+)(?: as (.*))?$")
MESSAGE = re.compile(r"\s*(\w+)->>(\w+): (.*)$")


def folded(text, letters):
    """Returns the text as lines of at most this many letters."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > letters:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def sequence(lines):
    names, messages = {}, []
    for line in lines:
        if found := PARTICIPANT.match(line):
            names[found[1]] = found[2] or found[1]
        elif found := MESSAGE.match(line):
            messages.append(found.groups())
        else:
            raise ValueError(f"an unknown line of a sequence diagram: {line}")
    width_of_name = max(len(name) for name in names.values()) * WIDTH_OF_LETTER + 24
    gap = max(width_of_name + 30, 240 if len(names) > 2 else 480)
    place = {name: width_of_name / 2 + 2 + number * gap for number, name in enumerate(names)}
    elements, y = [], 46.0
    for start, end, text in messages:
        a, b = place[start], place[end]
        parts = folded(text, int((abs(b - a) - 16) / WIDTH_OF_LETTER))
        y += len(parts) * HEIGHT_OF_LINE + 14
        elements.append(text_at((a + b) / 2, y - len(parts) * HEIGHT_OF_LINE / 2 - 3, parts, kind="message"))
        side = 1 if b > a else -1
        elements.append(f'<path d="M{a:.1f},{y:.1f}H{b - side:.1f}"/>' + head_of_arrow(b - side, y, side, 0))
    height = y + 20
    for name, x in place.items():
        elements.insert(0, f'<path class="life" d="M{x:.1f},32V{height - 2:.1f}"/>')
        elements.append(f'<rect x="{x - width_of_name / 2:.1f}" y="2" width="{width_of_name:.1f}" height="30" rx="4"/>')
        elements.append(text_at(x, 18, [names[name]]))
    width = place[list(names)[-1]] + width_of_name / 2 + 2
    return wrapped(width, height, elements, "sequence of messages between " + ", ".join(names.values()))


# ---- xychart-beta -----------------------------------------------------------------------------------------------------

def bars(lines):
    title, names, values = "", [], []
    for line in map(str.strip, lines):
        if line.startswith("title "):
            title = line[len("title "):].strip('"')
        elif line.startswith("x-axis "):
            names = re.findall(r'"([^"]*)"', line)
        elif line.startswith("bar "):
            values = [float(word) for word in line[len("bar ["):-1].split(",")]
        elif not line.startswith("y-axis "):
            raise ValueError(f"an unknown line of a chart: {line}")
    left = max(len(name) for name in names) * WIDTH_OF_LETTER + 12
    scale, elements = 420 / max(values), [text_at(0, 12, [title], "start")]
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        y = 40 + number * 22
        elements.append(text_at(left - 8, y, [name], "end"))
        elements.append(f'<rect class="bar" x="{left:.1f}" y="{y - 8}" width="{value * scale:.1f}" height="16"/>')
        elements.append(text_at(left + value * scale + 6, y, [f"{value:.2f}"], "start"))
    width = max(left + 420 + 50, len(title) * WIDTH_OF_LETTER)
    return wrapped(width, 40 + len(names) * 22, elements, title)
