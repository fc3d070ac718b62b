#include "broadcast.hpp"

#include <climits>

#include "application.hpp"

namespace hpl {

namespace {

constexpr int TAG = 1;

// Seconds of a poll while something is on its way. Some MPIs (MPICH over shared memory) move a long
// message only while both sides are inside MPI, piece by piece: single looks between two products
// never meet the other side's, and the panel arrives when all is computed. Between two polls there is
// some MB to move, however large the matrix is: a panel is as long as a tile is.
constexpr double POLL = 200e-6;

} // namespace

Broadcast::Broadcast(MPI_Comm row, Topology chosen) : comm(row), topology(chosen)
{
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    sent.resize(static_cast<std::size_t>(size));
}

Broadcast::~Broadcast()
{
    let_go();
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
        sent[own]++;
    }
}

void Broadcast::poll()
{
    double until = MPI_Wtime() + POLL;
    while (advance() && MPI_Wtime() < until)
        continue;
}

bool Broadcast::advance()
{
    if (state == IDLE)
        return false;
    int done = 0;
    if (state == HERE) {
        if (outgoing.empty())
            return false;
        MPI_Testall(static_cast<int>(outgoing.size()), outgoing.data(), &done, MPI_STATUSES_IGNORE);
        return !done;
    }
    MPI_Testall(1, &incoming, &done, MPI_STATUSES_IGNORE);
    if (!done)
        return true;
    if (state == SCATTERING) {
        // In place the first count means nothing, but MUST 1.9 holds it against what others receive.
        MPI_Iallgather(MPI_IN_PLACE, piece, MPI_DOUBLE, data, piece, MPI_DOUBLE, comm, &incoming);
        state = COLLECTING;
        return true;
    }
    if (state == RECEIVING)
        pass_on();
    state = HERE;
    return true;
}

void Broadcast::receive()
{
    arrive();
    assay::ran();
}

void Broadcast::release()
{
    let_go();
    assay::ran();
}

void Broadcast::arrive()
{
    while (state != HERE && state != IDLE)
        advance();
}

void Broadcast::let_go()
{
    arrive();
    if (!outgoing.empty())
        MPI_Waitall(static_cast<int>(outgoing.size()), outgoing.data(), MPI_STATUSES_IGNORE);
    outgoing.clear();
    state = IDLE;
}

} // namespace hpl
