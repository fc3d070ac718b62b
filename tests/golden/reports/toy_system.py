"""One machine with one environment, for toys.py."""

site_configuration = {
    'systems': [
        {
            'name': 'toy',
            'hostnames': ['.*'],
            'partitions': [
                {
                    'name': 'node',
                    'scheduler': 'local',
                    'launcher': 'local',
                    'environs': ['gnu'],
                    'max_jobs': 1,
                }
            ],
        }
    ],
    'environments': [{'name': 'gnu', 'cc': 'gcc'}],
}
