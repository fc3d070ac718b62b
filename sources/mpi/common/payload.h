/* What messages carry: a pattern in which every byte follows from sender, message number and
 * offset, so that lost, stale, shifted, mixed up and damaged data are all seen.
 * Written and checked eight bytes at a time; always outside timed regions. */
#ifndef ASSAY_PAYLOAD_H
#define ASSAY_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

void payload_fill(void *buffer, size_t size, int sender, long message);

/* Writes the complement of what is expected, so that a message that never arrives is noticed. */
void payload_spoil(void *buffer, size_t size, int sender, long message);

/* Aborts with EXIT_WRONG_PAYLOAD and a sentence (rank, source, size, offset, expected, found,
 * hosts) when the buffer is not what `sender` filled. Ranks are those of MPI_COMM_WORLD. */
void payload_check(const void *buffer, size_t size, int sender, long message);

/* Of the messages of a batch only the last one is checked whole. Each before it has one byte that tells
 * how many follow it, at another place each time: old content does not. Within the time, of which it
 * takes some 2 ns at either end. */
struct payload_mark {
    char *at; /* or NULL: the last message, or an empty one */
    char held;
};

static inline size_t payload_place(size_t size, long left)
{
    return (size_t)(((uint64_t)((uint32_t)left * 0x9e3779b9u) * size) >> 32);
}

/* Never 0, as a buffer is that nobody has filled. */
static inline char payload_mark_of(long left)
{
    return (char)(left | 0x80);
}

/* Before the message is sent, which `left` others will follow; and when its buffer is free again. */
static inline struct payload_mark payload_mark(char *message, size_t size, long left)
{
    if (size == 0 || left == 0)
        return (struct payload_mark){ 0 };
    struct payload_mark mark = { .at = message + payload_place(size, left) };
    mark.held = *mark.at;
    *mark.at = payload_mark_of(left);
    return mark;
}

static inline void payload_unmark(struct payload_mark mark)
{
    if (mark.at)
        *mark.at = mark.held;
}

/* Of a message that was received: 1 if it should have a mark, and has none. */
static inline long payload_lacks_mark(const char *message, size_t size, long left)
{
    return size > 0 && left > 0 && message[payload_place(size, left)] != payload_mark_of(left);
}

/* Behind the time. Aborts with EXIT_WRONG_PAYLOAD where some of a batch's messages lacked their mark. */
void payload_require_marks(long lacking, size_t size);

#endif
