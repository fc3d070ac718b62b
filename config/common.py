"""What every system shares: logging, and the modes.

ReFrame merges this file with one of ``config/systems``, which brings the systems and their
environments (``RFM_CONFIG_FILES``, set by ``assay env``).
"""

import os

from assay.machine.job_states import forget_job_around
from assay.running import events, httpjson, runs, schedulers

schedulers.use_own_schedulers()
forget_job_around(os.environ)
if events.VARIABLE in os.environ:
    from assay.running import reframe_plugin

    reframe_plugin.send_events()

# What shells, compilers and MPIs say is understood in English, and numbers with points. Names of
# files stay in the user's encoding.
if 'LC_ALL' in os.environ:
    os.environ['LC_CTYPE'] = os.environ.pop('LC_ALL')
os.environ |= dict.fromkeys(('LC_MESSAGES', 'LC_NUMERIC', 'LC_TIME', 'LC_COLLATE'), 'C')

# ReFrame reads these variables after this file.
run = runs.this_run()

site_configuration = {
    # general/trap_job_errors stays off: ReFrame 4.10.4 then fails every compile-only test, because
    # it asks for the exit code of a job that such a test has not. Checks assert theirs themselves.
    # Several -t are ANDed expressions, searched in each tag: anchors make the match exact.
    'modes': [
        {'name': 'smoke', 'options': ["--tag='^smoke$'"]},
        {'name': 'maintenance', 'options': ["--tag='^maintenance$'"]},
        {'name': 'acceptance', 'options': ["--tag='^acceptance$'"]},
        {'name': 'screen', 'options': ["--tag='^screen$'"]},
        {'name': 'tune', 'options': ["--tag='^tune$'"]},
    ],
    'logging': [
        {
            # The default level costs most of the time of a run with hundreds of short checks.
            'level': 'info',
            'handlers': [
                {'type': 'file', 'name': str(run.log), 'level': 'info'},
            ],
            # One line a figure, so that checks with different figures keep the same columns.
            'perflog_multiline': True,
            'handlers_perflog': [
                {
                    'type': 'filelog',
                    'prefix': '%(check_system)s/%(check_partition)s',
                    'level': 'info',
                    # Or old lines could not be removed while others are written.
                    'locking_enable': True,
                    'format': '|'.join(
                        [
                            '%(check_job_completion_time)s',
                            '%(version)s',
                            '%(check_system)s',
                            '%(check_partition)s',
                            '%(check_environ)s',
                            '%(check_display_name)s',
                            '%(check_perf_var)s',
                            '%(check_perf_value)s',
                            '%(check_perf_ref)s',
                            '%(check_perf_lower_thres)s',
                            '%(check_perf_upper_thres)s',
                            '%(check_perf_unit)s',
                            '%(check_result)s',
                            '%(check_perf_result)s',
                            # What was measured (docs/spack.md).
                            '%(check_built_by)s',
                            '%(check_built_spec)s',
                            '%(check_built_hash)s',
                            '%(check_built_compiler)s',
                            '%(check_built_flags)s',
                            '%(check_built_mpi)s',
                            '%(check_built_blas)s',
                            '%(check_built_target)s',
                            '%(check_ran_mpi)s',
                            '%(check_ran_modules)s',
                            '%(check_ran_variables)s',
                            '%(check_ran_settings)s',
                            '%(check_ran_on_kernel)s',
                            '%(check_ran_on_processor)s',
                            '%(check_ran_on_microcode)s',
                            '%(check_ran_on_governor)s',
                            '%(check_ran_on_boost)s',
                            '%(check_ran_on_smt)s',
                            '%(check_ran_on_huge_pages)s',
                            '%(check_ran_on_numa_balancing)s',
                            '%(check_suite_commit)s',
                        ]
                    ),
                },
                # RFM_HTTPJSON_URL (docs/export.md).
                *httpjson.handlers(),
            ],
        }
    ],
}
