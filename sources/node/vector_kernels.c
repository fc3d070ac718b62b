#include "vector_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* `CHAINS(X)` applies X to the names of the chains. The result of a multiply-add is there after 4
 * cycles (5 on older CPUs) and up to 4 start in a cycle, so that 20 chains keep every unit busy
 * where there are 32 registers; CPUs with 16 start 2 in a cycle, and 12 chains are enough. */
#define CHAINS_12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define CHAINS_20(X) CHAINS_12(X) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19)

/* x = 0.5 x + 0.5 stays at 1: no overflow, no denormal number, and no digit that could be wrong.
 * Volatile, so that the compiler takes the chains for different ones. This file is compiled so that
 * a * b + c becomes one instruction where there is one. */
static volatile const double one_half = 0.5, one = 1;

#define START(i) vector x##i = zero + one;
#define STEP(i) x##i = x##i * half + half;
#define COLLECT(i) sum += x##i;
#define COUNT(i) +1

#define FMA(isa, TARGET, CHAINS)                           \
    enum { isa##_chains = 0 CHAINS(COUNT) };               \
                                                           \
    TARGET static double isa##_fma(long iterations)        \
    {                                                      \
        typedef isa##_vector vector;                       \
        const vector zero = { 0 }, half = zero + one_half; \
        vector sum = zero;                                 \
        CHAINS(START)                                      \
        long made = 0;                                     \
        for (; made < iterations; made++) {                \
            CHAINS(STEP)                                   \
        }                                                  \
        CHAINS(COLLECT)                                    \
        double total = 0; /* 1 of each element */          \
        for (int i = 0; i < isa##_elements; i++)           \
            total += sum[i];                               \
        total /= isa##_chains * isa##_elements;            \
        return (double)made * total;                       \
    }

#define LOAD(isa, from) (*(const isa##_vector *)((from) + i))

/* Called without a second array by copy and scale. */
#define OPERATION(isa, TARGET, name, STORE, VALUE, END)                             \
    TARGET static size_t isa##_##name(double *restrict d, const double *restrict x, \
                                      const double *restrict y, double s, size_t n) \
    {                                                                               \
        (void)y, (void)s;                                                           \
        size_t i = 0;                                                               \
        for (; i < n; i += isa##_elements)                                          \
            STORE(isa, d + i, VALUE);                                               \
        END;                                                                        \
        return i;                                                                   \
    }

#define OPERATIONS(isa, TARGET, suffix, STORE, END)                              \
    OPERATION(isa, TARGET, copy##suffix, STORE, LOAD(isa, x), END)               \
    OPERATION(isa, TARGET, scale##suffix, STORE, s *LOAD(isa, x), END)           \
    OPERATION(isa, TARGET, add##suffix, STORE, LOAD(isa, x) + LOAD(isa, y), END) \
    OPERATION(isa, TARGET, triad##suffix, STORE, LOAD(isa, x) + s * LOAD(isa, y), END)

#define NORMAL_STORE(isa, to, value) (*(isa##_vector *)(to) = (value))

#define KERNELS(isa, TARGET, BYTES, CHAINS)                                     \
    typedef double isa##_vector __attribute__((vector_size(BYTES), may_alias)); \
    enum { isa##_elements = (BYTES) / 8 };                                      \
    FMA(isa, TARGET, CHAINS)                                                    \
    OPERATIONS(isa, TARGET, , NORMAL_STORE, (void)0)

#define FIELDS(isa, label)                                                                    \
    .name = label, .bits = 64 * isa##_elements, .flops = 2.0 * isa##_chains * isa##_elements, \
    .fma = isa##_fma, .normal = { isa##_copy, isa##_scale, isa##_add, isa##_triad }

#if defined(__x86_64__)

#define STREAMING_STORE(isa, to, value) isa##_stream((to), (value))

#define X86_KERNELS(isa, label, TARGET, BYTES, CHAINS, STREAM)                           \
    KERNELS(isa, TARGET, BYTES, CHAINS)                                                  \
    TARGET static inline void isa##_stream(double *to, isa##_vector value)               \
    {                                                                                    \
        STREAM(to, value);                                                               \
    }                                                                                    \
    OPERATIONS(isa, TARGET, _streaming, STREAMING_STORE, _mm_sfence())                   \
    static const struct vector_kernels isa = {                                           \
        FIELDS(isa, label),                                                              \
        .streaming = { isa##_copy_streaming, isa##_scale_streaming, isa##_add_streaming, \
                       isa##_triad_streaming },                                          \
    };

X86_KERNELS(sse2, "SSE2", , 16, CHAINS_12, _mm_stream_pd)
X86_KERNELS(avx, "AVX", __attribute__((target("avx"))), 32, CHAINS_12, _mm256_stream_pd)
X86_KERNELS(avx2, "AVX2", __attribute__((target("avx2,fma"))), 32, CHAINS_12, _mm256_stream_pd)
X86_KERNELS(avx512, "AVX-512", __attribute__((target("avx512f"))), 64, CHAINS_20, _mm512_stream_pd)

const struct vector_kernels *vector_kernels(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &avx2;
    return __builtin_cpu_supports("avx") ? &avx : &sse2;
}

#else

/* What the target has that the compiler compiles for: on AArch64, vectors of 128 bits, or of SVE's
 * width with -msve-vector-bits. Stores that bypass the caches matter less outside of x86: CPUs see
 * that whole lines are written, and do not read them first. */
#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS > 0
#define NATIVE_BYTES (__ARM_FEATURE_SVE_BITS / 8)
#else
#define NATIVE_BYTES 16
#endif

KERNELS(native, , NATIVE_BYTES, CHAINS_20)

static const struct vector_kernels native = { FIELDS(native, "native") };

const struct vector_kernels *vector_kernels(void)
{
    return &native;
}

#endif
