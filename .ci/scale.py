#!/usr/bin/env python3
"""How the cost of a request grows with the stock, the dealers, the connections, the rules of faults and the journal.

Each point is a dealer-sim of its own on core 0, called by dealer-loadgen on core 1 for a few seconds; the CPU is the dealer's own
(user and system), per request, and the memory its greatest. Each line is fitted by least squares: a + b x. Run it on an idle machine, after
`cargo build --release`; SECONDS_EACH (3) and ROUNDS (3, of which the median counts) may be set."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("BIN", ROOT / "target/release"))
SECONDS = int(os.environ.get("SECONDS_EACH", "3"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
TICK = os.sysconf("SC_CLK_TCK")

SCENARIO = """
name: {name}
flows:
  only:
    - step: call
      skill: {skill}
      request: {request}
"""
SEARCH = "{ filters: { make: [Honda, Toyota], price_max: 35000 }, sort: { field: price, order: asc }, pagination: { limit: 20 } }"
ALL = "{ sort: { field: mileage, order: asc }, pagination: { limit: 20 } }"


def cpu(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def peak(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmHWM")


def measure(folder, skill, request, serve=(), users=64, path=""):
    """CPU us a request, and MiB, of a dealer with these flags."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(SCENARIO.format(name="scale", skill=skill, request=request))
    command = ["taskset", "-c", "0", BIN / "dealer-sim", "serve", "--listen", "127.0.0.1:0", "--admin", "off", "--threads", "1", *serve]
    dealer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = json.loads(dealer.stdout.readline())["url"].removesuffix("/a2a") + path
        command = ["taskset", "-c", "1", BIN / "dealer-loadgen", "run", scenario, "--endpoint", url, "--users", str(users),
                   "--threads", "1", "--duration", f"{SECONDS}s", "--quiet", "--format", "json"]
        before = cpu(dealer.pid)
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode not in (0, 4):
            sys.exit(f"the load generator ended with {run.returncode}: {command}")
        sent = json.loads(run.stdout)["requests"]["finished"]
        return (cpu(dealer.pid) - before) / sent * 1e6, peak(dealer.pid)
    finally:
        dealer.terminate()
        dealer.wait()


def fit(points):
    """Least squares: the constant and the slope."""
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points])


def line(title, unit, points):
    print(f"\n{title}")
    print(f"{unit:>14} {'CPU us/request':>15} {'MiB':>8}")
    for x, (cost, memory) in points:
        print(f"{x:>14} {cost:>15.2f} {memory:>8.0f}")
    cost = fit([(x, c) for x, (c, _) in points])
    memory = fit([(x, m) for x, (_, m) in points])
    print(f"{'fit':>14} {cost.intercept:.2f} us + {cost.slope * 1000:.4f} ns a unit; {memory.intercept:.0f} MiB + {memory.slope * 1024 * 1024:.0f} bytes a unit")


def median(measured):
    rounds = [measured() for _ in range(ROUNDS)]
    return statistics.median(c for c, _ in rounds), statistics.median(m for _, m in rounds)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def sweep(title, unit, values, flags, skill="inventory.search", request="{ pagination: { limit: 20 } }", **more):
            def point(value):
                options = {key: option(value) if callable(option) else option for key, option in more.items()}
                return median(lambda: measure(folder, skill, request, flags(value), **options))
            line(title, unit, [(value, point(value)) for value in values])

        stocks = [500, 5_000, 50_000, 200_000, 1_000_000]
        size = lambda n: ("--vehicles", str(n))
        sweep("vehicles: first page, dealer's order", "vehicles", stocks, size)
        sweep("vehicles: two makes under a price, by price", "vehicles", stocks, size, request=SEARCH)
        sweep("vehicles: all, by mileage", "vehicles", stocks, size, request=ALL)
        sweep("vehicles: facets of all", "vehicles", stocks, size, skill="inventory.facets", request="{}")
        many = lambda n: ("--vehicles", "100", "--dealers", str(n))
        sweep("dealers of 100 vehicles each (the first one is called)", "dealers", [1, 10, 100, 1000], many)
        roomy = folder / "limits.toml"
        roomy.write_text("connections = 12000\n")
        sweep("connections, all busy", "connections", [1, 8, 64, 512, 4096], lambda _: ("--limits", str(roomy)), users=lambda n: n)

        def rules(count):
            plan = folder / "plan.yaml"
            rules = "".join(f"  - {{ id: r{n}, when: {{ conversation: never-{n} }}, effect: internal_error }}\n" for n in range(count))
            plan.write_text(f"name: scale\nrules:\n{rules}" if count else "name: scale\nrules: []\n")
            return ("--faults", str(plan))
        sweep("rules of faults that are asked and never apply", "rules", [0, 1, 10, 100, 1000], rules)
        sweep("journal, in entries kept", "entries", [0, 100, 1_000, 10_000, 100_000],
              lambda n: ("--journal", str(n), "--journal-bytes", "1GiB"))


if __name__ == "__main__":
    main()
