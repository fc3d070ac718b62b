// Messages between neighbouring ranks: atoms that move on, and ghosts, the copies of atoms within
// reach of a rank's part of the box.
//
// Dimension by dimension, each rank sends to the rank below and to the one above, what it got in
// earlier dimensions included, so that edges and corners need no messages of their own. Where the
// cut-off reaches beyond the next rank, what arrived is passed on, hop by hop.
//
// A message ends with a number that both sides count alike. The receiver's place for it is wiped
// before, so that a message that never came, or another one, does not pass for it.
#ifndef MINIMD_GHOSTS_HPP
#define MINIMD_GHOSTS_HPP

#include <cstdint>
#include <vector>

#include "atoms.hpp"
#include "buffer.hpp"
#include "domain.hpp"

namespace minimd {

class Ghosts {
public:
    Ghosts(const Domain &domain, double reach, int rank);

    // Atoms that left this rank's part go to the rank they are in now. All ghosts are gone after.
    void exchange(Atoms &atoms);
    // Makes the ghosts anew, and the lists by which the functions below refresh them.
    void borders(Atoms &atoms);
    void forward_positions(Atoms &atoms);
    void forward_fourth(Atoms &atoms); // the fourth column of the positions
    void reverse_forces(Atoms &atoms); // adds those of ghosts to the atoms that they are copies of

    // Messages of this rank that did not arrive; the run went on without them.
    long missing() const { return lost; }

private:
    struct Swap {
        int dimension, side;
        int to, from; // ranks
        double shift; // of positions in that dimension, where it crosses the end of the box
        Swap *previous; // hop, whose ghosts it passes on
        Buffer<int> list;
        int sent = 0, first = 0, received = 0;
    };

    template <int WIDTH, typename Pack, typename Unpack>
    void transfer(int to, int from, int tag, int sent, int received, Pack pack, Unpack unpack);
    int count_from(int to, int from, int tag, int sent);
    template <typename Predicate>
    int select(int first, int last, Buffer<int> &list, Predicate wanted);
    void wrap(Atoms &atoms);
    void pass_on(Atoms &atoms, int dimension);
    void refuse_strays(const Atoms &atoms);

    const Domain &domain;
    double reach;
    int me;
    int hops[3];
    std::vector<Swap> swaps;
    Buffer<double> outgoing, incoming;
    Buffer<int> chosen;
    std::vector<int> chosen_by; // threads
    std::int64_t serial = 0;
    long lost = 0;
};

} // namespace minimd

#endif
