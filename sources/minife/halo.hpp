// Exchange of values at nodes next to other ranks.
#ifndef MINIFE_HALO_HPP
#define MINIFE_HALO_HPP

#include <mpi.h>

#include <vector>

#include "matrix.hpp"
#include "mesh.hpp"

namespace minife {

class Halo {
public:
    explicit Halo(const Mesh &mesh);

    // Sends our nodes' values next to others, and receives theirs into the ghosts of `x`, which may
    // not be touched before finish().
    void start(Vector &x);
    // Lets an MPI that works only when it is called get on with it.
    void progress();
    void finish();

    std::int64_t bytes() const
    {
        return std::int64_t(to_send.size()) * (sizeof(int) + sizeof(double));
    }

private:
    struct Link {
        int rank, first_ghost, ghosts;
        std::size_t first_sent;
        int sent;
    };
    std::vector<Link> links;
    std::vector<int> to_send; // local numbers, for all neighbours in turn
    Buffer<double> send_buffer;
    std::vector<MPI_Request> requests;
};

} // namespace minife

#endif
