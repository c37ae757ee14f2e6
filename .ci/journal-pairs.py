#!/usr/bin/env python3
"""What the journal costs end to end: the simulator's CPU time a request, with the journal and with `--journal 0`, in eleven
pairs of runs in turn, and the 95 % interval of the paired difference. A shared machine's drift falls on both of a pair."""
import json
import os
import signal
import statistics
import subprocess
import sys

PAIRS = 11
# Student's t, two-sided 95 %, PAIRS - 1 degrees of freedom.
T = 2.228
BIN = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release")


def cpu_us_a_request(flags):
    server = subprocess.Popen(
        [f"{BIN}/dealer-sim", "serve", "--listen", "127.0.0.1:0", "--admin", "off", *flags],
        stdout=subprocess.PIPE, text=True)
    url = json.loads(server.stdout.readline())["url"].removesuffix("/a2a")

    def ticks():
        fields = open(f"/proc/{server.pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    subprocess.run(
        [f"{BIN}/dealer-loadgen", "run", "scenarios/smoke.yaml", "--endpoint", url, "--users", "16", "--duration", "5s",
         "--warmup", "1s", "--think", "0x", "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
    server.send_signal(signal.SIGTERM)
    stopped = json.loads(server.communicate(timeout=20)[0].splitlines()[-1])
    return used * 1e6 / stopped["requests"], stopped["requests"]


differences, without, with_it = [], [], []
for pair in range(PAIRS):
    found = {}
    for name in (("off", "on") if pair % 2 else ("on", "off")):
        found[name] = cpu_us_a_request(["--journal", "0"] if name == "off" else [])
    print(f"pair {pair + 1}: without {found['off'][0]:.2f} us ({found['off'][1]} requests), "
          f"with {found['on'][0]:.2f} us ({found['on'][1]})", flush=True)
    without.append(found["off"][0])
    with_it.append(found["on"][0])
    differences.append(found["on"][0] - found["off"][0])
mean = statistics.mean(differences)
half = T * statistics.stdev(differences) / PAIRS ** 0.5
base = statistics.mean(without)
print(f"CPU of the simulator a request: without {base:.2f} us, with {statistics.mean(with_it):.2f} us; "
      f"difference {mean:+.2f} us, 95 % interval {mean - half:+.2f} to {mean + half:+.2f} ({100 * mean / base:+.1f} %)")
sys.exit(0)
