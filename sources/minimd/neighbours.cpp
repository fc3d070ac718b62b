#include "neighbours.hpp"

#include <omp.h>

#include <cmath>

#include "application.hpp"

namespace minimd {

namespace {

std::size_t row(int i)
{
    return ROW * static_cast<std::size_t>(i);
}

int share(int all, int part, int parts)
{
    return static_cast<int>(static_cast<long>(all) * part / parts);
}

// Bins along a dimension of this rank, ghosts included; perhaps more than an int can count.
double bins_along(const Settings &settings, const Domain &domain, int d)
{
    double length = domain.high[d] - domain.low[d] + 2 * settings.neighbour_cut;
    return std::floor(length * settings.bins[d] / domain.period[d]) + 1;
}

} // namespace

double Neighbours::bins_of(const Settings &settings, const Domain &domain)
{
    double product = 1;
    for (int d = 0; d < 3; d++)
        product *= bins_along(settings, domain, d);
    return product;
}

Neighbours::Neighbours(const Settings &settings, const Domain &domain)
    : cut(settings.neighbour_cut), is_half(settings.half), ghost_newton(settings.ghost_newton),
      part(static_cast<std::size_t>(omp_get_max_threads()))
{
    for (int d = 0; d < 3; d++) {
        origin[d] = domain.low[d] - cut;
        per_length[d] = settings.bins[d] / domain.period[d];
        bins[d] = static_cast<int>(bins_along(settings, domain, d));
        reach_bins[d] = static_cast<int>(cut * per_length[d]) + 1;
    }
}

double Neighbours::bytes(const Settings &settings, const Domain &domain, double atoms, double all,
                         int threads)
{
    double sphere = 4.0 / 3.0 * std::acos(-1.0) * std::pow(settings.neighbour_cut, 3);
    double names = settings.density * sphere * (settings.half ? 0.5 : 1) * 1.1 + LANES;
    double grid = bins_of(settings, domain);
    return atoms * (names * sizeof(int) + 12) + all * (3 * sizeof(double) + 2 * sizeof(int)) +
           grid * sizeof(int) * (threads + 1.0);
}

Neighbours::Range Neighbours::atoms_of(int thread) const
{
    return { share(own, thread, threads()), share(own, thread + 1, threads()) };
}

// Never falls where the coordinate grows; that is all that the order of ghosts and atoms needs.
int Neighbours::bin(double at, int d) const
{
    int place = static_cast<int>((at - origin[d]) * per_length[d]);
    return std::min(std::max(place, 0), bins[d] - 1);
}

int Neighbours::bin(const double *at) const
{
    return (bin(at[2], 2) * bins[1] + bin(at[1], 1)) * bins[0] + bin(at[0], 0);
}

// A counting sort: `order` lists the atoms by bins, those of a bin in the order they had.
void Neighbours::sort_by_bins(const double *x, int atoms)
{
    int grid = bins[0] * bins[1] * bins[2], most = omp_get_max_threads();
    bin_of.reserve(static_cast<std::size_t>(atoms));
    order.reserve(static_cast<std::size_t>(atoms));
    first_of.reserve(static_cast<std::size_t>(grid) + 1);
    counts.reserve(static_cast<std::size_t>(grid) * static_cast<std::size_t>(most));
    std::vector<int> before(static_cast<std::size_t>(most) + 1, 0); // atoms in bins of threads
#pragma omp parallel
    {
        int threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int first = share(atoms, thread, threads), last = share(atoms, thread + 1, threads);
        int first_bin = share(grid, thread, threads), last_bin = share(grid, thread + 1, threads);
        auto counts_of = [&](int t) { return counts.data() + static_cast<std::size_t>(grid) * t; };
        int *mine = counts_of(thread);
        std::fill(mine, mine + grid, 0);
        for (int i = first; i < last; i++) {
            bin_of[i] = bin(x + row(i));
            mine[bin_of[i]]++;
        }
#pragma omp barrier
        int total = 0;
        for (int t = 0; t < threads; t++)
            for (int b = first_bin; b < last_bin; b++)
                total += counts_of(t)[b];
        before[thread + 1] = total;
#pragma omp barrier
#pragma omp single
        for (int t = 0; t < threads; t++)
            before[t + 1] += before[t];
        int next = before[thread];
        for (int b = first_bin; b < last_bin; b++) {
            first_of[b] = next;
            for (int t = 0; t < threads; t++) {
                int here = counts_of(t)[b];
                counts_of(t)[b] = next;
                next += here;
            }
        }
#pragma omp barrier
        for (int i = first; i < last; i++)
            order[mine[bin_of[i]]++] = i;
    }
    first_of[grid] = atoms;
}

void Neighbours::sort(Atoms &atoms)
{
    atoms.ghosts = 0;
    sort_by_bins(atoms.x.data(), atoms.local);
    fresh_x.reserve(atoms.x.capacity());
    fresh_v.reserve(atoms.v.capacity());
#pragma omp parallel for schedule(static)
    for (int i = 0; i < atoms.local; i++) {
        std::memcpy(&fresh_x[row(i)], &atoms.x[row(order[i])], ROW * sizeof(double));
        std::memcpy(&fresh_v[row(i)], &atoms.v[row(order[i])], ROW * sizeof(double));
    }
    atoms.x.swap(fresh_x);
    atoms.v.swap(fresh_v);
}

void Neighbours::gather_positions(const double *x, int atoms)
{
    // The loop over candidates reads whole vectors.
    for (Buffer<double> &coordinate : ordered)
        coordinate.reserve(static_cast<std::size_t>(atoms) + LANES);
    order.reserve(static_cast<std::size_t>(atoms) + LANES, static_cast<std::size_t>(atoms));
#pragma omp parallel for schedule(static)
    for (int i = 0; i < atoms; i++)
        for (int d = 0; d < 3; d++)
            ordered[d][i] = x[row(order[i]) + d];
    for (int i = atoms; i < atoms + LANES; i++) {
        for (int d = 0; d < 3; d++)
            ordered[d][i] = 0;
        order[i] = 0;
    }
}

void Neighbours::build(const Atoms &atoms)
{
    own = atoms.local;
    used_blocks = atoms.all() / BLOCK + 1; // nobody's row included
    sort_by_bins(atoms.x.data(), atoms.all());
    gather_positions(atoms.x.data(), atoms.all());
    start.reserve(static_cast<std::size_t>(own));
    count.reserve(static_cast<std::size_t>(own));
    // Threads may be fewer than asked for; the parts are not.
#pragma omp parallel for schedule(static, 1)
    for (int thread = 0; thread < threads(); thread++) {
        if (!is_half)
            build_part<Kind::FULL>(atoms, thread);
        else if (ghost_newton)
            build_part<Kind::HALF>(atoms, thread);
        else
            build_part<Kind::HALF_WITH_OWN>(atoms, thread);
    }
    assay::ran();
}

template <Neighbours::Kind KIND>
void Neighbours::build_part(const Atoms &atoms, int thread)
{
    Part &mine = part[thread];
    mine.touched.reserve(static_cast<std::size_t>(used_blocks));
    std::fill_n(mine.touched.data(), used_blocks, 0);
    Range range = atoms_of(thread);
    const double *positions = atoms.x.data();
    const double *xs = ordered[0].data(), *ys = ordered[1].data(), *zs = ordered[2].data();
    const Mask lane{ 0, 1, 2, 3, 4, 5, 6, 7 };
    const Lanes square = all(cut * cut);
    std::size_t used = 0;

    for (int i = range.first; i < range.last; i++) {
        const double *at = positions + row(i);
        int centre[3], low[3], high[3];
        for (int d = 0; d < 3; d++) {
            centre[d] = bin(at[d], d);
            low[d] = std::max(centre[d] - reach_bins[d], 0);
            high[d] = std::min(centre[d] + reach_bins[d], bins[d] - 1);
        }
        if (KIND == Kind::HALF) // what is further on in z is in no bin further back
            low[2] = centre[2];

        const Lanes x = all(at[0]), y = all(at[1]), z = all(at[2]);
        start[i] = used;
        for (int k = low[2]; k <= high[2]; k++)
            for (int j = low[1]; j <= high[1]; j++) {
                int line = (k * bins[1] + j) * bins[0];
                int from = first_of[line + low[0]], to = first_of[line + high[0] + 1];
                mine.names.reserve(used + static_cast<std::size_t>(to - from) + 2 * LANES, used);
                int *names = mine.names.data();
                for (int c = from; c < to; c += LANES) {
                    Lanes xj = load(xs + c), yj = load(ys + c), zj = load(zs + c);
                    Lanes dx = x - xj, dy = y - yj, dz = z - zj;
                    Lanes distance = dx * dx + dy * dy + dz * dz;
                    Mask wanted = (distance <= square) & (lane < Mask{} + (to - c));
                    if (KIND == Kind::FULL)
                        wanted &= distance > 0;
                    else if (KIND == Kind::HALF) {
                        if (k == centre[2])
                            wanted &= (zj > z) | ((zj == z) & ((yj > y) | ((yj == y) & (xj > x))));
                    } else {
                        for (int l = 0; l < LANES; l++)
                            wanted[l] &= order[c + l] > i ? -1 : 0; // ghosts come last
                    }
                    used += static_cast<std::size_t>(append(names + used, &order[c], wanted));
                }
            }

        mine.names.reserve(used + LANES, used);
        while ((used - start[i]) % LANES)
            mine.names[used++] = atoms.nobody();
        count[i] = static_cast<int>(used - start[i]);
        if (KIND != Kind::FULL) {
            mine.touched[i / BLOCK] = 1;
            for (std::size_t n = start[i]; n < used; n++)
                mine.touched[mine.names[n] / BLOCK] = 1;
        }
    }
}

} // namespace minimd
