// Vectors as wide as the CPU that is compiled for, in the notation that GCC and Clang share.
#ifndef MINIGHOST_LANES_HPP
#define MINIGHOST_LANES_HPP

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace minighost {

constexpr int LINE = 8; // values in a cache line

#if defined(__AVX512F__)
constexpr int LANES = 8;
#elif defined(__AVX__)
constexpr int LANES = 4;
#else
constexpr int LANES = 2;
#endif

typedef double Lanes __attribute__((vector_size(LANES * sizeof(double))));
// The same in memory, where it starts at any value.
typedef double LooseLanes
    __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

inline Lanes load(const double *from)
{
    return *reinterpret_cast<const LooseLanes *>(from);
}

inline void store(double *to, Lanes lanes)
{
    *reinterpret_cast<LooseLanes *>(to) = lanes;
}

// LANES in a row, from number FIRST on, of the lanes of `low` followed by those of `high`.
template <int FIRST>
inline Lanes window(Lanes low, Lanes high)
{
#if defined(__clang__)
#if defined(__AVX512F__)
    return __builtin_shufflevector(low, high, FIRST, FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4,
                                   FIRST + 5, FIRST + 6, FIRST + 7);
#elif defined(__AVX__)
    return __builtin_shufflevector(low, high, FIRST, FIRST + 1, FIRST + 2, FIRST + 3);
#else
    return __builtin_shufflevector(low, high, FIRST, FIRST + 1);
#endif
#else
    typedef long long Places __attribute__((vector_size(sizeof(Lanes))));
    Places places;
    for (int i = 0; i < LANES; i++)
        places[i] = FIRST + i;
    return __builtin_shuffle(low, high, places);
#endif
}

// Lane i is lane i - 1 of `lanes`; the first comes from the last of `before`.
inline Lanes from_west(Lanes before, Lanes lanes)
{
    return window<LANES - 1>(before, lanes);
}

// Lane i is lane i + 1 of `lanes`; the last comes from the first of `after`.
inline Lanes from_east(Lanes lanes, Lanes after)
{
    return window<1>(lanes, after);
}

#if defined(__SSE2__)

constexpr bool CAN_STREAM = true;

// Stores past the caches; `to` is a multiple of the vector's size.
inline void stream(double *to, Lanes lanes)
{
#if defined(__AVX512F__)
    _mm512_stream_pd(to, lanes);
#elif defined(__AVX__)
    _mm256_stream_pd(to, lanes);
#else
    _mm_stream_pd(to, lanes);
#endif
}

// What was streamed is seen by other threads after this.
inline void end_streaming()
{
    _mm_sfence();
}

#else

constexpr bool CAN_STREAM = false;

inline void stream(double *to, Lanes lanes)
{
    store(to, lanes);
}

inline void end_streaming() {}

#endif

} // namespace minighost

#endif
