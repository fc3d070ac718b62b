// Vectors of eight doubles, and the way from and to rows of four.
//
// Compilers turn indexed loads of x, y and z into three gathers, each of which loads its eight
// values one by one; here eight loads bring whole rows, which are then transposed. The types are extensions of GCC and Clang; the
// compiler splits them for CPUs with narrower vectors.
#ifndef MINIMD_LANES_HPP
#define MINIMD_LANES_HPP

#include <cstdint>
#include <cstring>

#if defined(__AVX512VL__)
#include <immintrin.h>
#endif

namespace minimd {

constexpr int LANES = 8;
constexpr int ROW = 4; // doubles of a row: x, y, z and one more

using Lanes = double __attribute__((vector_size(64)));
using Mask = std::int64_t __attribute__((vector_size(64))); // -1 in a lane: yes
using Row = double __attribute__((vector_size(32), may_alias)); // of an array of doubles

inline Lanes all(double value)
{
    return Lanes{} + value;
}

inline double sum(Lanes v)
{
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

inline Lanes load(const double *from) // wherever
{
    Lanes v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

inline Row load_row(const double *rows, std::size_t index)
{
    return *reinterpret_cast<const Row *>(rows + ROW * index);
}

#if defined(__clang__) || __GNUC__ >= 12
#define MINIMD_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MINIMD_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Mask{ __VA_ARGS__ })
#endif

inline Lanes join(Row low, Row high)
{
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#else
    return Lanes{ low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3] };
#endif
}

inline Row low_half(Lanes v)
{
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(v, v, 0, 1, 2, 3);
#else
    return Row{ v[0], v[1], v[2], v[3] };
#endif
}

inline Row high_half(Lanes v)
{
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
    return Row{ v[4], v[5], v[6], v[7] };
#endif
}

// The columns of eight rows: column c of rows[index[lane]] in lane `lane`.
struct Columns {
    Lanes c0, c1, c2, c3;
};

template <typename Index>
inline Columns gather(const double *rows, const Index &index)
{
    Lanes a = join(load_row(rows, index[0]), load_row(rows, index[4]));
    Lanes b = join(load_row(rows, index[1]), load_row(rows, index[5]));
    Lanes c = join(load_row(rows, index[2]), load_row(rows, index[6]));
    Lanes d = join(load_row(rows, index[3]), load_row(rows, index[7]));
    Lanes ab_even = MINIMD_SHUFFLE(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    Lanes ab_odd = MINIMD_SHUFFLE(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    Lanes cd_even = MINIMD_SHUFFLE(c, d, 0, 8, 2, 10, 4, 12, 6, 14);
    Lanes cd_odd = MINIMD_SHUFFLE(c, d, 1, 9, 3, 11, 5, 13, 7, 15);
    return { MINIMD_SHUFFLE(ab_even, cd_even, 0, 1, 8, 9, 4, 5, 12, 13),
             MINIMD_SHUFFLE(ab_odd, cd_odd, 0, 1, 8, 9, 4, 5, 12, 13),
             MINIMD_SHUFFLE(ab_even, cd_even, 2, 3, 10, 11, 6, 7, 14, 15),
             MINIMD_SHUFFLE(ab_odd, cd_odd, 2, 3, 10, 11, 6, 7, 14, 15) };
}

// Subtracts (x, y, z, 0) of each lane from its row. One row after the other: an index may come
// twice.
inline void subtract(double *rows, const int *index, Lanes x, Lanes y, Lanes z)
{
    Lanes nothing{};
    Lanes xy_even = MINIMD_SHUFFLE(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
    Lanes xy_odd = MINIMD_SHUFFLE(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
    Lanes z_even = MINIMD_SHUFFLE(z, nothing, 0, 8, 2, 10, 4, 12, 6, 14);
    Lanes z_odd = MINIMD_SHUFFLE(z, nothing, 1, 9, 3, 11, 5, 13, 7, 15);
    Lanes rows_0_4 = MINIMD_SHUFFLE(xy_even, z_even, 0, 1, 8, 9, 4, 5, 12, 13);
    Lanes rows_1_5 = MINIMD_SHUFFLE(xy_odd, z_odd, 0, 1, 8, 9, 4, 5, 12, 13);
    Lanes rows_2_6 = MINIMD_SHUFFLE(xy_even, z_even, 2, 3, 10, 11, 6, 7, 14, 15);
    Lanes rows_3_7 = MINIMD_SHUFFLE(xy_odd, z_odd, 2, 3, 10, 11, 6, 7, 14, 15);
    auto one = [&](int lane, Row row) {
        *reinterpret_cast<Row *>(rows + ROW * static_cast<std::size_t>(index[lane])) -= row;
    };
    one(0, low_half(rows_0_4));
    one(1, low_half(rows_1_5));
    one(2, low_half(rows_2_6));
    one(3, low_half(rows_3_7));
    one(4, high_half(rows_0_4));
    one(5, high_half(rows_1_5));
    one(6, high_half(rows_2_6));
    one(7, high_half(rows_3_7));
}

// Writes those of eight names that are wanted to `to`, which has room for all; returns how many.
inline int append(int *to, const int *names, Mask wanted)
{
#if defined(__AVX512VL__)
    __mmask8 bits = _mm512_movepi64_mask(reinterpret_cast<__m512i>(wanted));
    __m256i some =
        _mm256_maskz_compress_epi32(bits,
                                    _mm256_loadu_si256(reinterpret_cast<const __m256i *>(names)));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), some);
    return __builtin_popcount(bits);
#else
    int count = 0;
    for (int lane = 0; lane < LANES; lane++) {
        to[count] = names[lane];
        count -= static_cast<int>(wanted[lane]);
    }
    return count;
#endif
}

} // namespace minimd

#endif
