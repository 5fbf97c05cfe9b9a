"""Medians, spreads, ratios within rounds, and the tables made of them."""

from __future__ import annotations

import math
import statistics

import numpy as np


def summarise(row, baseline=None):
    """Medians, spreads, and each peer's ratio to the best of `baseline`, round by round."""
    good = {}
    for peer, e in row["peers"].items():
        if e.get("status") == "failed" or not e["samples"]:
            e.setdefault("reason", "no sample")
            e.update(status="failed", verified=False, samples=[])
            continue
        s = e["samples"]
        q1, median, q3 = (float(q) for q in np.percentile(s, [25, 50, 75]))
        e.update(
            status="ok",
            verified=True,
            median_s=median,
            min_s=min(s),
            spread=(q3 - q1) / median,
            gflops=row["flops"] / median / 1e9,
            gbytes_s=row["bytes"] / median / 1e9,
        )
        good[peer] = e
    for old in (row, *row["peers"].values()):
        old.pop("best", None)
        old.pop("ratio", None)
    # Libraries (BLAS, np.sort) are shown but are not "best peer".
    own = [p for p in good if (baseline is None or p in baseline) and not good[p]["library"]]
    if own:
        row["best"] = min(own, key=lambda p: good[p]["median_s"])
        for p, e in good.items():
            e["ratio"] = ratio(row, p, row["best"])
    return row


def ratio(row, a, b):
    a, b = (row["peers"][p]["samples"] for p in (a, b))
    return statistics.median(x / y for x, y in zip(a, b, strict=False))


def scores(rows, peers, baseline=None):
    """Each peer against the best of the others: geometric mean of speed-ups, worst kernel."""
    lines = [
        "| peer | kernels | failed | geomean × best other | worst | where | wins |",
        "|---|--:|--:|--:|--:|---|--:|",
    ]
    for p in peers:
        gains, failed = {}, 0
        for row in rows:
            e = row["peers"].get(p)
            if e is None or e["library"]:
                continue
            if e["status"] != "ok":
                failed += 1
                continue
            rivals = [
                q
                for q, x in row["peers"].items()
                if q != p
                and x["status"] == "ok"
                and not x["library"]
                and (baseline is None or q in baseline)
            ]
            if rivals:
                best = min(rivals, key=lambda q: row["peers"][q]["median_s"])
                gains[f"{row['kernel']} {row['size']}"] = ratio(row, best, p)
        if gains:
            worst = min(gains, key=gains.get)
            mean = math.exp(sum(map(math.log, gains.values())) / len(gains))
            lines.append(
                f"| {p} | {len(gains)} | {failed} | {mean:.2f} | {gains[worst]:.2f} | {worst} "
                f"| {sum(g > 1 for g in gains.values())} |"
            )
    return "\n".join(lines)


def report(result, baseline=None):
    peers = [p for p, about in result["peers"].items() if "error" not in about]
    rows = [summarise(row, baseline) for row in result["rows"]]
    parts = [table(rows)]
    for size in dict.fromkeys(row["size"] for row in rows):
        some = [row for row in rows if row["size"] == size]
        parts += [
            f"{size}: ratio to the best peer" + (f" of {', '.join(baseline)}" if baseline else ""),
            matrix(some, peers),
            scores(some, peers, baseline),
        ]
    return "\n\n".join(parts)


def table(rows):
    heads = "kernel size peer median_ms spread verified ×best GFLOP/s GB/s first_call_s".split()
    lines = [
        "| " + " | ".join(head.replace("_", " ") for head in heads) + " |",
        "|---|---|---|--:|--:|---|--:|--:|--:|--:|",
    ]
    for row in rows:
        peers = sorted(row["peers"].items(), key=lambda kv: kv[1].get("median_s", math.inf))
        for peer, e in peers:
            head = (
                f"| {row['kernel']} | {row['size']} | {peer}{' (library)' if e['library'] else ''} "
            )
            if e["status"] == "ok":
                times = f"| {e['median_s'] * 1e3:.4g} | {e['spread']:.0%} | yes "
                rates = (
                    f"| {e.get('ratio', math.nan):.2f} | {e['gflops']:.3g} | {e['gbytes_s']:.3g} "
                )
                lines.append(f"{head}{times}{rates}| {e['first_s']:.2f} |")
            else:
                lines.append(head + f"| failed | – | no | – | – | – | {e.get('reason', '')} |")
    return "\n".join(lines)


def matrix(rows, peers):
    """One line a kernel: median in ms of the best, and each peer's ratio to it."""
    lines = [
        "| kernel | best | ms | " + " | ".join(peers) + " | foreign load |",
        "|---|---|--:|" + "--:|" * (len(peers) + 1),
    ]
    for row in rows:
        best = row.get("best")
        cells = [
            row["kernel"],
            best or "–",
            f"{row['peers'][best]['median_s'] * 1e3:.4g}" if best else "–",
        ]
        for p in peers:
            e = row["peers"].get(p)
            cells.append(
                ""
                if e is None
                else "failed"
                if e["status"] != "ok"
                else "–"
                if "ratio" not in e
                else f"*{e['ratio']:.2f}*"
                if e["library"]
                else f"{e['ratio']:.2f}"
            )
        lines.append("| " + " | ".join([*cells, str(row.get("foreign_cores", ""))]) + " |")
    return "\n".join(lines)
