"""How what an SDK shows is put into words: the same in both languages, so that the columns of the table compare."""

import json
import re

# What differs from run to run: identifiers, ports, JSON-RPC ids, the rest of an hour's wait.
PASSING = [
    (re.compile(r"\b(?:[a-z]+_)?[0-9A-HJKMNP-TV-Z]{26}\b|\b(?:[a-z]+_)?[0-9a-f]{32}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"\b(Expected|got) \d+"), r"\1 <n>"),
    (re.compile(r"\b3[56]\d{5} ms"), "<n> ms"),
]
# Words of the language and not of the SDK: they change with its version.
OF_THE_PLATFORM = re.compile(r"(JSON Decode Error|is not valid JSON).*", re.S)
SPEAK_FOR_THEMSELVES = ("RecursionError", "UnicodeDecodeError")
LONGEST = 120


def said(kind, message):
    """An exception, by its class and the beginning of its message."""
    if kind in SPEAK_FOR_THEMSELVES:
        return kind
    return f"{kind}: " + tidy(OF_THE_PLATFORM.sub(r"\1", str(message)))


def lasting(text):
    for pattern, stand_in in PASSING:
        text = pattern.sub(stand_in, text)
    return text


def tidy(text):
    """A text of one line without what differs from run to run, shortened."""
    text = " ".join(lasting(text).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def flat(value, path=""):
    """A document as {path: value}; an empty list or object is a value."""
    if isinstance(value, dict) and value:
        return {k: v for name, member in value.items() for k, v in flat(member, f"{path}/{name}").items()}
    if isinstance(value, list) and value:
        return {k: v for index, item in enumerate(value) for k, v in flat(item, f"{path}/{index}").items()}
    # The Python SDK reads every number as a double.
    return {path: int(value) if isinstance(value, float) and value.is_integer() else value}


def difference(plain, shown, ids=False):
    """What a fault changed in what is shown: at most three members, and how many more. With `ids` new identifiers count."""
    if isinstance(shown, str):
        return shown
    changed = []
    for path in sorted({*plain, *shown}, key=lambda path: (path.count("/"), path)):
        short = path.removeprefix("/parts/0/data/data").removeprefix("/")
        before, after = (word(of[path], ids and path != "/messageId") if path in of else None for of in (plain, shown))
        if after is None:
            changed.append(f"{short} is gone")
        elif before is None:
            changed.append(f"{short} is new: {word(shown[path])}")
        elif before != after:
            changed.append(f"{short} is {word(shown[path])} instead of {word(plain[path])}")
    more = f" (and {len(changed) - 3} more)" if len(changed) > 3 else ""
    return "; ".join(changed[:3]) + more if changed else "as without the fault"


def word(value, whole=False):
    text = json.dumps(value, ensure_ascii=False)
    if whole:
        return text
    text = tidy(text)
    return text if len(text) <= 60 else text[:60] + "…"
