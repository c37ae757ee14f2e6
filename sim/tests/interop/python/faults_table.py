"""Makes FAULTS.md of what both SDKs showed, or holds the one that is there to it.

usage: faults_table.py SHOWN FAULTS.md; with UPDATE_FAULTS=1 the file is written anew.
"""

import json
import sys
from pathlib import Path

from held import hold

HEAD = """\
# What each official SDK shows of each fault

Made by `run.sh` from a run, and held to one by it: `UPDATE_FAULTS=1 sim/tests/interop/run.sh` writes it anew. One call, with a
contextId (`ctx_of_buyer`), asked for the fault by `X-Sim-Fault`; the reply's `X-Sim-Fault-Applied` proved that it happened. Every fault was also
reached by the magic stock number `SIM:<fault>` in `inventory.vehicle`. A cell says what the caller of the SDK gets: an exception, or what differs in
the Message from the same call without the fault (paths are relative to the payload, or to the Message). *As without the fault* is a warning:
the SDK shows nothing of it, so an agent has to look for itself.
"""


def cell(text):
    # No Markdown in what a dealer said.
    for letter in "\\|<>*_`[]":
        text = text.replace(letter, "\\" + letter)
    return text


def table(python, node):
    node = {row[1]: row for row in node}
    if sorted(row[1] for row in python) != sorted(node):
        sys.exit("the two SDKs were not asked for the same faults")
    lines = [HEAD.rstrip()]
    family = None
    for of, name, route, shown in python:
        if of != family:
            family = of
            lines += ["", f"## {family}", "", "| Fault | Call | Python, a2a-sdk 1.3.0 | JavaScript, @a2a-js/sdk 1.3.0 |", "|---|---|---|---|"]
        lines.append(f"| `{name}` | {route} | {cell(shown)} | {cell(node[name][3])} |")
    return "\n".join(lines) + "\n"


def main():
    shown, path = Path(sys.argv[1]), Path(sys.argv[2])
    made = table(*(json.loads((shown / f"{name}.json").read_text()) for name in ("python", "node")))
    hold(path, made, "UPDATE_FAULTS", "faults")


main()
