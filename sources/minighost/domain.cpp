#include "domain.hpp"

#include <algorithm>

namespace minighost {

Domain make_domain(const Options &options, const assay::Job &job)
{
    Domain domain;
    int stride = 1; // in ranks: x runs fastest
    for (int d = 0; d < 3; d++) {
        int parts = options.processes[d], given = options.points[d];
        int place = job.rank / stride % parts;
        domain.grid[d] = parts;
        domain.place[d] = place;
        if (options.scaling == SCALING_WEAK) {
            domain.points[d] = static_cast<long>(given) * parts;
            domain.n[d] = domain.largest[d] = given;
            domain.first[d] = static_cast<long>(given) * place + 1;
        } else { // the first processes take a point more each if they do not divide the mesh
            int rest = given % parts;
            domain.points[d] = given;
            domain.n[d] = given / parts + (place < rest);
            domain.largest[d] = given / parts + (rest > 0);
            domain.first[d] = static_cast<long>(given / parts) * place + std::min(place, rest) + 1;
        }
        domain.neighbour[d][LOW] = place > 0 ? job.rank - stride : MPI_PROC_NULL;
        domain.neighbour[d][HIGH] = place < parts - 1 ? job.rank + stride : MPI_PROC_NULL;
        stride *= parts;
    }
    return domain;
}

} // namespace minighost
