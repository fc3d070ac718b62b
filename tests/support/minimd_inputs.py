"""Inputs for miniMD, ours and upstream's alike."""

import math

LENNARD_JONES = """\
Lennard-Jones, with a state every 20 steps

lj
none
lj
{epsilon} {sigma}
8 8 8
100
{timestep}
1.44
{density}
20
{cut} 0.3
20
"""

EMBEDDED_ATOM = """\
Embedded atoms, with a state every 20 steps

metal
none
eam
1.0 1.0
8 8 8
100
0.001
600
0.07041125
20
4.95 1.0
20
"""

INPUTS = {
    'lj': LENNARD_JONES.format(epsilon=1, sigma=1, timestep=0.005, density=0.8442, cut=2.5),
    # Epsilon and sigma that are not 1: a constant that is lost somewhere shows.
    'lj-scaled': LENNARD_JONES.format(
        epsilon=0.167, sigma=1.315, timestep=0.01, density=0.37, cut=3.3
    ),
    'eam': EMBEDDED_ATOM,
}


def potential():
    """A potential in the format funcfl, of functions made up here: powers cut off smoothly."""
    densities, density_spacing, radii, spacing, cut = 500, 0.4, 500, 0.01, 4.95

    def power(r, exponent):
        r = max(r, 1)
        slope = -exponent * (3.61 / cut) ** exponent / cut
        return (3.61 / r) ** exponent - (3.61 / cut) ** exponent - (r - cut) * slope

    embedding = [-0.488 * math.sqrt(k * density_spacing) for k in range(densities)]
    radius = [k * spacing for k in range(radii)]
    charge = [math.sqrt(max(0.01238 * r * power(r, 9), 0) / (27.2 * 0.529)) for r in radius]
    density = [power(r, 6) if r < cut else 0 for r in radius]
    head = f'powers\n 29 63.55 3.61 FCC\n {densities} {density_spacing} {radii} {spacing} {cut}\n'
    values = embedding + charge + density
    lines = [values[k : k + 5] for k in range(0, len(values), 5)]
    return head + ''.join(' '.join(f'{v:.16e}' for v in line) + '\n' for line in lines)
