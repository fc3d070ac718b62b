"""Texts that are held word for word: pages of docs, and sentences in tests/golden/wording."""

import math
import re

import yaml

from assay import paths

FOLDER = paths.ROOT / 'tests' / 'golden' / 'wording'

#: Of a table: columns are two blanks apart, and a folded cell goes on with a part of a name.
_ROW = re.compile(r'\S {2,}\S|^[%@]')
#: Digits of names, such as n3 or mpich@4.3.2, are none.
_NUMBER = re.compile(r'(?<![\w@\[.])(?<!\[\d-)(?:\d[\d.]*\d|\d)')


def sentences(text):
    """The lines of a text but for the rows of tables, with # for each number, and once each."""
    lines = (line.rstrip() for line in text.splitlines())
    said = (_NUMBER.sub('#', line) for line in lines if line and not _ROW.search(line.strip()))
    return [*dict.fromkeys(said)]


def hold_page(request, page, text):
    """Compare a page of the documents with what it has to be, or write it anew.

    :param request: the test's, as pytest has it.
    """
    if request.config.option.renew:
        page.write_text(text)
    assert page.read_text() == text, _advice(request)


def hold(request, texts):
    """Compare the sentences of texts with those that are held of a test, or hold them anew.

    :param request: the test's, as pytest has it.
    """
    path = FOLDER / f'{request.path.stem.removeprefix("test_")}.yaml'
    kept = yaml.safe_load(path.read_text()) if path.exists() else {}
    said = [line for text in texts for line in sentences(text)]
    if request.config.option.renew:
        tests = vars(request.module)
        kept = {name: lines for name, lines in kept.items() if name.partition('[')[0] in tests}
        kept[request.node.name] = said
        path.write_text(yaml.safe_dump(kept, allow_unicode=True, width=math.inf))
    assert said == kept.get(request.node.name), _advice(request)


def _advice(request):
    file = request.path.relative_to(paths.ROOT)
    return f'if it is to be so: ./assay test {file} --renew, and look at git diff'
