"""A check on a partition and an environment of a configuration, without ReFrame's command."""

from contextlib import contextmanager

import reframe.core.runtime as rt
from reframe.utility import import_module_from_file

# Before ReFrame has a system, which would leave only its own fabrics and scales as parameters.
import assay.node
import assay.sweep  # noqa: F401
from assay import paths


@contextmanager
def check_on(configuration, system, prefix, file, name, environment, **parameters):
    """Yields the check ``name`` of checks/``file``.py, its partition and its environment.

    What it needs to be built is left out. Stage and output folders are under ``prefix``.
    """
    options = {
        'general/reference_prefix': str(paths.REFERENCES),
        'systems/prefix': str(prefix),
        'systems/modules_system': 'nomod',  # a cluster has one; this machine need not
    }
    with rt.temp_runtime(str(configuration), system, options):
        cls = getattr(import_module_from_file(str(paths.CHECKS / f'{file}.py')), name)
        conditions = {key: lambda x, v=value: x == v for key, value in parameters.items()}
        check = cls(variant_num=cls.get_variant_nums(**conditions)[0])
        check._resolve_fixtures = lambda: None
        (partition,) = rt.runtime().system.partitions
        environ = next(e for e in partition.environs if e.name == environment)
        yield check, partition, environ
