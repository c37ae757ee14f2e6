"""The slope of a soak's figures, and their picture."""
import html
import math

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 170, 56, 22
PANELS = [
    ("Resident memory of dealer-sim, MB", ["sim_rss_mb"]),
    ("Resident memory of dealer-loadgen, MB", ["lg_rss_mb"]),
    ("Descriptors: dealer-sim, dealer-loadgen", ["sim_fds", "lg_fds"]),
    ("Leads kept", ["leads_kept"]),
    ("Requests in each ten seconds", ["requests"]),
    ("Failures in each ten seconds (asked for by faults)", ["failures"]),
    ("Mean lag of the generator in each ten seconds, ms", ["lag_mean_ms"]),
    ("Highest p99 of a step since the start, ms", ["p99_ms"]),
]
COLOURS = ["#2563a8", "#c2571a"]


def slope(xs, ys):
    """The least-squares slope, and the half width of its 95 % interval (Newey and West 1987: samples that follow each other are alike,
    and the usual interval, which takes them for independent, is too narrow)."""
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    dx = [x - mean_x for x in xs]
    square = sum(d * d for d in dx)
    found = sum(d * (y - mean_y) for d, y in zip(dx, ys)) / square
    scores = [d * (y - mean_y - found * d) for d, y in zip(dx, ys)]
    # Bartlett's kernel over twice the square root of the samples: some five minutes of an hour's.
    reach = min(n - 1, math.ceil(2 * math.sqrt(n)))
    total = sum(s * s for s in scores)
    for lag in range(1, reach + 1):
        weight = 1 - lag / (reach + 1)
        total += 2 * weight * sum(a * b for a, b in zip(scores, scores[lag:]))
    return found, 1.96 * math.sqrt(max(total, 0.0)) / square


def panel(title, columns, names, rows, resets):
    xs = [row[0] for row in rows]
    lines = [[row[columns.index(name)] for row in rows] for name in names]
    top = max(max(line) for line in lines) * 1.08 or 1
    wide, high = WIDTH - LEFT - 8, HEIGHT - BOTTOM - 10

    def place(x, y):
        return f"{LEFT + wide * x / xs[-1]:.1f},{10 + high * (1 - y / top):.1f}"

    parts = [f'<figure><figcaption>{html.escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}">']
    for share in (0, 0.5, 1):
        y = 10 + high * (1 - share / 1.08)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top / 1.08 * share:.4g}</text>')
    for minute in range(0, int(xs[-1] / 60) + 1, max(1, int(xs[-1] / 60 / 6))):
        x = LEFT + wide * minute * 60 / xs[-1]
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{minute} min</text>')
    for reset in resets:
        x = LEFT + wide * reset / xs[-1]
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="{10 + high}" class="reset"/>')
    for line, colour in zip(lines, COLOURS):
        points = " ".join(place(x, y) for x, y in zip(xs, line))
        parts.append(f'<polyline points="{points}" stroke="{colour}"/>')
    return "".join([*parts, "</svg></figure>"])


def picture(columns, rows, resets, verdict):
    """A page with one picture for each figure; resets are the dotted lines."""
    style = """body{font:14px system-ui,sans-serif;margin:2rem auto;max-width:1180px;color:#222;background:#fff}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(480px,1fr));gap:1rem}figure{margin:0}figcaption{font-weight:600}
svg{width:100%}svg text{font-size:11px;fill:#555}polyline{fill:none;stroke-width:1.4}.grid{stroke:#ddd}.reset{stroke:#999;stroke-dasharray:2 3}
pre{white-space:pre-wrap;background:#f6f6f6;padding:1rem}"""
    panels = "".join(panel(title, columns, names, rows, resets) for title, names in PANELS)
    note = "<p>Dotted lines are resets, which empty the tables. The second half is judged.</p>"
    return f'<!doctype html><meta charset="utf-8"><title>Soak</title><style>{style}</style><h1>Soak</h1><pre>{html.escape(verdict)}</pre>{note}<main>{panels}</main>\n'
