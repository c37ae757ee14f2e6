"""Holds a page that was made of a run to the one that is there."""

import os
import sys


def hold(path, made, variable, what):
    """With the variable set the page is written anew; else a page that differs ends the run, with the lines that do."""
    if os.environ.get(variable):
        path.write_text(made)
    there = path.read_text() if path.exists() else ""
    if there != made:
        for old, new in zip(there.splitlines(), made.splitlines()):
            if old != new:
                print(f"- {old}\n+ {new}")
        sys.exit(f"{path} is not what this run showed; {variable}=1 writes it anew")
    print(f"{what}: {made.count('| `')} rows agree with {path.name}")
