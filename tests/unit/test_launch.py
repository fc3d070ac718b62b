"""What is held against one start of a program."""

import json

import pytest
from witnessed import halo

from assay.launch import WITNESS, Launch, LaunchError
from assay.layouts import Placement


def launch_on(hosts, folder):
    """Four ranks of Open MPI asked to use InfiniBand, of which UCX names shared memory alone."""
    content = halo(4, hosts)
    content['mpi']['library'] = 'Open MPI v5.0.9'
    (folder / WITNESS).write_text(json.dumps(content))
    return Launch(
        program='halo',
        family='openmpi',
        fabric='ucx-ib',
        layout='packed',
        placement=Placement(ranks=4 // hosts, threads=1, options=[]),
        ranks=4,
        folder=folder,
        output='select: component ucx selected\nintra-node cfg#1 tag(sysv/memory cma/memory)\n',
        exit_code=0,
    )


def test_ranks_of_one_host_need_no_network(tmp_path):
    launch_on(1, tmp_path).assert_as_asked()


def test_ranks_of_two_hosts_need_the_network(tmp_path):
    with pytest.raises(LaunchError, match='ucx-ib was asked for, but ucx-shm was used instead'):
        launch_on(2, tmp_path).assert_as_asked()
