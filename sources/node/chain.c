#include "chain.h"

enum { BLOCK = 100 };

long chain(long sum, long addend)
{
    for (int block = 0; block < CHAIN_ADDITIONS / BLOCK; block++) {
#if defined(__x86_64__)
        __asm__ volatile(".rept %c2\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(addend), "i"(BLOCK));
#elif defined(__aarch64__)
        __asm__ volatile(".rept %c2\n\tadd %0, %0, %1\n\t.endr"
                         : "+r"(sum)
                         : "r"(addend), "i"(BLOCK));
#else
        for (int i = 0; i < BLOCK; i++) {
            sum += addend;
            __asm__ volatile("" : "+r"(sum));
        }
#endif
    }
    return sum;
}
