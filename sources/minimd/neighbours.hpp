// Neighbour lists from bins, and the order of atoms in memory.
#ifndef MINIMD_NEIGHBOURS_HPP
#define MINIMD_NEIGHBOURS_HPP

#include <cstddef>
#include <vector>

#include "atoms.hpp"
#include "buffer.hpp"
#include "domain.hpp"
#include "settings.hpp"

namespace minimd {

// Atoms are sorted by bins with x fastest, so that the bins of a row in x are one piece of memory:
// the candidates of an atom are a few such pieces.
//
// Half lists hold a pair of own atoms once. With ghost newton, a pair of an own atom and a ghost
// is held by one of the two ranks: the atom further back in (z, y, x) has the other one in its
// list. Positions of a ghost and of its atom differ by whole periods, so that both ranks decide
// alike.
class Neighbours {
public:
    Neighbours(const Settings &settings, const Domain &domain);

    // Own atoms in the order of their bins; ghosts are gone after.
    void sort(Atoms &atoms);
    void build(const Atoms &atoms);

    // The list of an atom: `count` names, a multiple of LANES, the last ones perhaps nobody's.
    struct List {
        const int *names;
        int count;
    };
    List of(int thread, int atom) const
    {
        return { part[thread].names.data() + start[atom], count[atom] };
    }

    // The atoms of a thread; the others' lists are in other threads' memory.
    struct Range {
        int first, last;
    };
    Range atoms_of(int thread) const;
    int threads() const { return static_cast<int>(part.size()); }

    // Blocks of rows that a thread's lists, or its own atoms, have to do with.
    static constexpr int BLOCK = 64;
    int blocks() const { return used_blocks; }
    bool touches(int thread, int block) const { return part[thread].touched[block]; }

    bool half() const { return is_half; }
    bool ghost_newton_on() const { return ghost_newton; }

    // Of a rank, before there is any.
    static double bins_of(const Settings &settings, const Domain &domain);
    static double bytes(const Settings &settings, const Domain &domain, double atoms, double all,
                        int threads);

private:
    struct Part {
        Buffer<int> names;
        Buffer<char> touched;
    };
    enum class Kind { FULL, HALF, HALF_WITH_OWN };

    int bin(const double *at) const;
    int bin(double at, int d) const;
    void sort_by_bins(const double *x, int atoms);
    void gather_positions(const double *x, int atoms);
    template <Kind KIND>
    void build_part(const Atoms &atoms, int thread);

    double cut;
    bool is_half, ghost_newton;
    double origin[3], per_length[3]; // of the bins, which cover the ghosts too
    int bins[3], reach_bins[3];

    Buffer<int> bin_of, counts, first_of; // first_of[bin]: place of its first atom in `order`
    Buffer<int> order;
    Buffer<double> ordered[3]; // coordinates in that order
    Buffer<double> fresh_x, fresh_v;
    Buffer<std::size_t> start;
    Buffer<int> count;
    std::vector<Part> part; // of threads
    int own = 0, used_blocks = 0;
};

} // namespace minimd

#endif
