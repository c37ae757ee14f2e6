#!/bin/sh
# Runs the interoperability tests against a built simulator; see README.md beside this file.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
python=${PYTHON:-python3}

sim=${DEALER_SIM:-}
for built in "$root/target/release/dealer-sim" "$root/target/debug/dealer-sim"; do
    if [ -z "$sim" ] && [ -x "$built" ]; then sim=$built; fi
done
if [ ! -x "$sim" ]; then
    echo "no simulator at '$sim': build it (cargo build --release --bin dealer-sim), or set DEALER_SIM to its path" >&2
    exit 2
fi
for tool in "$python" node npm openssl curl; do
    command -v "$tool" >/dev/null || { echo "$tool is needed for these tests and was not found" >&2; exit 2; }
done

work=$(mktemp -d)
pids=""
finish() {
    status=$?
    trap - EXIT INT TERM
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    for pid in $pids; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# serve NAME FLAGS...: starts a server on free ports; its first line lands in $work/servers/NAME.json.
serve() {
    name=$1
    shift
    "$sim" serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 --ready-file "$work/servers/$name.json" "$@" \
        >/dev/null 2>"$work/$name.log" &
    pid=$!
    pids="$pids $pid"
    tries=0
    # The file is whole once its line has ended.
    until [ "$(wc -l 2>/dev/null <"$work/servers/$name.json" || echo 0)" -ge 1 ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ] || ! kill -0 "$pid" 2>/dev/null; then
            echo "server '$name' did not start:" >&2
            cat "$work/$name.log" >&2
            exit 2
        fi
        sleep 0.1
    done
}

mkdir "$work/servers"
serve pinned --contract 3.0
serve strict --contract 3.0 --headers strict
serve contract2 --contract 2.0
serve limited --rate-limit 1/m,key=client
serve search_only --skills inventory.search,inventory.vehicle
# The documents' own dates are then a minute old, or two days ahead, for ever.
serve seed2 --contract 2.0 --clock 2026-04-30T10:17:00Z
serve seed3 --contract 3.0 --clock 2026-04-30T10:17:00Z
# An authority, and what it signs: the dealer's certificate, and a buyer's; and a stranger's, which it does not sign.
pki="$work/pki"
mkdir "$pki"
new_key="openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
$new_key -x509 -subj "/CN=interop authority" -addext "keyUsage=critical,keyCertSign" -days 2 -keyout "$pki/ca.key" -out "$pki/ca.pem" 2>/dev/null
for name in dealer buyer; do
    $new_key -subj "/CN=$name" -keyout "$pki/$name.key" -out "$pki/$name.csr" 2>/dev/null
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n' >"$pki/ext"
    openssl x509 -req -in "$pki/$name.csr" -CA "$pki/ca.pem" -CAkey "$pki/ca.key" -CAcreateserial -days 2 -extfile "$pki/ext" -out "$pki/$name.pem" 2>/dev/null
done
$new_key -x509 -subj "/CN=stranger" -days 2 -keyout "$pki/stranger.key" -out "$pki/stranger.pem" 2>/dev/null
serve secure --tls-cert "$pki/dealer.pem" --tls-key "$pki/dealer.key"
serve mutual --tls-cert "$pki/dealer.pem" --tls-key "$pki/dealer.key" --client-ca "$pki/ca.pem" --auth mtls
SIM_TOKEN=interop-token serve asking --auth bearer:SIM_TOKEN
# Each SDK meets a dealer that nobody has met, so that both see the same.
serve faults_python --contract 3.0 --clock 2026-04-30T10:17:00Z
serve faults_node --contract 3.0 --clock 2026-04-30T10:17:00Z
# The tester of OpenAPI documents asks thousands of things; with a fault, it has to find it.
serve pap --journal 0
echo "rules: [{ id: spoilt, effect: price_as_text }]" >"$work/spoilt.yaml"
serve pap_spoilt --journal 0 --faults "$work/spoilt.yaml"
# Nobody waits for five minutes to see what becomes of an expired card.
echo "card_max_age_s = 1" >"$work/limits.toml"
for way in python_plain python_set_up node_plain node_set_up; do
    serve "conduct_$way" --limits "$work/limits.toml" --journal-reply-bytes 64KiB
done

# Node looks for packages beside the test files, so they go where the packages do.
cp "$here/package.json" "$here"/node/*.js "$work/"
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
(cd "$work" && npm install --silent --no-package-lock --no-audit --no-fund)

mkdir "$work/shown"
export INTEROP_SERVERS="$work/servers" INTEROP_CASES="$here/cases.json" INTEROP_SHOWN="$work/shown" INTEROP_PKI="$pki" PYTHONDONTWRITEBYTECODE=1
failed=0
"$work/venv/bin/python" -m pytest -q -p no:cacheprovider "$here/python" || failed=1
# One file at a time: a test that counts leads must be the only one that makes them.
(cd "$work" && NODE_EXTRA_CA_CERTS="$pki/ca.pem" node --test --test-concurrency=1 --test-reporter=./reporter.js ./*.test.js) || failed=1
if [ "$failed" = 0 ]; then
    "$work/venv/bin/python" "$here/python/faults_table.py" "$work/shown" "$here/FAULTS.md" || failed=1
    "$work/venv/bin/python" "$here/python/conduct_table.py" "$work/shown" "$here/CONDUCT.md" || failed=1
fi
for pid in $pids; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" || { echo "server $pid ended with $?, and a clean stop is 0" >&2; failed=1; }
done
pids=""
exit "$failed"
