"""Running a program to its end, whatever that is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import paths
from assay.config.environments import AS_ROOT, tcp_over

LEAKS = paths.ROOT / 'tests' / 'support' / 'leaks.supp'

# More ranks than cores, started by whoever runs the tests, on this machine only.
SURROUNDINGS = {
    **dict(AS_ROOT + tcp_over('lo')),
    'OMPI_MCA_rmaps_base_oversubscribe': '1',  # Open MPI 4
    'PRTE_MCA_rmaps_default_mapping_policy': ':oversubscribe',  # Open MPI 5
    # Who waits leaves the core to those that work: here there may be more ranks and threads than
    # cores. The tests of miniMD took 40% less CPU time by it on MPICH.
    'OMP_WAIT_POLICY': 'passive',
    'OMPI_MCA_mpi_yield_when_idle': '1',
    'MPIR_CVAR_ENABLE_HEAVY_YIELD': '1',
    'MPIR_CVAR_POLLS_BEFORE_YIELD': '100',
    # Leaks are looked for in the programs; those inside the MPIs are theirs (see leaks.supp).
    'LSAN_OPTIONS': f'suppressions={LEAKS}:print_suppressions=0',
    # Whole stacks, or the suppressions would not find the library.
    'ASAN_OPTIONS': 'fast_unwind_on_malloc=0',
    'UBSAN_OPTIONS': 'print_stacktrace=1',
}

# For MPICH's collectives in their general form: in those for shared memory, who waits leaves no
# core to others. An application on 4 ranks took 1.5 s of CPU time instead of 3.6. Not where ranks
# leave without a word, which MPICH's launcher overlooks now and then, and more often with these.
YIELDING_COLLECTIVES = {
    f'MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM': 'mpir'
    for name in ('ALLREDUCE', 'BARRIER', 'BCAST', 'REDUCE')
}

# Of programs that were built with ThreadSanitizer, which ends them with an exit code of its own.
UNDER_THREAD_SANITIZER = {
    'TSAN_OPTIONS': f'suppressions={paths.ROOT / "tests" / "support" / "threads.supp"}:exitcode=66',
    'PMIX_MCA_gds': 'hash',  # the other one wants an address that the sanitizer has taken
}

# Ranks that wait as they do where each has a core of its own.
POLLING = {
    'OMPI_MCA_mpi_yield_when_idle': '0',
    'MPIR_CVAR_ENABLE_HEAVY_YIELD': '0',
    'MPIR_CVAR_POLLS_BEFORE_YIELD': '1000',
}


@dataclass(frozen=True)
class Run:
    """What a run of a program left."""

    code: int
    out: str
    err: str
    files: Path
    """The folder that --json wrote to."""

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report; NaN and infinity in it are errors."""

        def refuse(constant: str) -> None:
            raise ValueError(f'{constant} in the report')

        return json.loads((self.files / 'report.json').read_text(), parse_constant=refuse)


def run_command(
    command: list[str], env: dict[str, str], folder: Path, timeout: float, cwd: Path | None = None
) -> Run:
    """Run a command to its end; ``folder`` is where its files are."""
    with subprocess.Popen(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            # A launcher that is killed alone leaves its ranks, which poll for ever.
            kill_session(process.pid)
            raise
    return Run(process.returncode, out, err, folder)


def processes_of(session: int) -> list[int]:
    """A launcher that leads a session, its helpers and the ranks."""
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError, IndexError):
            fields = (folder / 'stat').read_text(errors='replace').rpartition(')')[2].split()
            if int(fields[3]) == session and fields[0] != 'Z':
                found.append(int(folder.name))
    return found


def kill_session(session: int) -> None:
    """SIGKILL to all of them, also to those that are born meanwhile.

    A rank of Open MPI that comes to MPI_Init when its launcher is dead goes on as the only one.
    """
    until = time.monotonic() + 300
    while (found := processes_of(session)) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
