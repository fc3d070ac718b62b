#include "variables.hpp"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "lanes.hpp"

namespace minighost {

namespace {

// Values in a page of 4 KiB: addresses that are pages apart compete for places in the first cache.
constexpr std::ptrdiff_t PAGE = 512;

std::ptrdiff_t round_up(std::ptrdiff_t value)
{
    return (value + LINE - 1) / LINE * LINE;
}

// Keeps the same place of successive rows, planes or grids from competing.
std::ptrdiff_t spread(std::ptrdiff_t stride)
{
    return stride % (PAGE / 4) ? stride : stride + LINE;
}

} // namespace

Layout::Layout(const Domain &domain)
{
    std::copy(domain.n, domain.n + 3, n);
    row = spread(round_up(n[0] + 2));
    plane = spread(row * (n[1] + 2));
    grid = spread(plane * (n[2] + 2));
}

double Layout::bytes(int variables) const
{
    return (static_cast<double>(grid) * (variables + 1.0) + 4 * LINE) * sizeof(double);
}

Share share_of(const Layout &layout, int thread, int threads)
{
    int in_z = std::min(threads, layout.n[2]);
    while (threads % in_z)
        in_z--;
    long in_y = threads / in_z, y = thread % in_y, z = thread / in_y;
    auto cut = [](int n, long part, long parts) { return static_cast<int>(1 + n * part / parts); };
    return { cut(layout.n[1], y, in_y), cut(layout.n[1], y + 1, in_y), cut(layout.n[2], z, in_z),
             cut(layout.n[2], z + 1, in_z) };
}

Variables::Variables(const Layout &layout, int count, double value) : layout_(layout)
{
    for (int slot = 0; slot <= count; slot++)
        slots_.push_back(slot);
    auto bytes = static_cast<std::size_t>(layout.bytes(count));
    // Not new or malloc, which may give memory that has been touched before; and in huge pages, if
    // there are any for those who ask.
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        assay::fail("cannot allocate %zu bytes for the variables; use a smaller mesh", bytes);
    madvise(memory, bytes, MADV_HUGEPAGE);
    memory_ = static_cast<double *>(memory);

#pragma omp parallel
    {
        Share share = share_of(layout, omp_get_thread_num(), omp_get_num_threads());
        bool is_empty = share.y0 == share.y1 || share.z0 == share.z1;
        int y0 = share.y0 == 1 ? 0 : share.y0, z0 = share.z0 == 1 ? 0 : share.z0;
        int y1 = share.y1 == layout.n[1] + 1 ? share.y1 + 1 : share.y1;
        int z1 = share.z1 == layout.n[2] + 1 ? share.z1 + 1 : share.z1;
        for (int slot = 0; slot <= count && !is_empty; slot++)
            for (int z = z0; z < z1; z++)
                for (int y = y0; y < y1; y++) {
                    bool is_inside = y >= share.y0 && y < share.y1 && z >= share.z0 && z < share.z1;
                    double *row = at(slot) + z * layout.plane + y * layout.row;
                    std::fill(row, row + layout.row, 0.0);
                    if (slot < count && is_inside)
                        std::fill(row + 1, row + 1 + layout.n[0], value);
                }
    }
}

Variables::~Variables()
{
    munmap(memory_, static_cast<std::size_t>(layout_.bytes(count())));
}

double *Variables::at(int slot) const
{
    // The points of a row, which follow one of the halo, start at a cache line.
    return memory_ + LINE - 1 + slot * layout_.grid;
}

void Variables::swap_with_spare(int variable)
{
    std::swap(slots_[variable], slots_.back());
}

} // namespace minighost
