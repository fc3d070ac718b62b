#include "source.hpp"

#include <cmath>
#include <cstdint>

namespace minighost {

namespace {

// xoshiro256** by Blackman and Vigna, which is gfortran's generator, in the state that gfortran
// gives it if all parts of the seed are 8, as upstream's are. Numbers are from 0 to 1.
class Random {
public:
    double next()
    {
        std::uint64_t result = rotated(state_[1] * 5, 7) * 9, shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotated(state_[3], 45);
        return static_cast<double>(result >> 11) * 0x1p-53;
    }

private:
    static std::uint64_t rotated(std::uint64_t value, int bits)
    {
        return value << bits | value >> (64 - bits);
    }

    std::uint64_t state_[4] = { 0xbd0c5b6650c2df41, 0xd46061c546e1df30, 0xbb4f4d46d610354c,
                                0x114a58350756ad31 };
};

} // namespace

Source::Source(const Options &options, const Domain &domain)
    : start_(options.debug_grid
                 ? 0
                 : 1 + std::fmod(std::floor(100 * Random().next()), domain.all_points())),
      spikes_(options.spikes)
{
    Random heats, places; // the same numbers
    for (Spike &spike : spikes_) {
        bool is_first = &spike == spikes_.data();
        for (int v = 0; v < options.variables; v++)
            spike.heat.push_back((heats.next() + 1) * domain.all_points());
        if (is_first)
            spike.heat[0] = domain.all_points();
        for (int d = 0; d < 3; d++) {
            auto points = static_cast<double>(domain.points[d]);
            auto anywhere = static_cast<long>(places.next() * points) + 1;
            spike.place[d] = is_first ? (domain.points[d] + 1) / 2 : anywhere;
        }
    }
}

} // namespace minighost
