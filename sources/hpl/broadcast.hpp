// The broadcast of a panel along the process row, which goes on while the update computes.
#ifndef HPL_BROADCAST_HPP
#define HPL_BROADCAST_HPP

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace hpl {

// As numbered in HPL.dat.
enum class Topology {
    RING,              // from each process column to the next one
    RING_MODIFIED,     // the next one, which needs it first, only receives
    TWO_RINGS,         // two rings of half of the process columns each
    TWO_RINGS_MODIFIED,
    LONG,              // scattered in pieces, which then go round
    LONG_MODIFIED,     // the same here
};

class Broadcast {
public:
    Broadcast(MPI_Comm row, Topology topology);
    ~Broadcast();
    Broadcast(const Broadcast &) = delete;
    Broadcast &operator=(const Broadcast &) = delete;

    // Collective over the row. `data` has `count` doubles, on the root already, and room for as
    // many more as there are ranks in the row. It is in use until release().
    void start(double *data, std::size_t count, int root);

    void poll();    // moves messages on for a moment; call it now and then
    void receive(); // until the data are here
    void release(); // until nobody waits for what this rank passes on

    // Messages that this rank has sent, by how far it was to the right of the root.
    const std::vector<long> &passed_on() const { return sent; }

private:
    int parent_of(int distance) const;
    void pass_on();
    void arrive();
    void let_go();
    bool advance(); // whether something is still on its way

    MPI_Comm comm;
    Topology topology;
    int rank, size;
    double *data = nullptr;
    int count = 0, piece = 0, root = 0;
    enum { IDLE, RECEIVING, SCATTERING, COLLECTING, HERE } state = IDLE;
    MPI_Request incoming = MPI_REQUEST_NULL;
    std::vector<MPI_Request> outgoing;
    std::vector<long> sent;
};

} // namespace hpl

#endif
