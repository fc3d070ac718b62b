#include "spread.hpp"

namespace minighost {

Spread::Spread(const Options &options, const Domain &domain, const Spike &spike)
{
    for (int d = 0; d < 3; d++) {
        auto points = static_cast<std::size_t>(domain.points[d]);
        std::vector<double> now(points + 2, 0.0);
        now[static_cast<std::size_t>(spike.place[d])] = 1;
        bool is_spread = d < 2 || options.stencil == STENCIL_3D27PT;
        for (int step = 0; step < options.steps && is_spread; step++) {
            std::vector<double> next(points + 2, 0.0);
            for (std::size_t i = 1; i <= points; i++)
                next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
            now.swap(next);
        }
        auto first = now.begin() + domain.first[d] - 1;
        along_[d].assign(first, first + domain.n[d] + 2);
    }
}

bool Spread::is_of(const Options &options)
{
    return options.is_diagonal() && options.spikes == 1 && options.debug_grid;
}

} // namespace minighost
