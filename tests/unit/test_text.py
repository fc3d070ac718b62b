"""Foreign text, made safe for a terminal."""

import io
import subprocess
import sys

import pytest

from assay.text import VisibleStream, expand_nodes, fold_nodes, plain, visible, visible_lines


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        ('é 漢字, µs', 'é 漢字, µs'),
        ('\x1b[1A\x1b[2JPASSED: 70 passed', r'\x1b[1A\x1b[2JPASSED: 70 passed'),
        ('\x1b]0;title\x07', r'\x1b]0;title\x07'),
        ('\x9b2Jgone', r'\x9b2Jgone'),
        ('\x1b[01;31m\x1b[Kerror:\x1b[m\x1b[K x', 'error: x'),
        # What is taken out leaves nothing behind that a terminal obeys.
        ('\x1b\x1b[m[2J', r'\x1b[2J'),
        ('abc\b\b\bxyz\x7f', r'abc\x08\x08\x08xyz\x7f'),
        ('a\nPASSED\r\n\x0b\x0cb\x85c\u2028d\u2029e', 'a PASSED b c d e'),
        ('\u202eDESSAP\u202c \u2066x\u2069', r'\u202eDESSAP\u202c \u2066x\u2069'),
        ('n\u200b1\u200d\u2060\ufeff\u00ad', r'n\u200b1\u200d\u2060\ufeff\xad'),
        ('\udcff\ud800', r'\udcff\ud800'),
        ('a\xa0b\u3000 c', 'a b c'),
        ('\ufffe\U000e0041', r'\ufffe\U000e0041'),
        (None, 'None'),
    ],
)
def test_a_sentence_holds_nothing_that_a_terminal_obeys(text, shown):
    assert plain(text) == shown
    assert plain(text).isprintable()


def test_every_character_of_a_line_is_visible():
    every = ''.join(map(chr, range(sys.maxunicode + 1)))
    assert visible(every).isprintable()
    assert visible_lines(every).replace('\n', '').replace('\t', '').isprintable()


def test_a_sentence_is_bounded():
    cut = plain('begin' + '\x1b' * 10_000_000 + 'end', most=100)
    assert len(cut) <= 100
    assert cut.startswith('begin')
    assert cut.endswith('end')
    assert plain('x' * 100, most=100) == 'x' * 100


def test_lines_and_columns_of_a_text_are_left():
    assert visible_lines('a\tb\n  c\x1b[1A\r\n') == 'a\tb\n  c\\x1b[1A \n'


@pytest.mark.parametrize('encoding', ['utf-8', 'ascii', 'latin-1'])
def test_a_stream_writes_what_its_encoding_lacks(encoding):
    bytes_ = io.BytesIO()
    stream = VisibleStream(io.TextIOWrapper(bytes_, encoding=encoding))
    print('é漢\udcff\x1b[1A', file=stream, flush=True)
    assert stream.encoding == encoding
    written = bytes_.getvalue().decode(encoding)
    assert written.endswith('\\udcff\\x1b[1A\n')


def test_whatever_a_process_prints_is_visible():
    """Tables keep their own colours; neither they nor the sentence of an exit pass on others."""
    program = """if True:
        import sys
        from assay.report.console import console, write_visibly
        write_visibly()
        print('printed \\x1b[1A\\udcff')
        console().print('table \\x1b[2J', markup=False)
        sys.exit('exit \\x1b[1A')
    """
    ended = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True)
    assert ended.stdout == 'printed \\x1b[1A\\udcff\ntable \\x1b[2J\n'
    assert ended.stderr == 'exit \\x1b[1A\n'


def test_names_of_nodes_are_folded_and_expanded():
    assert fold_nodes(['n2', 'n1', 'm7']) == 'm7,n[1-2]'
    assert expand_nodes('m7,n[1-2]') == ['m7', 'n1', 'n2']
    assert expand_nodes('(null)') == []
    with pytest.raises(ValueError, match=r'n\[1-'):
        expand_nodes('n[1-')
