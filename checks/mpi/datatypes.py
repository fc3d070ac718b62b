"""Data that lies in pieces: by derived datatype and by MPI_Pack, against packing by hand."""

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.programs.figure import Quantity

SMALL, LARGE = 1 << 10, 4 << 20

LAYOUTS = ('vector', 'indexed', 'face')


@rfm.simple_test
class Datatypes(MpiBenchmark):
    """Two ranks exchange a strided vector, single elements by index, and a face of a 3-D array.

    Of 1 KiB to 4 MiB, from array to array: by a derived datatype, by MPI_Pack and by loops that
    pack. Figures are rates over that by loops, at two sizes and at the worst of all.
    """

    program = 'datatypes'
    ranks = 2
    scale = parameter(scales(2), type=str)
    is_smoke_case = False

    measures = {
        'face_bandwidth': Quantity('MB/s', 'higher', headline=True),
        **{
            f'{layout}_{which}_of_hand': Quantity('1', 'higher', must_be_held=True)
            for layout in LAYOUTS
            for which in ('small', 'large', 'worst', 'worst_pack')
        },
    }

    def figures(self):
        times = {
            (entry['layout'], entry['method'], entry['size']): entry['time']['best']
            for entry in self.report['results']
        }
        sizes = sorted({size for _, _, size in times})
        figures = {'face_bandwidth': LARGE / times['face', 'datatype', LARGE] / 1e6}
        for layout in LAYOUTS:
            by_datatype, by_pack = (
                {size: times[layout, 'hand', size] / times[layout, way, size] for size in sizes}
                for way in ('datatype', 'pack')
            )
            figures |= {
                f'{layout}_small_of_hand': by_datatype[SMALL],
                f'{layout}_large_of_hand': by_datatype[LARGE],
                f'{layout}_worst_of_hand': min(by_datatype.values()),
                f'{layout}_worst_pack_of_hand': min(by_pack.values()),
            }
        return self.as_figures(**figures)
