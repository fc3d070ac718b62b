"""A check on a partition and an environment of a configuration, without ReFrame's command."""

import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import reframe.core.runtime as rt
from reframe.core.fields import make_convertible
from reframe.utility import import_module_from_file

# As the check itself, before ReFrame has a system: all fabrics and scales are parameters.
import assay.checks.sweep  # noqa: F401
from assay import paths
from assay.machine import topology


@contextmanager
def check_on(configuration, system, prefix, file, name, environment, given=None, **parameters):
    """Yields the check ``name`` of checks/``file``.py, its partition and its environment.

    What it needs to be built is left out. Stage and output folders are under ``prefix``. What is
    ``given`` sets variables, as -S does.
    """
    options = {
        'general/reference_prefix': str(paths.REFERENCES),
        'systems/prefix': str(prefix),
        'systems/modules_system': 'nomod',  # a cluster has one; this machine need not
    }
    read = import_module_from_file(str(paths.CHECKS / f'{file}.py'))
    try:
        cls = getattr(read, name)
        for variable, value in (given or {}).items():
            assert cls.setvar(variable, make_convertible(value))
        with rt.temp_runtime(str(configuration), system, options):
            conditions = {key: lambda x, v=value: x == v for key, value in parameters.items()}
            check = cls(variant_num=cls.get_variant_nums(**conditions)[0])
            check._resolve_fixtures = lambda: None
            (partition,) = rt.runtime().system.partitions
            environ = next(e for e in partition.environs if e.name == environment)
            # The machine of the configuration, of which the process may use all.
            here = topology.of_processor(partition.processor.info)
            has_all = {'usable_topology': lambda: here, 'usable_cores': lambda: len(here.cores)}
            with patch.multiple(topology, **has_all):
                yield check, partition, environ
    finally:
        if given:
            del sys.modules[read.__name__]  # ReFrame would find it there again


def job_script(configuration, system, prefix, file, name, environment, **parameters):
    """The script of the job in which a check would run; nothing is built or submitted.

    What the build would leave is in /built; the arguments are those of :func:`check_on`.
    """
    where = (configuration, system, prefix, file, name, environment)
    with check_on(*where, **parameters) as (check, partition, environ):
        check._rfm_dry_run = True
        check.build = check.benchmarks = SimpleNamespace(product='/built/build/{}'.format)
        check.setup(partition, environ)
        # ReFrame looks which srun this machine has, if any.
        check.job.launcher.use_cpus_per_task = True
        check.run()
        script = (Path(check.stagedir) / check.job.script_filename).read_text()
        return script.replace(check.stagedir, '/stage')
