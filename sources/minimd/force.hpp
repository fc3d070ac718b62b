// What force styles have in common.
#ifndef MINIMD_FORCE_HPP
#define MINIMD_FORCE_HPP

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "atoms.hpp"
#include "ghosts.hpp"
#include "neighbours.hpp"
#include "settings.hpp"

namespace minimd {

// A sum of many terms without the loss of their last digits (W. Kahan, Comm. ACM 8 (1965) 40).
class LongSum {
public:
    void add(double term)
    {
        double corrected = term - excess, next = total + corrected;
        excess = (next - total) - corrected;
        total = next;
    }
    double value() const { return total; }

private:
    double total = 0, excess = 0;
};

struct EamPotential;

// Sums over this rank's share of the pairs.
struct Sums {
    double energy = 0;
    double virial = 0; // r . F
    double inside = 0; // pairs within the cut-off; those with ghosts count as shared
};

// How many pairs the loop went over, and how many of them were within the cut-off: each as often
// as it was computed.
struct Pairs {
    double listed = 0, inside = 0;
};

// The time of each thread's atoms, in blocks of equally many. A thread that has to wait for a core
// waits within one or two of them, and the others tell how long all would have taken.
class Blocks {
public:
    static constexpr int ATOMS = 256; // some 50 us

    void begin(int threads);
    void took(int thread, double seconds, int atoms)
    {
        Thread &own = threads[static_cast<std::size_t>(thread)];
        own.all += seconds;
        if (atoms == ATOMS)
            own.whole.push_back(seconds);
    }
    // Seconds of the slowest thread that went beyond what its blocks take, each by their median.
    double interruption() const;

private:
    struct alignas(64) Thread {
        double all = 0;            // seconds
        std::vector<double> whole; // of each block that is not the last
    };
    std::vector<Thread> threads;
};

class Force {
public:
    virtual ~Force() = default;
    // Seconds of the last computation in which it was interrupted, as far as that is known.
    virtual double interruption() const { return 0; }
    // Forces on all atoms; of ghosts, what lists with ghost newton give them.
    virtual void compute(Atoms &atoms, const Neighbours &neighbours, Ghosts &ghosts) = 0;
    // The same with the sums.
    virtual Sums compute_with_sums(Atoms &atoms, const Neighbours &neighbours, Ghosts &ghosts) = 0;
    // Floating-point operations of one computation (see docs/minimd.md).
    virtual double operations(const Pairs &pairs, const Neighbours &neighbours) const = 0;
    virtual double cut() const = 0;
    // The tables, where there are any.
    virtual const EamPotential *embedded_atoms() const { return nullptr; }
    // The pair potential at the cut-off: what a pair takes along when it comes or goes.
    virtual double energy_at_cut() const = 0;
    // Energy per atom where each has others at these distances, without that of pairs at the
    // cut-off. Apart from the tables, nothing of it is shared with what computes the forces.
    virtual double crystal_energy(const std::vector<double> &distances) const = 0;
};

std::unique_ptr<Force> make_lennard_jones(const Settings &settings);
// Sets the atoms' mass and says what the potential is.
std::unique_ptr<Force> make_eam(const Settings &settings, Atoms &atoms, std::string &potential);

// For a count after the run.
Pairs count_pairs(const Atoms &atoms, const Neighbours &neighbours, double cut);

// Rows that threads add to at any place: with several threads each has its own, and only what it
// touched is cleared and summed.
class SharedRows {
public:
    // `add(thread, rows)` is called for each part of the neighbour lists; what it added, summed up,
    // is in `to` after.
    template <typename Add>
    void sum(double *to, const Neighbours &neighbours, int rows, Add add);

private:
    Buffer<double> own;
};

template <typename Add>
void SharedRows::sum(double *to, const Neighbours &neighbours, int rows, Add add)
{
    int threads = neighbours.threads(), blocks = neighbours.blocks();
    std::size_t all = ROW * static_cast<std::size_t>(rows);
    constexpr std::size_t block = ROW * Neighbours::BLOCK;
    if (threads == 1) {
        std::fill_n(to, all, 0.0);
        add(0, to);
        return;
    }
    std::size_t stride = block * static_cast<std::size_t>(blocks);
    own.reserve(stride * static_cast<std::size_t>(threads));
#pragma omp parallel
    {
#pragma omp for schedule(static, 1)
        for (int thread = 0; thread < threads; thread++) {
            double *mine = own.data() + stride * static_cast<std::size_t>(thread);
            for (int b = 0; b < blocks; b++)
                if (neighbours.touches(thread, b))
                    std::fill_n(mine + block * static_cast<std::size_t>(b), block, 0.0);
            add(thread, mine);
        }
#pragma omp for schedule(static)
        for (int b = 0; b < blocks; b++) {
            std::size_t from = block * static_cast<std::size_t>(b);
            std::size_t end = std::min(from + block, all);
            std::fill(to + from, to + end, 0.0);
            for (int thread = 0; thread < threads; thread++) {
                if (!neighbours.touches(thread, b))
                    continue;
                const double *theirs = own.data() + stride * static_cast<std::size_t>(thread);
                for (std::size_t c = from; c < end; c++)
                    to[c] += theirs[c];
            }
        }
    }
}

} // namespace minimd

#endif
