"""Measure the inexact functions on every device present; with --write, keep the result.

    python tools/measure_ulp.py [--write] [--device NAME]… [FUNCTION …]

Takes about two minutes. Part of the functions can be shown, only all can be written.
"""

from __future__ import annotations

import argparse
import warnings

import sarek_numba as sarek
from tools.numerics import record as records
from tools.numerics.functions import FUNCTIONS
from tools.numerics.identity import driver, family, instruction_set
from tools.numerics.measure import TYPES, Measured, measure
from tools.numerics.reference import exact
from tools.numerics.sample import arguments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("functions", nargs="*", default=[], metavar="FUNCTION")
    parser.add_argument("--device", action="append", default=[])
    parser.add_argument("--write", action="store_true", help="write docs/numerics.json and .md")
    options = parser.parse_args()
    if options.write and options.functions:
        parser.error("--write measures all functions")
    warnings.simplefilter("ignore", sarek.CompileWarning)
    devices = [d for d in sarek.devices() if not options.device or d.name in options.device]
    found = _measure_all(options.functions or list(FUNCTIONS), [d.name for d in devices])
    if options.write:
        new = [
            records.Record(family(d.name), driver(d.record), instruction_set(), found[d.name])
            for d in devices
        ]
        records.write(records.merge(records.load(), new))


def _measure_all(
    names: list[str], devices: list[str]
) -> dict[str, dict[tuple[str, str], Measured]]:
    found: dict[str, dict[tuple[str, str], Measured]] = {device: {} for device in devices}
    for name in names:
        function = FUNCTIONS[name]
        for dtype in TYPES:
            rows = arguments(function, dtype)
            expected = exact(function, rows)
            for device in devices:
                result = measure(device, function, rows, expected)
                found[device][name, dtype.name] = result
                print(f"{name} {dtype.name} {device}: {result.ulp:.4g} ULP at {result.at}")
                for d in result.deviations:
                    print(f"    {d.actual} for {d.expected}, {d.count} times: {'; '.join(d.at)}")
    return found


if __name__ == "__main__":
    main()
