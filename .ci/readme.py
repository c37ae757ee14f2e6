#!/usr/bin/env python3
"""Runs the commands of a README: each line of each ```sh block, in order, in the checkout's root.

A line that serves (its command is `dealer-sim serve`, however started) is started in the background, and the next line
runs once it has printed its first line; it is stopped at the end of its block. `PATH` has target/release in front, so
that `dealer-sim` and `dealer-loadgen` are those of the checkout. A line that fails ends the run, unless a comment at its
end says which code it exits with: `# exits with 3`.
"""
import os
import re
import signal
import subprocess
import sys


def blocks(text):
    return re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)


def serve(line, env):
    server = subprocess.Popen(["bash", "-c", f"exec {line}"], env=env, stdout=subprocess.PIPE, text=True)
    first = server.stdout.readline()
    if not first:
        sys.exit(f"did not start: {line}")
    return server


def run(block, env):
    servers = []
    try:
        for line in block.replace("\\\n", " ").splitlines():
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            print(f"$ {line}", flush=True)
            if re.match(r"(env (\w+=\S+ )+)?(\S*/)?dealer-sim serve\b|cargo run\b.*\bdealer-sim\b.*\bserve\b", line):
                servers.append(serve(line, env))
                continue
            said = re.search(r"# exits with (\d+)", line)
            code = subprocess.run(["bash", "-c", line], env=env, timeout=900).returncode
            if code != (int(said[1]) if said else 0):
                sys.exit(f"exit code {code} of: {line}")
    finally:
        for server in servers:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=20)


def main():
    found = blocks(open(sys.argv[1], encoding="utf-8").read())
    env = dict(os.environ, PATH=f"{os.getcwd()}/target/release:{os.environ['PATH']}")
    for block in found:
        run(block, env)
    print(f"{len(found)} passed, 0 failed" if found else sys.exit("no commands found"))


main()
