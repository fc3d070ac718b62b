"""What machines of the world are taken for, as Linux shows them, and what layouts make of them."""

from contextlib import suppress

import pytest
from reframe.core.systems import ProcessorInfo

from assay.discovery.draft import usable_processor
from assay.discovery.node import NodeFacts
from assay.layout.launchers import WORDS
from assay.layout.layouts import LAYOUTS, DoesNotFitError, NodeShape, layout_of
from assay.machine.topology import core_count, domain_count, of_processor, read_topology
from assay.text import parse_cpus
from machines import lay, record
from sites import sites


@pytest.mark.parametrize('site', sites('topology'), ids=str)
def test_a_machine(site):
    there = read_topology(lay(site.text('machine')))
    expect = site.expect
    assert expect.keys() >= {'cpus', 'cores', 'sockets', 'domains'}
    found = {'cpus': len(there.cpus), 'kinds': there.core_kinds, 'offline': len(there.offline)}
    found |= {key: len(getattr(there, key)) for key in ('cores', 'sockets', 'domains')}
    found['memory_domains'] = there.memory_domains
    expected = {'kinds': [expect['cores']], 'offline': found['offline'], 'memory_domains': ''}
    expected |= {key: value for key, value in expect.items() if key in found}
    expected['memory_domains'] = parse_cpus(str(expected['memory_domains']))
    assert found == expected
    for sets in (there.cores, there.sockets, there.domains):
        assert sorted(cpu for one in sets for cpu in one) == sorted(there.cpus)

    of_all = {'cpus': '', 'threads': expect['cpus'] // expect['cores'], **expect}
    for part in (of_all, expect.get('allowed', of_all)):
        allowed = sorted(parse_cpus(part['cpus']) if part is not of_all else there.cpus)
        _hold_description(there, allowed, part)


def _hold_description(there, allowed, expect):
    """As `assay init` and the generic system describe it to ReFrame, and layouts take it."""
    told = usable_processor(
        NodeFacts('n1', '', {'arch': 'any'} | there.describe(), allowed, 1, None, [], [])
    )
    assert told == {'arch': 'any'} | there.restrict_to(allowed).for_reframe()
    processor = ProcessorInfo(told)
    assert processor.num_cores == expect['cores'] == core_count(told)
    assert processor.num_numa_nodes == expect['domains'] == domain_count(told)
    assert processor.num_cpus_per_core == expect['threads']
    assert processor.num_cpus == expect['cores'] * expect['threads']
    # The same words for a node that is told again.
    assert of_processor(told).for_reframe() == {
        key: value for key, value in told.items() if key != 'arch'
    }
    node = NodeShape(core_count(told), domain_count(told))
    for launcher in WORDS:
        for layout in LAYOUTS.values():
            with suppress(DoesNotFitError):
                assert sum(layout.place(launcher, node).cores) <= node.cores
        assert layout_of('packed').place(launcher, node).ranks == node.cores
        with pytest.raises(DoesNotFitError):
            layout_of('packed').place(launcher, node, ranks=node.cores + 1)


def test_there_are_machines_of_many_kinds():
    known = [site for site in sites('topology') if site.source]
    assert len(known) >= 40
    assert any(site.expect['cpus'] > 1024 for site in known)


def test_a_machine_is_recorded_as_it_is():
    (site,) = (one for one in sites('topology') if str(one) == 'alder-lake')
    text = site.text('machine')
    assert sorted(record(lay(text)).splitlines()) == sorted(text.splitlines())
