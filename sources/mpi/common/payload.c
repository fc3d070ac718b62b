#include "payload.h"

#include <stdint.h>
#include <string.h>

#include "bench.h"

/* An odd constant near 2^64 divided by the golden ratio: its multiples differ in all bytes. */
static const uint64_t STEP = 0x9e3779b97f4a7c15u;

/* The first word of a message; the next ones follow at STEP. Mixed so that neighbouring senders
 * and messages have nothing in common (the finaliser of SplitMix64). */
static uint64_t first_word(int sender, long message)
{
    uint64_t x = ((uint64_t)(unsigned)sender << 40) ^ (uint64_t)message;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void write_words(void *buffer, size_t size, uint64_t word, uint64_t flip)
{
    char *bytes = buffer;
    size_t offset = 0;
    for (; offset + 8 <= size; offset += 8, word += STEP) {
        uint64_t value = word ^ flip;
        memcpy(bytes + offset, &value, 8);
    }
    uint64_t value = word ^ flip;
    memcpy(bytes + offset, &value, size - offset);
}

void payload_fill(void *buffer, size_t size, int sender, long message)
{
    write_words(buffer, size, first_word(sender, message), 0);
}

void payload_spoil(void *buffer, size_t size, int sender, long message)
{
    write_words(buffer, size, first_word(sender, message), UINT64_MAX);
}

_Noreturn static void report_mismatch(const char *bytes, size_t size, size_t offset,
                                      uint64_t expected, int sender)
{
    unsigned char word[8];
    memcpy(word, &expected, 8);
    size_t i = 0;
    while (word[i] == (unsigned char)bytes[offset + i])
        i++;
    bench_abort(EXIT_WRONG_PAYLOAD,
                "message from rank %d of %zu bytes arrived wrong at offset %zu: expected 0x%02x, "
                "found 0x%02x; from host %s to host %s",
                sender, size, offset + i, word[i], (unsigned char)bytes[offset + i],
                bench.hosts[bench.host_of[sender]], bench.hosts[bench.host_of[bench.rank]]);
}

void payload_check(const void *buffer, size_t size, int sender, long message)
{
    const char *bytes = buffer;
    uint64_t word = first_word(sender, message);
    size_t offset = 0;
    for (; offset + 8 <= size; offset += 8, word += STEP)
        if (memcmp(bytes + offset, &word, 8) != 0)
            report_mismatch(bytes, size, offset, word, sender);
    if (memcmp(bytes + offset, &word, size - offset) != 0)
        report_mismatch(bytes, size, offset, word, sender);
}

void payload_require_marks(long lacking, size_t size)
{
    if (lacking > 0)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "%ld messages of %zu bytes arrived with old content, before the last one of "
                    "their batch; to host %s",
                    lacking, size, bench.hosts[bench.host_of[bench.rank]]);
}
