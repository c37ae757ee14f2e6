#!/usr/bin/env python3
"""Lists what is linked into the two programs: a CycloneDX 1.5 document with the versions, licences and checksums of Cargo.lock.

usage: python3 .ci/sbom.py OUT
"""
import json
import subprocess
import sys
import tomllib
from pathlib import Path

metadata = json.loads(subprocess.run(
    ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"], capture_output=True, check=True).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
lock = tomllib.loads(Path("Cargo.lock").read_text(encoding="utf-8"))
checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def linked(roots):
    """The packages that are linked into these, themselves among them: no build scripts' and no tests'."""
    found, waiting = set(), list(roots)
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        for dependency in nodes[one]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return found


def component(package):
    name, version = package["name"], package["version"]
    entry = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}",
             "licenses": [{"expression": (package["license"] or "unknown").replace("/", " OR ")}]}
    if checksum := checksums.get((name, version)):
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return entry


roots = [package["id"] for package in packages.values() if package["name"] in ("dealer-sim", "dealer-loadgen")]
components = sorted((component(packages[one]) for one in linked(roots)), key=lambda entry: (entry["name"], entry["version"]))
out = Path(sys.argv[1])
out.parent.mkdir(parents=True, exist_ok=True)
out.write_text(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}, indent=1) + "\n", encoding="utf-8")
print(f"{out}: {len(components)} packages are linked into the two programs, of {len(packages)} in the tree")
