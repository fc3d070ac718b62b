"""How many nodes a case has, by the name of its scale."""

import pytest

from assay.config.scales import SCALES, is_at_most, is_scale, nodes_of_scale, number_in, scales_in


@pytest.mark.parametrize(
    ('scale', 'extras', 'nodes'),
    [
        ('1_node', {}, 1),
        ('3_nodes', {}, 3),
        ('768_nodes', {'nodes': 2}, 768),
        ('all', {'nodes': 9}, 9),
        ('half', {'nodes': 9}, 4),
        ('half', {'nodes': 4}, 2),
    ],
)
def test_nodes_of_a_scale(scale, extras, nodes):
    assert is_scale(scale) and nodes_of_scale(scale, extras) == nodes


@pytest.mark.parametrize(
    'text', ['1_nodes', '2_node', '0_nodes', '02_nodes', 'all_nodes', '\u0663_nodes']
)
def test_what_is_no_scale(text):
    assert not is_scale(text)


@pytest.mark.parametrize(
    ('scale', 'nodes'), [('all', None), ('all', 1), ('half', 3), ('all', '8'), ('all', True)]
)
def test_a_part_of_nobody_knows_how_many(scale, nodes):
    """A part that is one node is `1_node`, under which it has its references."""
    with pytest.raises(ValueError, match=r"'extras': \{'nodes': 64\}"):
        nodes_of_scale(scale, {} if nodes is None else {'nodes': nodes})


def test_scales_in_the_order_of_their_nodes():
    features = ['scale_all', 'tcp', 'scale_12_nodes', 'scale_half', 'scale_2_nodes', 'scale_1_node']
    assert scales_in(features) == ['1_node', '2_nodes', '12_nodes', 'half', 'all']


def test_parts_are_of_no_few_nodes():
    assert is_at_most('4_nodes', 4) and not is_at_most('5_nodes', 4) and not is_at_most('all', 4)


def test_the_usual_ones_are_scales():
    assert {name: number_in(name) for name in SCALES} == SCALES
