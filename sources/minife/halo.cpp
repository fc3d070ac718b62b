#include "halo.hpp"

namespace minife {

namespace {

constexpr int TAG = 1;

} // namespace

Halo::Halo(const Mesh &mesh)
{
    for (const Neighbour &neighbour : mesh.neighbours) {
        links.push_back({ neighbour.rank, neighbour.first_ghost,
                          static_cast<int>(neighbour.ghosts.volume()), to_send.size(),
                          static_cast<int>(neighbour.boundary.volume()) });
        for_each_node(neighbour.boundary,
                      [&](int x, int y, int z) { to_send.push_back(*mesh.local(x, y, z)); });
    }
    send_buffer = Buffer<double>(to_send.size());
    requests.resize(2 * links.size(), MPI_REQUEST_NULL);
}

void Halo::start(Vector &x)
{
    MPI_Request *request = requests.data();
    for (const Link &link : links)
        MPI_Irecv(&x[link.first_ghost], link.ghosts, MPI_DOUBLE, link.rank, TAG, MPI_COMM_WORLD,
                  request++);
    std::int64_t count = std::int64_t(to_send.size());
#pragma omp parallel for schedule(static) if (count > 10000)
    for (std::int64_t i = 0; i < count; i++)
        send_buffer[i] = x[to_send[i]];
    for (const Link &link : links)
        MPI_Isend(&send_buffer[link.first_sent], link.sent, MPI_DOUBLE, link.rank, TAG,
                  MPI_COMM_WORLD, request++);
}

void Halo::progress()
{
    int done;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
}

void Halo::finish()
{
    if (!requests.empty()) // as on the mesh of one rank
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

} // namespace minife
