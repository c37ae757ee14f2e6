#!/usr/bin/env bash
# Compares ours with the peers that this machine has: CPU per request of the one process, rate, memory, as ratios measured in turn.
#
#   cargo build --release --workspace --examples --bins
#   benches/compare.sh [clients|open|skills|servers|held]...   all five without a word
#
# clients   who calls, 64 connections, each at full speed: wrk, oha, dealer-loadgen; the server is examples/constant
# open      who calls, 5,000 requests a second: oha -q 5000, dealer-loadgen --rate 5000/s with two lengths of --slot
# skills    what dealer-sim adds to hyper: examples/bare, and three skills of dealer-sim with its journal, called by wrk
# servers   who answers, called by wrk over 64 connections: nginx, WireMock, Mockoon, dealer-sim
# held      10,000 agents with a connection of their own, each asking once a second: what the simulator takes for it
#
# The server runs on core 0 and the client on core 1, in rounds: one of each, and again. The median counts. Set by variables:
# ROUNDS (5), SECONDS_EACH (4), BIN (target/release), OHA, WIREMOCK_JAR, MOCKOON (the commands or files, if not found by name), and
# WARM_UP (40), the seconds for which WireMock is called before it counts.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5} each=${SECONDS_EACH:-4} bin=${BIN:-${CARGO_TARGET_DIR:-target}/release}
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
missing=()

find_peer() { # find_peer NAME COMMAND...: the first command that there is, else the name is listed as missing
    local name=$1 candidate
    shift
    for candidate in "$@"; do
        [ -n "$candidate" ] && command -v "$candidate" && return
    done
    return 1
}
wrk=$(find_peer wrk wrk) || missing+=(wrk)
oha=$(find_peer oha "${OHA:-}" oha) || missing+=(oha)
nginx=$(find_peer nginx nginx /usr/sbin/nginx) || missing+=(nginx)
java=$(find_peer java java) && [ -f "${WIREMOCK_JAR:-}" ] || missing+=("WireMock (java, and WIREMOCK_JAR)")
mockoon=$(find_peer mockoon "${MOCKOON:-}" mockoon-cli) || missing+=("Mockoon (mockoon-cli)")
for need in "$bin/dealer-sim" "$bin/dealer-loadgen" "$bin/examples/constant" "$bin/examples/bare" /usr/bin/time; do
    [ -x "$need" ] || { echo "$need is not there: see the head of this file"; exit 1; }
done

payload='{"jsonrpc":"2.0","id":"req-1","method":"SendMessage","params":{"message":{"messageId":"3f2c0b0e-6a57-4d3e-9a8e-8f4f3a0c2f11","role":"ROLE_USER","parts":[{"data":{"type":"inventory.search.request","filters":{"condition":["used","cpo"],"price_max":30000},"sort":{"field":"price","order":"asc"},"pagination":{"limit":20}},"mediaType":"application/vnd.autoagent.inventory-search-request+json"}]},"configuration":{"acceptedOutputModes":["application/vnd.autoagent.inventory-search-response+json"]}}}'
headers=("Content-Type: application/json" "A2A-Version: 1.0" "A2A-Extensions: https://autoagentprotocol.org/extensions/aap/v3.0")
{
    echo "wrk.method = 'POST'"
    echo "wrk.body = [==[$payload]==]"
    for header in "${headers[@]}"; do echo "wrk.headers['${header%%: *}'] = '${header#*: }'"; done
} >"$work/post.lua"

# measured NAME COUNT_COMMAND COMMAND...: runs the client on core 1; notes its CPU us per request, requests per second and MiB.
measured() {
    local name=$1 count=$2
    shift 2
    /usr/bin/time -q -f '%U %S %M' -o "$work/time" taskset -c 1 "$@" >"$work/out" 2>"$work/err" || true
    local requests
    requests=$(eval "$count")
    [ "${requests:-0}" -gt 0 ] || { echo "$name sent nothing:"; tail -3 "$work/out" "$work/err"; exit 1; }
    awk -v n="$requests" -v s="$each" '{ printf "%.3f %.0f %.0f\n", ($1 + $2) * 1e6 / n, n / s, $3 / 1024 }' "$work/time" >>"$work/of-$name"
}
of_wrk() { awk '/requests in/ { print $1 }' "$work/out"; }
of_oha() { grep -o '"[0-9]*": *[0-9]*' <<<"$(sed -n '/statusCodeDistribution/,/}/p' "$work/out")" | awk -F: '{ n += $2 } END { print n }'; }
of_ours() { # every request must have been classified, and as ok
    tr -d ' \n' <"$work/out" | grep -o '"outcomes":{"ok":[0-9]*}' | head -1 | grep -o '[0-9]*}' | tr -d '}'
}

# table TITLE FIRST NAME...: the medians, and their ratio to the first one's.
table() {
    local title=$1
    shift
    printf '\n%s\n%-26s %12s %8s %12s %8s\n' "$title" "" "CPU us/req" "ratio" "requests/s" "MiB"
    local first="" name middle
    for name in "$@"; do
        [ -f "$work/of-$name" ] || continue
        middle=$(sort -n "$work/of-$name" | sed -n "$(((rounds + 1) / 2))p")
        first=${first:-${middle%% *}}
        awk -v name="$name" -v first="$first" '{ printf "%-26s %12.2f %8.2f %12d %8d\n", name, $1, $1 / first, $2, $3 }' <<<"$middle"
    done
}

start() { # start URL COMMAND...: a server on core 0, once it answers; its id is $server
    local url=$1
    shift
    taskset -c 0 "$@" >"$work/server" 2>&1 &
    server=$!
    pids+=("$server")
    for _ in $(seq 150); do
        curl -s -o /dev/null --max-time 1 "$url" -d x && return
        sleep 0.2
    done
    echo "no server at $url:"
    tail -3 "$work/server"
    exit 1
}
stop() {
    kill "$1" && wait "$1" 2>/dev/null || true
}
closed_wrk() { # closed_wrk NAME URL
    measured "$1" of_wrk "$wrk" -t1 -c64 -d"${each}s" -s "$work/post.lua" "$2"
}
closed_ours() { # closed_ours NAME SCENARIO ENDPOINT...
    local name=$1 scenario=$2
    shift 2
    measured "$name" of_ours "$bin/dealer-loadgen" run "scenarios/$scenario.yaml" "$@" --threads 1 --duration "${each}s" --quiet --format json
}
closed_oha() { # closed_oha NAME URL FLAGS...
    local name=$1 url=$2
    shift 2
    measured "$name" of_oha "$oha" --no-tui --output-format json -c 64 -z "${each}s" -m POST -d "$payload" \
        -H "${headers[0]}" -H "${headers[1]}" -H "${headers[2]}" "$@" "$url"
}

clients() {
    start "http://127.0.0.1:18871/a2a" "$bin/examples/constant" 127.0.0.1:18871
    local constant=$server
    start "http://127.0.0.1:18872/a2a" "$bin/dealer-sim" serve --listen 127.0.0.1:18872 --admin off --threads 1
    local url=http://127.0.0.1:18871/a2a
    for _ in $(seq "$rounds"); do
        [ -z "$wrk" ] || closed_wrk wrk $url
        [ -z "$oha" ] || closed_oha oha $url
        closed_ours dealer-loadgen smoke --endpoint-raw $url --contract 3.0 --users 64
        closed_ours dealer-loadgen-shopping shopping --endpoint http://127.0.0.1:18872 --users 64 --think 0x
    done
    stop "$constant"
    stop "$server"
    table "Callers, 64 connections (shopping: against dealer-sim, replies of some 4 KB on the mean)" wrk oha dealer-loadgen dealer-loadgen-shopping
}

open() {
    start "http://127.0.0.1:18871/a2a" "$bin/examples/constant" 127.0.0.1:18871
    local url=http://127.0.0.1:18871/a2a lag
    : >"$work/lags"
    for _ in $(seq "$rounds"); do
        [ -z "$oha" ] || closed_oha oha-q-5000 $url -q 5000
        for slot in 500us 100us; do # the last one's lag is told
            measured "dealer-loadgen-$slot" of_ours "$bin/dealer-loadgen" run scenarios/smoke.yaml --endpoint-raw $url --contract 3.0 \
                --rate 5000/s --slot $slot --connections 64 --duration "${each}s" --quiet --format json
        done
        tr -d ' \n' <"$work/out" | grep -o '"lag":{[^}]*}' | head -1 | sed 's/.*"p50_ms":\([0-9.]*\).*"p99_ms":\([0-9.]*\).*/\1 \2/' >>"$work/lags"
    done
    stop "$server"
    table "Callers, 5,000 requests a second (dealer-loadgen by its --slot)" oha-q-5000 dealer-loadgen-100us dealer-loadgen-500us
    lag=$(sort -n "$work/lags" | sed -n "$(((rounds + 1) / 2))p")
    echo "dealer-loadgen was late by (ms, p50 and p99, with the usual slot of 100us): $lag"
}

# served NAME URL [SCRIPT]: wrk calls the server that runs, whose own CPU and memory are noted.
served() {
    local before after requests script=${3:-post}
    before=$(awk '{ print $14 + $15 }' "/proc/$server/stat")
    taskset -c 1 "$wrk" -t1 -c64 -d"${each}s" -s "$work/$script.lua" "$2" >"$work/out"
    after=$(awk '{ print $14 + $15 }' "/proc/$server/stat")
    requests=$(of_wrk)
    awk -v ticks="$((after - before))" -v hz="$(getconf CLK_TCK)" -v n="$requests" -v s="$each" '/VmHWM/ {
        printf "%.3f %.0f %.0f\n", ticks / hz * 1e6 / n, n / s, $2 / 1024 }' "/proc/$server/status" >>"$work/of-$1"
}

# script NAME STEM PAYLOAD: a script of wrk that calls a skill; @N@ in the payload is another number for each request
script() {
    {
        head -1 "$work/post.lua"
        grep '^wrk.headers' "$work/post.lua"
        echo "local n, front, back = 0, [==[{\"jsonrpc\":\"2.0\",\"id\":\"req-1\",\"method\":\"SendMessage\",\"params\":{\"message\":{\"messageId\":\"3f2c0b0e-6a57-4d3e-9a8e-8f4f3a0c2f11\",\"contextId\":\"ctx-1\",\"role\":\"ROLE_USER\",\"parts\":[{\"data\":]==], [==[,\"mediaType\":\"application/vnd.autoagent.$2-request+json\"}]},\"configuration\":{\"acceptedOutputModes\":[\"application/vnd.autoagent.$2-response+json\"]}}}]==]"
        if [ "${3#*@N@}" = "$3" ]; then
            echo "wrk.body = front .. [==[$3]==] .. back"
        else
            echo "function request() n = n + 1; return wrk.format(nil, nil, nil, front .. ([==[$3]==]):gsub('@N@', n) .. back) end"
        fi
    } >"$work/$1.lua"
}

skills() {
    [ -n "$wrk" ] || { echo "who answers is called by wrk, which is not here"; return; }
    local sim=http://127.0.0.1:18872/a2a bare=http://127.0.0.1:18876/ vin granted
    start $bare "$bin/examples/bare" 127.0.0.1:18876
    local hyper=$server
    start $sim "$bin/dealer-sim" serve --listen 127.0.0.1:18872 --admin 127.0.0.1:18877 --threads 1
    vin=$(curl -s http://127.0.0.1:18877/fixtures | grep -o '"available_vin":"[^"]*"' | cut -d'"' -f4)
    granted=$(date -u -d '1 hour ago' +%Y-%m-%dT%H:%M:%SZ)
    script vehicle vehicle-detail "{\"type\":\"inventory.vehicle.request\",\"vin\":\"$vin\"}"
    script search inventory-search '{"type":"inventory.search.request","filters":{"condition":["used","cpo","new"],"year_min":2015,"price_max":90000},"sort":{"field":"price","order":"asc"},"pagination":{"limit":20}}'
    script lead lead-submit "{\"type\":\"lead.submit.request\",\"customer\":{\"first_name\":\"Ada\",\"last_name\":\"Lee\",\"email\":\"ada.@N@@example.com\"},\"consent\":{\"granted_at\":\"${granted}\",\"allowed_channels\":[\"email\"],\"consent_text\":\"I agree to be contacted.\",\"scope\":[\"lead_submission\"]},\"source_agent\":{\"name\":\"wrk\"},\"idempotency_key\":\"key-@N@\"}"
    for _ in $(seq "$rounds"); do
        server=$hyper
        served hyper-constant $bare
        server=${pids[-1]}
        for skill in vehicle search lead; do served "dealer-sim-$skill" $sim $skill; done
    done
    stop "$hyper"
    stop "${pids[-1]}"
    table "Servers: what dealer-sim adds to hyper, called by wrk over 64 connections" hyper-constant dealer-sim-vehicle dealer-sim-search dealer-sim-lead
}

servers() {
    [ -n "$wrk" ] || { echo "who answers is called by wrk, which is not here"; return; }
    # What a peer answers: the bytes that dealer-sim would.
    local sim=http://127.0.0.1:18872/a2a args=()
    start $sim "$bin/dealer-sim" serve --listen 127.0.0.1:18872 --admin off --threads 1
    for header in "${headers[@]}"; do args+=(-H "$header"); done
    curl -s "${args[@]}" -d "$payload" $sim >"$work/reply.json"
    stop "$server"
    echo "the reply has $(wc -c <"$work/reply.json") bytes"
    mkdir -p "$work/nginx" "$work/wiremock/mappings" "$work/wiremock/__files"
    cp "$work/reply.json" "$work/wiremock/__files/"
    cat >"$work/nginx/conf" <<NGINX
daemon off; master_process off; worker_processes 1; pid $work/nginx/pid; error_log $work/nginx/error;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path $work/nginx; keepalive_requests 1000000000; open_file_cache max=10; root $work/wiremock/__files;
  server { listen 127.0.0.1:18873; error_page 405 =200 /reply.json; location / { try_files /reply.json =404; default_type application/json; } } }
NGINX
    cat >"$work/wiremock/mappings/a2a.json" <<'JSON'
{"request":{"method":"POST","url":"/a2a"},"response":{"status":200,"bodyFileName":"reply.json","headers":{"Content-Type":"application/json"}}}
JSON
    cat >"$work/mockoon.json" <<JSON
{"uuid":"e","lastMigration":33,"name":"a2a","port":18875,"hostname":"127.0.0.1","endpointPrefix":"","latency":0,"folders":[],"data":[],"callbacks":[],
 "rootChildren":[{"type":"route","uuid":"r"}],"proxyMode":false,"proxyHost":"","proxyRemovePrefix":false,"cors":false,"headers":[],"proxyReqHeaders":[],
 "proxyResHeaders":[],"tlsOptions":{"enabled":false},"routes":[{"uuid":"r","type":"http","documentation":"","method":"post","endpoint":"a2a",
 "responseMode":null,"streamingMode":null,"streamingInterval":0,"responses":[{"uuid":"s","body":"","latency":0,"statusCode":200,"label":"","headers":
 [{"key":"Content-Type","value":"application/json"}],"bodyType":"FILE","filePath":"$work/reply.json","databucketID":"","sendFileAsBody":true,"rules":[],
 "rulesOperator":"OR","disableTemplating":true,"fallbackTo404":false,"default":true,"crudKey":"id","callbacks":[]}]}]}
JSON
    # All of them run from the first round to the last, idle but for their turns: a JIT needs a while to be what it is.
    local names=(dealer-sim) ports=(18872) ids=() index
    start $sim "$bin/dealer-sim" serve --listen 127.0.0.1:18872 --admin off --threads 1
    ids+=("$server")
    if [ -n "$nginx" ]; then
        start http://127.0.0.1:18873/a2a "$nginx" -p "$work/nginx" -c "$work/nginx/conf"
        names+=(nginx) ports+=(18873) ids+=("$server")
    fi
    if [ -n "$java" ] && [ -f "${WIREMOCK_JAR:-}" ]; then
        start http://127.0.0.1:18874/a2a "$java" -jar "$WIREMOCK_JAR" --port 18874 --root-dir "$work/wiremock" --max-request-journal-entries 10000
        names+=(wiremock) ports+=(18874) ids+=("$server")
        taskset -c 1 "$wrk" -t1 -c64 "-d${WARM_UP:-40}s" -s "$work/post.lua" http://127.0.0.1:18874/a2a >/dev/null
    fi
    if [ -n "$mockoon" ]; then
        start http://127.0.0.1:18875/a2a "$mockoon" start --data "$work/mockoon.json" --disable-log-to-file
        names+=(mockoon) ports+=(18875) ids+=("$server")
    fi
    for _ in $(seq "$rounds"); do
        for index in "${!names[@]}"; do
            server=${ids[$index]}
            served "${names[$index]}" "http://127.0.0.1:${ports[$index]}/a2a"
        done
    done
    for server in "${ids[@]}"; do stop "$server"; done
    table "Servers, called by wrk over 64 connections (dealer-sim searches, with its journal; the others say a fixed text)" dealer-sim nginx wiremock mockoon
}

held() { # one round: it is not compared with anybody
    echo "connections = 12000" >"$work/limits.toml"
    start http://127.0.0.1:18872/a2a "$bin/dealer-sim" serve --listen 127.0.0.1:18872 --admin off --threads 1 --limits "$work/limits.toml"
    taskset -c 1 "$bin/dealer-loadgen" run benches/held.yaml --endpoint http://127.0.0.1:18872 --users 10000 --max-in-flight 20000 --connections 10000 \
        --reuse session --threads 1 --warmup 10s --duration 20s --quiet --format json >"$work/out" &
    local caller=$! open
    sleep 20
    open=$(awk '$4 == "01" && $2 ~ /:49B8$/' /proc/net/tcp | wc -l) # established, at port 18872
    wait "$caller" || true
    printf '\n10,000 agents: %s connections open at dealer-sim, %s requests/s, service p99 %s ms, at most %s MiB\n' "$open" \
        "$(tr -d ' \n' <"$work/out" | grep -o '"requests_per_s":[0-9.]*' | cut -d: -f2)" \
        "$(tr -d ' \n' <"$work/out" | grep -o '"service":{[^}]*}' | head -1 | grep -o '"p99_ms":[0-9.]*' | cut -d: -f2)" \
        "$(awk '/VmHWM/ { printf "%d", $2 / 1024 }' "/proc/$server/status")"
    tr -d ' \n' <"$work/out" | grep -o '"outcomes":{[^}]*}' | head -1
    stop "$server"
}

[ ${#missing[@]} -eq 0 ] || printf 'not found here, so not compared: %s\n' "${missing[@]}"
for part in "${@:-clients open skills servers held}"; do
    for one in $part; do
        case $one in clients | open | skills | servers | held) "$one" ;; *) echo "no such part: $one"; exit 1 ;; esac
    done
done
