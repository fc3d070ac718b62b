"""What runs of an unchanged machine look like: the same selection, again and again for hours.

    .venv/bin/python measurements/null_campaign.py --runs 60 --every 150
    .venv/bin/python measurements/null_campaign.py --runs 20 --every 600 --fabric ucx-tcp

Each run is a real `assay run`. Their figures are added to measurements/data/null.parquet after each
of them, so that a campaign may be stopped at any time and continued on another day. Nothing is left
out: not what missed its reference, nor what was measured while somebody else used the machine, of
which the load tells.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import polars

from assay import paths
from assay.results.reframe_report import read_reframe_report
from assay.results.rows import rows

DATA = Path(__file__).with_name('data') / 'null.parquet'
CHECKS = '^(Clock|Stream|Dgemm|MiniFE|HPL|MiniMD|MiniGhost|Ring|Halo|PointToPoint)'


def one_run(fabrics: str) -> list[dict[str, Any]]:
    """The figures of one run, each with the moment, and the load of the machine before it."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'report.json')
        # What others disturbed counts as well: it is not measured again.
        command = [paths.ROOT / 'assay', 'run', '--with', 'mpich', '-p', '^mpich$']
        command += ['-S', 'wait_for_quiet=0']
        command += [f'--report-file={path}']
        command += ['-n', f'{CHECKS}%fabric=({fabrics})%layout=packed']
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=3600)
        run = read_reframe_report(path)
    return [
        {
            'run': run.uuid,
            'begun': run.begun,
            'host': run.hostname,
            'load': load,
            'environment': row.environment,
            'fabric': row.fabric,
            'check': row.check,
            'figure': row.figure,
            'value': row.value,
            'unit': row.unit,
            'verdict': row.verdict,
        }
        for row in rows(run)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--runs', type=int, default=60, help='how many (default: 60)')
    parser.add_argument('--every', type=float, default=150, help='s from one to the next')
    parser.add_argument('--fabric', default='shm', help='which fabrics, as a regular expression')
    options = parser.parse_args()
    DATA.parent.mkdir(exist_ok=True)
    for number in range(options.runs):
        began = time.monotonic()
        figures = polars.DataFrame(one_run(options.fabric), infer_schema_length=None)
        stored = [polars.read_parquet(DATA)] if DATA.exists() else []
        whole = polars.concat([*stored, figures], how='vertical_relaxed')
        draft = DATA.with_suffix('.draft')
        whole.write_parquet(draft, compression='zstd', compression_level=19)
        draft.replace(DATA)
        took = time.monotonic() - began
        print(
            f'run {number + 1} of {options.runs}: {len(figures)} figures in {took:.0f} s',
            flush=True,
        )
        if number + 1 < options.runs:
            time.sleep(max(0, options.every - took))


if __name__ == '__main__':
    main()
