"""Events of a run while it goes on: lines of JSON, one key each that says what it is.

:mod:`assay.running.reframe_plugin` writes them in ReFrame's process, and
:mod:`assay.running.supervise` reads them. Cases are as in ReFrame's report;
those that have not ended with what names them only.
"""

from __future__ import annotations

#: The environment variable with the number of the pipe's end to write to.
VARIABLE = 'ASSAY_TELLS'

#: The cases that are to run from now on, without fixtures. Beside it, by ReFrame's counting from 0,
#: the how many-th round of the run that is.
ROUND, NUMBER = 'round', 'number'

#: The cases that ReFrame lists and would run, without what they need; of that, in each case, names.
#: Beside these the nodes of its job, 0 for all that are idle.
LISTED, NEEDS, NODES = 'listed', 'needs', 'nodes'

#: A case whose build was started.
BUILDS = 'builds'

#: A case whose job was submitted.
RUNS = 'runs'

#: A case that has ended.
ENDED = 'ended'

#: In a case that was skipped, why: of that ReFrame's report says nothing.
WHY_SKIPPED = 'why_skipped'
