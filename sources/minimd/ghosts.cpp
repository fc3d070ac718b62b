#include "ghosts.hpp"

#include <mpi.h>
#include <omp.h>

#include <climits>
#include <cmath>
#include <limits>

#include "application.hpp"

namespace minimd {

namespace {

constexpr int WORTH_THREADS = 4000; // rows; below, starting the threads takes longer than the work

enum Tag { ATOMS_DOWN, ATOMS_UP, FIRST_SWAP };

std::size_t row(int i)
{
    return ROW * static_cast<std::size_t>(i);
}

} // namespace

Ghosts::Ghosts(const Domain &domain, double reach, int rank)
    : domain(domain), reach(reach), me(rank)
{
    for (int d = 0; d < 3; d++)
        hops[d] = static_cast<int>(reach * domain.grid[d] / domain.period[d]) + 1;
    swaps.resize(2 * (hops[0] + hops[1] + hops[2]));
    Swap *swap = swaps.data();
    for (int d = 0; d < 3; d++)
        for (int hop = 0; hop < hops[d]; hop++)
            for (int side : { DOWN, UP }) {
                swap->dimension = d;
                swap->side = side;
                swap->to = domain.neighbour[d][side];
                swap->from = domain.neighbour[d][1 - side];
                bool at_end = domain.place[d] == (side == DOWN ? 0 : domain.grid[d] - 1);
                swap->shift = !at_end ? 0 : side == DOWN ? domain.period[d] : -domain.period[d];
                swap->previous = hop ? swap - 2 : nullptr;
                swap++;
            }
}

// Sends rows of WIDTH doubles, which `pack(k, row)` writes, and hands what comes to
// `unpack(k, row)`. With the rank itself, no message: rows read and rows written are different
// ones.
template <int WIDTH, typename Pack, typename Unpack>
void Ghosts::transfer(int to, int from, int tag, int sent, int received, Pack pack, Unpack unpack)
{
    if (to == me) {
#pragma omp parallel for schedule(static) if (sent > WORTH_THREADS)
        for (int k = 0; k < sent; k++) {
            double row[WIDTH];
            pack(k, row);
            unpack(k, row);
        }
        return;
    }

    auto end = [](int rows) { return WIDTH * static_cast<std::size_t>(rows); };
    if (end(std::max(sent, received)) >= INT_MAX)
        assay::fail("a message of %d atoms is more than MPI can count; use more ranks",
                    std::max(sent, received));
    outgoing.reserve(end(sent) + 1);
    incoming.reserve(end(received) + 1);
    double *out = outgoing.data(), *in = incoming.data();
#pragma omp parallel for schedule(static) if (sent > WORTH_THREADS)
    for (int k = 0; k < sent; k++)
        pack(k, out + end(k));

    double expected = static_cast<double>(++serial);
    out[end(sent)] = expected;
    in[end(received)] = -1;
    MPI_Sendrecv(out, static_cast<int>(end(sent)) + 1, MPI_DOUBLE, to, tag, in,
                 static_cast<int>(end(received)) + 1, MPI_DOUBLE, from, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (in[end(received)] != expected) {
        // What is in the buffer is of another message, or of none.
        lost++;
        return;
    }
#pragma omp parallel for schedule(static) if (received > WORTH_THREADS)
    for (int k = 0; k < received; k++)
        unpack(k, in + end(k));
}

int Ghosts::count_from(int to, int from, int tag, int sent)
{
    int received = -1;
    MPI_Sendrecv(&sent, 1, MPI_INT, to, tag, &received, 1, MPI_INT, from, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (received < 0)
        assay::fail("the message from rank %d that says how many atoms follow did not arrive",
                    from);
    return received;
}

// The numbers from `first` to before `last` that are wanted, in order.
template <typename Predicate>
int Ghosts::select(int first, int last, Buffer<int> &list, Predicate wanted)
{
    int most = last - first;
    list.reserve(static_cast<std::size_t>(most));
    if (most <= WORTH_THREADS) {
        int count = 0;
        for (int i = first; i < last; i++) {
            list[count] = i;
            count += wanted(i);
        }
        return count;
    }
    chosen_by.assign(static_cast<std::size_t>(omp_get_max_threads()) + 1, 0);
    int *before = chosen_by.data();
#pragma omp parallel
    {
        int threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int from = first + static_cast<int>(static_cast<long>(most) * thread / threads);
        int to = first + static_cast<int>(static_cast<long>(most) * (thread + 1) / threads);
        int count = 0;
        for (int i = from; i < to; i++)
            count += wanted(i);
        before[thread + 1] = count;
#pragma omp barrier
#pragma omp single
        for (int t = 0; t < threads; t++)
            before[t + 1] += before[t];
        int *next = list.data() + before[thread];
        for (int i = from; i < to; i++)
            if (wanted(i))
                *next++ = i;
    }
    int count = 0;
    for (int through : chosen_by)
        count = std::max(count, through);
    return count;
}

// Atoms that move on --------------------------------------------------------------------------

void Ghosts::wrap(Atoms &atoms)
{
    double *x = atoms.x.data();
    const double *period = domain.period;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < atoms.local; i++)
        for (int d = 0; d < 3; d++) {
            double &at = x[row(i) + d];
            // In this order: a sum may round to the period itself.
            if (at < 0)
                at += period[d];
            if (at >= period[d])
                at -= period[d];
        }
}

void Ghosts::exchange(Atoms &atoms)
{
    atoms.ghosts = 0;
    wrap(atoms);
    for (int d = 0; d < 3; d++)
        if (domain.grid[d] > 1)
            for (int hop = 0; hop < hops[d]; hop++)
                pass_on(atoms, d);
    refuse_strays(atoms);
    assay::ran();
}

// Each atom that is outside in this dimension, one rank further, the shorter way.
void Ghosts::pass_on(Atoms &atoms, int d)
{
    double low = domain.low[d], high = domain.high[d], period = domain.period[d];
    int leaving = select(0, atoms.local, chosen, [&, x = atoms.x.data()](int i) {
        double at = x[row(i) + d];
        return !(at >= low && at < high);
    });

    std::vector<double> leavers[2];
    for (int k = leaving - 1; k >= 0; k--) {
        int i = chosen[k], last = --atoms.local;
        double *x = atoms.x.data(), *v = atoms.v.data();
        double away = std::remainder(x[row(i) + d] - 0.5 * (low + high), period);
        std::vector<double> &to = leavers[away < 0 ? DOWN : UP];
        to.insert(to.end(), x + row(i), x + row(i) + 3);
        to.insert(to.end(), v + row(i), v + row(i) + 3);
        std::memcpy(x + row(i), x + row(last), ROW * sizeof(double));
        std::memcpy(v + row(i), v + row(last), ROW * sizeof(double));
    }

    for (int side : { DOWN, UP }) {
        const std::vector<double> &going = leavers[side];
        int to = domain.neighbour[d][side], from = domain.neighbour[d][1 - side];
        int tag = side == DOWN ? ATOMS_DOWN : ATOMS_UP;
        int sent = static_cast<int>(going.size() / 6);
        int received = count_from(to, from, tag, sent);
        atoms.reserve(atoms.local + received);
        int first = atoms.local;
        long lost_before = lost;
        transfer<6>(
            to, from, tag, sent, received,
            [&](int k, double *out) { std::memcpy(out, &going[6 * k], 6 * sizeof(double)); },
            [&](int k, const double *in) {
                double *x = atoms.x.data() + row(first + k), *v = atoms.v.data() + row(first + k);
                for (int c = 0; c < 3; c++) {
                    x[c] = in[c];
                    v[c] = in[3 + c];
                }
                x[3] = v[3] = 0;
            });
        if (lost == lost_before)
            atoms.local += received;
    }
}

void Ghosts::refuse_strays(const Atoms &atoms)
{
    const double *x = atoms.x.data();
    int strays = select(0, atoms.local, chosen, [&](int i) {
        bool inside = true;
        for (int d = 0; d < 3; d++)
            inside &= x[row(i) + d] >= domain.low[d] && x[row(i) + d] < domain.high[d];
        return !inside;
    });
    if (strays) {
        const double *at = x + row(chosen[0]);
        assay::fail("%d atoms moved further than to the next ranks, one of them to (%g, %g, %g), "
                    "and are lost; use a smaller time step, or reneighbour more often",
                    strays, at[0], at[1], at[2]);
    }
}

// Ghosts ---------------------------------------------------------------------------------------

void Ghosts::borders(Atoms &atoms)
{
    atoms.ghosts = 0;
    int seen = 0;
    int tag = FIRST_SWAP;
    for (Swap &swap : swaps) {
        int d = swap.dimension;
        // Both first hops look at what earlier dimensions brought, and not at each other's.
        if (!swap.previous && swap.side == DOWN)
            seen = atoms.all();
        int from = swap.previous ? swap.previous->first : 0;
        int to = swap.previous ? from + swap.previous->received : seen;
        const double *x = atoms.x.data();
        double edge = swap.side == DOWN ? domain.low[d] + reach : domain.high[d] - reach;
        swap.sent = swap.side == DOWN
                        ? select(from, to, swap.list, [=](int i) { return x[row(i) + d] <= edge; })
                        : select(from, to, swap.list, [=](int i) { return x[row(i) + d] >= edge; });
        swap.received = swap.to == me ? swap.sent : count_from(swap.to, swap.from, tag, swap.sent);
        swap.first = atoms.all();
        atoms.reserve(swap.first + swap.received);
        double *rows = atoms.x.data();
        long lost_before = lost;
        transfer<3>(
            swap.to, swap.from, tag, swap.sent, swap.received,
            [&](int k, double *out) {
                std::memcpy(out, rows + row(swap.list[k]), 3 * sizeof(double));
                out[d] += swap.shift;
            },
            [&](int k, const double *in) {
                double *at = rows + row(swap.first + k);
                std::memcpy(at, in, 3 * sizeof(double));
                at[3] = 0;
            });
        if (lost != lost_before)
            assay::fail("the message with ghost atoms from rank %d did not arrive", swap.from);
        atoms.ghosts += swap.received;
        tag++;
    }
    atoms.place_nobody();
    assay::ran();
}

void Ghosts::forward_positions(Atoms &atoms)
{
    double *rows = atoms.x.data();
    int tag = FIRST_SWAP;
    for (Swap &swap : swaps)
        transfer<3>(
            swap.to, swap.from, tag++, swap.sent, swap.received,
            [&](int k, double *out) {
                std::memcpy(out, rows + row(swap.list[k]), 3 * sizeof(double));
                out[swap.dimension] += swap.shift;
            },
            [&](int k, const double *in) {
                std::memcpy(rows + row(swap.first + k), in, 3 * sizeof(double));
            });
    assay::ran();
}

void Ghosts::forward_fourth(Atoms &atoms)
{
    double *rows = atoms.x.data();
    int tag = FIRST_SWAP;
    for (Swap &swap : swaps)
        transfer<1>(
            swap.to, swap.from, tag++, swap.sent, swap.received,
            [&](int k, double *out) { *out = rows[row(swap.list[k]) + 3]; },
            [&](int k, const double *in) { rows[row(swap.first + k) + 3] = *in; });
}

void Ghosts::reverse_forces(Atoms &atoms)
{
    double *rows = atoms.f.data();
    int tag = FIRST_SWAP + static_cast<int>(swaps.size());
    for (auto swap = swaps.rbegin(); swap != swaps.rend(); ++swap)
        transfer<3>(
            swap->from, swap->to, --tag, swap->received, swap->sent,
            [&](int k, double *out) {
                std::memcpy(out, rows + row(swap->first + k), 3 * sizeof(double));
            },
            [&](int k, const double *in) {
                double *at = rows + row(swap->list[k]);
                for (int c = 0; c < 3; c++)
                    at[c] += in[c];
            });
    assay::ran();
}

} // namespace minimd
