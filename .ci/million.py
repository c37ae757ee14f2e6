#!/usr/bin/env python3
"""A million vehicles: the time until `serve` is ready, and the memory it then holds. Fails above 10 s or 700 MB."""
import json
import os
import signal
import subprocess
import sys
import time

begun = time.monotonic()
server = subprocess.Popen(
    ["target/release/dealer-sim", "serve", "--listen", "127.0.0.1:0", "--admin", "off", "--vehicles", "1000000"],
    stdout=subprocess.PIPE, text=True)
first = json.loads(server.stdout.readline())
ready = time.monotonic() - begun
status = open(f"/proc/{server.pid}/status", encoding="utf-8").read()
memory = {key: int(value.split()[0]) / 1000 for key, value in
          (line.split(":", 1) for line in status.splitlines() if line.startswith(("VmRSS", "VmHWM")))}
server.send_signal(signal.SIGTERM)
server.wait(timeout=20)
print(f"{first['vehicles']} vehicles: ready in {ready:.2f} s, resident {memory['VmRSS']:.0f} MB, peak {memory['VmHWM']:.0f} MB")
sys.exit(ready > 10 or memory["VmHWM"] > 700)
