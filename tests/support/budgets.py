"""Cases that a budget is spent on, and what is known of them."""

from datetime import datetime, timedelta, timezone

from assay.results.case_history import CaseHistory
from assay.running.selection import Listed

DAY = datetime(2026, 11, 1, tzinfo=timezone.utc)
BUILD_OF = {name: f'BuildSources ~toy:node+{name}' for name in ('openmpi', 'mpich')}


def case(check, fabric='shm', environment='openmpi', partition='toy:node', needs=()):
    name = f'{check} %fabric={fabric} %layout=packed %scale=1_node'
    return Listed(name, partition, environment, frozenset(needs))


def ran(days_ago=1.0, seconds=10.0, endings=('good',), **others):
    return CaseHistory(DAY - timedelta(days=days_ago), None, [seconds], [*endings], **others)
