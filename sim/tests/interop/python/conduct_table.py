"""Makes CONDUCT.md of how the dealer judged both SDKs, or holds the one that is there to it.

usage: conduct_table.py SHOWN CONDUCT.md; with UPDATE_CONDUCT=1 the file is written anew.
"""

import json
import sys
from pathlib import Path

from held import hold

HEAD = """\
# How the official SDKs behave as buyer agents

Made by `run.sh` from a run, and held to one by it: `UPDATE_CONDUCT=1 sim/tests/interop/run.sh` writes it anew. The same small
application shops on both: card, two pages of a search, a vehicle and a lead in one conversation, and two further clients, when
the card has expired. *As it comes* it hands the SDK its payloads and the dealer's contextId and nothing else; *set up* it also
activates the card's extension for each call and lists the answer's media type. The rules are explained in
[`sim/CONDUCT.md`](../../CONDUCT.md); what is broken here is the SDK's, or needs a setting.

- **Card**: neither resolver caches. A client that is made for each customer fetches the card each time, and whole: keep the
  card, its ETag and its max-age yourself.
- **A2A-Extensions**: neither reads the required extension off the card. Activate it for each call.
- **acceptedOutputModes**: neither takes it from the skill. Give it for each call.
- What both do by themselves, and right: method and ids of JSON-RPC, the content type, A2A-Version, the 1.0 form of messages. The
  messageId, role, media type of the part and contextId are what the application gives.
"""

WORDS = {"kept": "kept", "broken": "**broken**", "not_seen": "", "unknown": "unknown"}
WAYS = [f"conduct_{sdk}_{way}" for sdk in ("python", "node") for way in ("plain", "set_up")]


def table(shown):
    first = shown[WAYS[0]]
    lines = [HEAD]
    lines.append("| Rule | Severity | Python, as it comes | Python, set up | JavaScript, as it comes | JavaScript, set up |")
    lines.append("|---|---|---|---|---|---|")
    for rule, severity in first["severity"].items():
        became = [shown[way]["status"][rule] for way in WAYS]
        if any(one != "not_seen" for one in became):
            lines.append(f"| `{rule}` | {severity} | " + " | ".join(WORDS[one] for one in became) + " |")
    silent = [rule for rule in first["severity"] if all(shown[way]["status"][rule] == "not_seen" for way in WAYS)]
    lines += ["", "Nothing in this conversation called for: " + ", ".join(f"`{rule}`" for rule in silent) + "."]
    return "\n".join(lines) + "\n"


def main():
    folder, path = Path(sys.argv[1]), Path(sys.argv[2])
    made = table({way: json.loads((folder / f"{way}.json").read_text()) for way in WAYS})
    hold(path, made, "UPDATE_CONDUCT", "conduct")


main()
