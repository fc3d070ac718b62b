#include "broadcast.hpp"

#include <climits>

#include "application.hpp"

namespace hpl {

namespace {

constexpr int TAG = 1;

} // namespace

Broadcast::Broadcast(MPI_Comm row, Topology chosen) : comm(row), topology(chosen)
{
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
}

Broadcast::~Broadcast()
{
    release();
}

// Who sends to the rank that is `distance` > 0 to the right of the root, as a distance.
int Broadcast::parent_of(int distance) const
{
    bool modified = topology == Topology::RING_MODIFIED || topology == Topology::TWO_RINGS_MODIFIED;
    bool two = topology == Topology::TWO_RINGS || topology == Topology::TWO_RINGS_MODIFIED;
    int first = modified ? 2 : 1; // where the ring begins, or the first of two
    int second = first + (size - first + 1) / 2;
    bool begins = distance <= first || (two && distance == second);
    return begins ? 0 : distance - 1;
}

void Broadcast::start(double *to_send, std::size_t doubles, int from)
{
    if (doubles > INT_MAX)
        assay::fail("a panel of %zu elements is more than a message holds; use more process rows",
                    doubles);
    data = to_send;
    count = static_cast<int>(doubles);
    root = from;
    if (size == 1) {
        state = HERE;
    } else if (topology == Topology::LONG || topology == Topology::LONG_MODIFIED) {
        piece = (count + size - 1) / size;
        double *own = data + static_cast<std::size_t>(piece) * rank;
        MPI_Iscatter(data, piece, MPI_DOUBLE, rank == root ? MPI_IN_PLACE : own, piece, MPI_DOUBLE,
                     root, comm, &incoming);
        state = SCATTERING;
    } else if (rank == root) {
        pass_on();
        state = HERE;
    } else {
        int distance = (rank - root + size) % size;
        int parent = (parent_of(distance) + root) % size;
        MPI_Irecv(data, count, MPI_DOUBLE, parent, TAG, comm, &incoming);
        state = RECEIVING;
    }
}

void Broadcast::pass_on()
{
    int own = (rank - root + size) % size;
    for (int distance = 1; distance < size; distance++) {
        if (parent_of(distance) != own)
            continue;
        outgoing.emplace_back();
        MPI_Isend(data, count, MPI_DOUBLE, (distance + root) % size, TAG, comm, &outgoing.back());
    }
}

void Broadcast::poll()
{
    int done = 0;
    if (state == IDLE)
        return;
    if (state == HERE) {
        // MPI may need the call to move a long message on.
        if (!outgoing.empty())
            MPI_Testall(static_cast<int>(outgoing.size()), outgoing.data(), &done,
                        MPI_STATUSES_IGNORE);
        return;
    }
    MPI_Testall(1, &incoming, &done, MPI_STATUSES_IGNORE);
    if (!done)
        return;
    if (state == SCATTERING) {
        MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, piece, MPI_DOUBLE, comm, &incoming);
        state = COLLECTING;
        return;
    }
    if (state == RECEIVING)
        pass_on();
    state = HERE;
}

void Broadcast::receive()
{
    while (state != HERE && state != IDLE)
        poll();
}

void Broadcast::release()
{
    receive();
    if (!outgoing.empty())
        MPI_Waitall(static_cast<int>(outgoing.size()), outgoing.data(), MPI_STATUSES_IGNORE);
    outgoing.clear();
    state = IDLE;
}

} // namespace hpl
