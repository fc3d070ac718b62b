"""The catalogue of faults, and what counts as seen of them."""

from dataclasses import replace

import pytest

from assay import AssayError
from assay.campaign import catalogue
from assay.campaign import course as report
from assay.campaign.catalogue import Fault
from assay.campaign.course import FaultOutcome
from assay.campaign.look import Look, is_of
from assay.results.failures import Failure
from command import assay

RATE = """
rate:
  what: n2's link carries {} Mbit/s
  severities: {low: 2500, high: 100}
  cluster: ['rate n2 {}']
  check: PointToPoint%fabric=tcp%scale=2_nodes
  cause: 'bandwidth is'
  green: [Clock]
"""


@pytest.fixture
def faults(tmp_path):
    """Loads a catalogue of one file."""

    def load(text=RATE):
        (tmp_path / 'network.yaml').write_text(text)
        return catalogue.load_faults(tmp_path)

    return load


def test_every_fault_of_ours_can_be_brought_in():
    faults = catalogue.load_faults()
    assert len(faults) >= 60
    for name, fault in faults.items():
        # What a severity changes says so, and only that.
        texts = [*fault.cluster, *fault.variables.values(), *(one.run for one in fault.on_nodes)]
        assert any('{}' in text for text in texts) == bool(fault.severities), name
        assert ('{}' in fault.what) == bool(fault.severities), name


def test_a_severity_stands_for_braces(faults):
    rate = faults()['network/rate']
    assert rate.degrees == ['low', 'high']
    assert rate.fill(rate.cluster[0], 'low') == 'rate n2 2500'


def test_a_fault_that_is_there_or_not(faults):
    text = RATE.replace('  severities: {low: 2500, high: 100}\n', '').replace('{}', '100')
    assert faults(text)['network/rate'].degrees == ['high']


@pytest.mark.parametrize(
    ('was', 'becomes', 'words'),
    [
        ('check:', 'chek:', 'network.yaml: rate.check: Field required'),
        ('high: 100', 'worst: 100', "rate.severities.worst.[key]: Input should be 'low'"),
        ("cluster: ['rate n2 {}']", 'cluster: []', 'breaks nothing: cluster, variables, preload'),
        ('PointToPoint%fabric=tcp%scale=2_nodes', 'screen', 'a screening stands alone'),
        ("  cause: 'bandwidth is'\n", '  past: 3\n', 'has a past, which only screenings'),
        ("  cause: 'bandwidth is'\n", '  missed: yes it is\n', 'is harmless, and so cannot be'),
        ("'bandwidth is'", "'('", 'rate.cause: Value error, not a valid expression'),
        (RATE, '- rate', 'network.yaml: not a mapping of names to faults'),
        (RATE, 'rate: {', 'network.yaml: '),
    ],
)
def test_a_wrong_catalogue(faults, was, becomes, words):
    with pytest.raises(AssayError) as error:
        faults(RATE.replace(was, becomes))
    assert words in str(error.value)


def test_faults_are_chosen_by_name_and_kind():
    faults = catalogue.load_faults()
    assert list(catalogue.choose_faults(faults, ['network/rate'])) == ['network/rate']
    chosen = catalogue.choose_faults(faults, ['node', 'network/rate'])
    assert {name.partition('/')[0] for name in chosen} == {'network', 'node'}
    assert catalogue.choose_faults(faults, []) == faults
    with pytest.raises(AssayError, match='did you mean network/rate'):
        catalogue.choose_faults(faults, ['network/rates'])


SLOW = Failure(
    'PointToPoint %fabric=tcp %scale=2_nodes @vcluster:srun+openmpi', 'bandwidth is 1 MB/s', ()
)
CLOCK = replace(SLOW, case='Clock @vcluster:srun+openmpi')
OTHER = replace(SLOW, reason='latency is 1 s; n2 was disturbed')
BOTH = replace(SLOW, reason=f'{OTHER.reason}; {SLOW.reason}')
PAIRS = replace(SLOW, case='Pairs %scale=2_nodes @vcluster:srun+openmpi')


def outcome(fault, broken=(), healed=(), disturbed=(), severity='high'):
    return FaultOutcome(
        'network/rate', fault, severity, Look([*broken], [*disturbed]), Look([*healed], [])
    )


@pytest.mark.parametrize(
    ('looks', 'good'),
    [
        ({'broken': [SLOW]}, True),
        ({'disturbed': [SLOW]}, True),
        ({}, False),
        ({'severity': 'low'}, True),
        ({'broken': [OTHER]}, False),
        ({'broken': [PAIRS]}, False),
        ({'broken': [SLOW, CLOCK]}, False),
        ({'broken': [SLOW], 'healed': [SLOW]}, False),
        ({'healed': [SLOW], 'severity': 'low'}, False),
    ],
)
def test_what_is_as_it_should_be(faults, looks, good):
    assert outcome(faults()['network/rate'], **looks).is_good == good


@pytest.mark.parametrize(
    ('check', 'meant'),
    [
        ('PointToPoint%fabric=tcp%scale=2_nodes', True),
        ('PointToPoint', True),
        ('PointToPoint%fabric=tcp%scale=2', False),
        ('Point', False),
        ('PointToPoint%fabric=tcp%scale=1_node', False),
    ],
)
def test_the_cases_of_a_check(check, meant):
    assert is_of(SLOW.case, check) == meant


def test_a_fault_that_cannot_be_brought_in(faults):
    problem = FaultOutcome(
        'network/rate', faults()['network/rate'], 'low', problem='tc:\nno such qdisc'
    )
    assert not problem.is_good
    assert report.outcome_row(problem).endswith('| **nothing** | tc: no such qdisc | - | not run |')


HARMLESS = RATE.replace("  cause: 'bandwidth is'\n", '')


def test_a_fault_that_is_harmless_has_to_be_green(faults):
    rate = faults(HARMLESS)['network/rate']
    assert outcome(rate).is_good
    assert not outcome(rate, broken=[SLOW]).is_good
    assert '| nothing, as it should be | - | Clock | green |' in report.outcome_row(outcome(rate))


SCREENED = RATE.replace('PointToPoint%fabric=tcp%scale=2_nodes', 'screen').replace(
    '  green: [Clock]\n', ''
)


def test_a_screening_names_the_culprit_and_nobody_else(faults):
    rate = faults(SCREENED.replace('bandwidth is', '^node n2: '))['network/rate']
    bad = Failure('screen', 'node n2: triad is 20% less', ())
    assert outcome(rate, broken=[bad]).is_good
    assert not outcome(rate, broken=[bad, replace(bad, reason='node n3: ')]).is_good
    assert not outcome(rate, broken=[replace(bad, reason='node n3: ')]).is_good
    assert outcome(rate, broken=[bad], disturbed=[replace(bad, reason='disturbed n3: ')]).is_good


def test_a_row_of_the_matrix(faults):
    rate: Fault = faults()['network/rate']
    assert report.outcome_row(outcome(rate, broken=[BOTH, OTHER])) == (
        "| `network/rate`: n2's link carries 100 Mbit/s | high | PointToPoint 2_nodes "
        '| bandwidth is 1 MB/s | Clock | green |'
    )
    assert report.outcome_row(outcome(rate, broken=[CLOCK], healed=[SLOW], severity='low')) == (
        "| `network/rate`: n2's link carries 2500 Mbit/s | low | **nothing** | - | - "
        '| bandwidth is 1 MB/s |'
    )
    assert '| red, without the cause | latency is 1 s; n2 was disturbed |' in report.outcome_row(
        outcome(rate, broken=[OTHER])
    )


def test_what_is_known_to_be_missed_stays_in_the_matrix(faults):
    missed = outcome(faults(f'{RATE}  missed: nobody looks\n')['network/rate'])
    assert missed.is_good and not replace(missed, healed=Look([SLOW])).is_good
    assert '| **nothing**: nobody looks | - |' in report.outcome_row(missed)
    assert report.outcome_row(replace(missed, broken=Look([SLOW]))).count('nobody looks') == 0


def test_a_green_run_that_names_the_cause_is_not_red(faults):
    note = 'set in the environment ...: UCX_TLS=rc (1 of 1 cases)'
    rate = faults(RATE.replace('bandwidth is', 'UCX_TLS=rc'))['network/rate']
    noted = replace(outcome(rate), broken=Look(note=note))
    assert not noted.is_good
    assert f'| **green**, with a note | {note} | Clock | green |' in report.outcome_row(noted)
    assert '| **nothing** | - |' in report.outcome_row(replace(noted, broken=Look(note='others')))


def test_a_note_where_nothing_is_broken_is_wrong(faults):
    told = outcome(faults()['network/rate'], broken=[SLOW])
    told = replace(told, healed=Look(note='set in the environment ...'))
    assert not told.is_good
    assert report.outcome_row(told).endswith('| Clock | set in the environment ... |')


def test_faults_are_listed_without_a_cluster():
    ended = assay('cluster', 'campaign', '--list', 'network/rate')
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith('network/rate ') and 'low, middle, high' in ended.stdout


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['nework'], 'assay: no fault has this name; did you mean network?'),
        (['--severity', 'worst'], 'assay: --severity worst: it is one of low, middle, high'),
    ],
)
def test_mistakes_of_a_campaign(arguments, words):
    ended = assay('cluster', 'campaign', *arguments)
    assert (ended.returncode, ended.stdout) == (1, '')
    assert words in ended.stderr
