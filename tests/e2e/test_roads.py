"""What somebody types after an upgrade, line by line, in a checkout that is as good as just got."""

import re

import pytest

from assay import paths
from assay.machine.mpi import find_mpis
from command import assert_good, counts
from roads import Road

# On a machine that is busy all the time, or whose host moves its CPUs, such as this one may be.
IMPATIENT = ['-S', 'wait_for_quiet=5s', '--max-retries=2']

SETTING = 'OMPI_MCA_btl_vader_single_copy_mechanism'


@pytest.mark.slow
@pytest.mark.timeout(3600)  # its runs wait for their turns
@pytest.mark.skipif(
    not any(mpi.name == 'openmpi-system' for mpi in find_mpis()),
    reason="needs Debian's Open MPI, of which the page tells",
)
def test_after_an_upgrade(first_uses, tmp_path):
    root, _ = first_uses
    with Road('after-an-upgrade.md', root=root, HOME=str(tmp_path)) as road:
        assert road.type(road.next('sed ')).returncode == 0
        before = measured(road, 'before')
        assert road.type(road.next(f'export {SETTING}=none')).returncode == 0
        after = measured(road, 'after')

        ended = road.type(road.next('./assay diff before after'))
        said = ended.stdout + ended.stderr
        assert re.search(r'^before: \d runs? with the label before, ', ended.stdout, re.M), said
        assert re.search(r'^after: +\d runs? with the label after, ', ended.stdout, re.M), said
        # What has changed is told of values that count, and of none that others disturbed.
        changed = re.search(rf'^{SETTING} +- +none ', ended.stdout, re.M)
        assert changed or re.search(r'no value .* is left: .* disturbed by others', said), said
        word, _, rest = ended.stdout.splitlines()[-1].partition(': ')
        # With a run on each side nothing tells how far good ones are apart; what missed a reference
        # while others disturbed it may look as if it failed at times.
        # Runs that had to be repeated do tell it.
        once = before == after == [0]
        told = {('CANNOT TELL', 0)} | (set() if once else {('WORSE', 1), ('NOT WORSE', 0)})
        assert (word, ended.returncode) in told, said
        assert re.match(
            r'\d+ worse, \d+ better, \d+ same, \d+ cannot tell of [1-9]\d* figures', rest
        )

        assert road.type(road.next('./assay report after -o after.html')).returncode == 0
        assert '<title>' in (root / 'after.html').read_text()
        ended = road.type(road.next('./assay screen '))
        assert (ended.returncode, ended.stderr) == (1, f'{printed("assay: mycluster has no")}\n')

        for _ in range(2):  # first what would change, then the change
            ended = road.type(road.next('./assay baseline after'))
            assert ended.returncode == 1, ended.stderr
            refused = r'^refused: \w+ of \w+ .*@mycluster:\S+: \d sessions are too few: '
            assert re.search(refused, ended.stdout + ended.stderr, re.M), ended
        assert not (root / 'config' / 'references' / 'mycluster.yaml').exists()


def measured(road, label):
    """Type the run, again if others disturbed it, as the page says: the code of each."""
    line = road.next('./assay run --system mycluster ')
    assert line.endswith(f' --label {label}')
    codes = []
    for _ in range(3):
        ended = road.type(line, *IMPATIENT)
        assert_good(ended)
        assert counts(ended)[2] == 2
        codes.append(ended.returncode)
        if ended.returncode == 0:
            break
    return codes


def printed(beginning):
    """The line of the page that begins so."""
    text = (paths.ROOT / 'docs' / 'after-an-upgrade.md').read_text()
    return re.search(rf'^    ({re.escape(beginning)}.*)$', text, re.M)[1]
