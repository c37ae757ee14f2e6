"""Does `compare` cry wolf, and does it see ten percent? 20 pairs of separate runs of 30 s at a fixed latency of 20 ms: at most one
alarm. 20 pairs of 20 against 22 ms: all found. Prints every pair's figures.

usage: python3 .ci/compare_pairs.py [BINARIES [PAIRS [AT_ONCE]]]
"""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BINARIES = Path(sys.argv[1] if len(sys.argv) > 1 else "target/release")
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
AT_ONCE = int(sys.argv[3]) if len(sys.argv) > 3 else 2
ROOT = Path(__file__).resolve().parent.parent


def run(work, name, millis, seed):
    """One run of 30 s against a simulator of its own."""
    plan = work / f"{name}.yaml"
    plan.write_text(f"name: fixed\nrules:\n  - id: slow\n    effect: latency(fixed, value={millis}ms)\n")
    ready = work / f"{name}.json"
    sim = subprocess.Popen(
        [BINARIES / "dealer-sim", "serve", "--listen", "127.0.0.1:0", "--admin", "off", "--faults", plan, "--ready-file", ready],
        stdout=subprocess.PIPE,
    )
    try:
        url = json.loads(sim.stdout.readline())["card"]
        flags = ["--endpoint", url, "--rate", "100/s", "--warmup", "2s", "--duration", "30s", "--seed", str(seed)]
        command = [BINARIES / "dealer-loadgen", "run", ROOT / "scenarios/smoke.yaml", *flags, "--quiet", "--out", work / name]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    finally:
        sim.terminate()
        sim.wait()


def compare(work, base, new):
    """Gives whether there was an alarm, and the figures."""
    command = [BINARIES / "dealer-loadgen", "compare", work / base, work / new, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        return None, done.stderr.strip()
    rows = json.loads(done.stdout)["rows"]
    words = [f"{row['figure']} {row['base']:.3f} {row['new']:.3f} ({row['allowance']:.3f})" for row in rows]
    alarms = [row["figure"] for row in rows if row["finding"] == "regression"]
    return done.returncode == 3, f"{', '.join(words)}; alarms: {', '.join(alarms) or 'none'}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        jobs = []
        for pair in range(PAIRS):
            for index, (name, millis) in enumerate([("base", 20), ("same", 20), ("fast", 20), ("slow", 22)]):
                jobs.append((f"{name}{pair}", millis, 42 + 4 * pair + index))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda job: run(work, *job), jobs))
        counts = {}
        for kind, base, new in [("20 against 20 ms", "base", "same"), ("20 against 22 ms", "fast", "slow")]:
            alarms = []
            for pair in range(PAIRS):
                alarm, words = compare(work, f"{base}{pair}", f"{new}{pair}")
                alarms.append(alarm)
                print(f"{kind}, pair {pair + 1}: {words}")
            refused = alarms.count(None)
            counts[kind] = (alarms.count(True), refused)
            print(f"{kind}: {alarms.count(True)} alarms of {PAIRS}, {refused} pairs not compared")
        equal, different = counts.values()
        if equal[0] > 1 or different[0] < PAIRS:
            sys.exit("compare does not hold what it says")


main()
