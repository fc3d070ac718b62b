"""A start of a program that the witness has seen, as a check holds it against what was asked."""

import json

from assay.job.launch import WITNESS, Launch
from assay.job.output import Output
from assay.layout.layouts import Placement


def over_infiniband(folder, content, said):
    """Four ranks of Open MPI that were asked to use InfiniBand.

    :param content: of the witness's report.
    :param said: by UCX, of the way that it chose.
    """
    content['mpi']['library'] = 'Open MPI v5.0.9'
    (folder / WITNESS).write_text(json.dumps(content))
    (folder / 'out').write_text(f'select: component ucx selected\n{said}\n')
    return Launch(
        program='halo',
        command='halo',
        launcher='srun',
        family='openmpi',
        fabric='ucx-ib',
        layout='packed',
        placement=Placement(ranks=4 // len(content['hosts']), threads=1),
        ranks=4,
        folder=folder,
        output=Output((folder / 'out',)),
        exit_code=0,
    )
