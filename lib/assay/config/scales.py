"""Scales: the node counts that checks are made for."""

#: Nodes of each scale. A partition offers a scale by the feature scale_<name>.
SCALES = {f'{n}_node' if n == 1 else f'{n}_nodes': n for n in (1, 2, 4, 8, 16)}
