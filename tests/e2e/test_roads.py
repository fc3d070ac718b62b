"""What somebody types after an upgrade, line by line, in a checkout that is as good as just got."""

import re

import pytest

from assay import paths
from assay.results.diff.cores import on_alike_cores
from assay.results.figure_series import measured_figures as measured_figures
from assay.results.history import load_history
from assay.results.run_selectors import choose_runs
from command import assert_good, counts
from families import FOUND
from roads import Road

# On a machine that is busy all the time, or whose host moves its CPUs, such as this one may be.
IMPATIENT = ['-S', 'wait_for_quiet=5s', '--max-retries=2']

SETTING = 'OMPI_MCA_btl_vader_single_copy_mechanism'


@pytest.mark.alone  # beside other tests it waits for them to leave, and shows nothing
@pytest.mark.slow
@pytest.mark.timeout(3600)  # its runs wait for their turns
@pytest.mark.skipif(
    'openmpi-system' not in FOUND,
    reason="needs Debian's Open MPI, of which the page tells",
)
def test_after_an_upgrade(first_uses, tmp_path):
    root, _ = first_uses
    with Road('after-an-upgrade.md', root=root, HOME=str(tmp_path)) as road:
        assert road.type(road.next('sed ')).returncode == 0
        line = road.next('./assay run --system mycluster ')
        for _ in range(3):
            measured(road, line, 'before')
        assert road.type(road.next(f'export {SETTING}=none')).returncode == 0

        line = road.next('./assay run --system mycluster ')
        assert line.endswith(' --label after --against before --repeat 3')
        for budget in ('1m', '10m'):  # no case fits into the first where others slow down each
            ended = road.type(line, '-S', 'wait_for_quiet=5s', f'--budget={budget}')
            said = ended.stdout + ended.stderr
            if '--budget: nothing would run in ' not in said:
                break
        word = re.split('[:,]', ended.stdout.splitlines()[-1])[0]
        if is_plain(root):
            assert (word, ended.returncode) == ('WORSE', 1), said
            assert re.search(
                r'^  worse: bandwidth over shm of openmpi-system: ', ended.stdout, re.M
            )
            assert f'{SETTING}: - -> none' in ended.stdout, said
        # Elsewhere others disturbed most of it, or messages were never copied directly.
        codes = {'WORSE': 1, 'FAILED': 1, 'UNDECIDED': 3, 'DISTURBED': 3, 'NOT WORSE': 0}
        assert codes[word] == ended.returncode, said

        assert road.type(road.next('./assay report after -o after.html')).returncode == 0
        assert '<title>' in (root / 'after.html').read_text()
        ended = road.type(road.next('./assay screen '))
        assert (ended.returncode, ended.stderr) == (1, f'{printed("assay: mycluster has no")}\n')

        # First what would change, then the change. What was measured again for long may be enough.
        for _ in range(2):
            ended = road.type(road.next('./assay baseline after'))
            refused = r'^refused: \w+ of \w+ .*@mycluster:\S+: \d sessions are too few: '
            said = ended.stdout + ended.stderr
            written = re.search(r'^[1-9]\d* references? ', said, re.M)
            assert written or re.search(refused, said, re.M), ended
            assert ended.returncode == (0 if written else 1), ended


def measured(road, line, label):
    """Type the run, again if others disturbed it, as the page says."""
    assert line.endswith(f' --label {label}')
    for _ in range(3):
        ended = road.type(line, *IMPATIENT)
        assert_good(ended)
        assert counts(ended)[2] == 2
        if ended.returncode == 0:
            break


def is_plain(root):
    """Whether three runs before and after that can be compared differ far more than each side."""
    stored = load_history(root / 'perflogs' / 'results.db')
    before, after = (stored.figures(choose_runs(stored, label)) for label in ('before', 'after'))
    sides = [
        {
            figure: one.values.to_list()
            for figure, one in measured_figures(table).items()
            if one.check == 'PointToPoint' and figure.figure.endswith('bandwidth')
        }
        for table in on_alike_cores((before, after))
    ]
    both = [(sides[0].get(figure, []), now) for figure, now in sides[1].items()]
    return bool(both) and all(
        len(then) >= 3 <= len(now)
        and max(now) < min(then) / 2
        and all(max(side) < 1.5 * min(side) for side in (then, now))
        for then, now in both
    )


def printed(beginning):
    """The line of the page that begins so."""
    text = (paths.ROOT / 'docs' / 'after-an-upgrade.md').read_text()
    return re.search(rf'^    ({re.escape(beginning)}.*)$', text, re.M)[1]
