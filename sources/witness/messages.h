/* The log of messages, and of the calls that waited for them.
 *
 * A message has a record on each side. The log holds all of them until it is full, at MESSAGES_MOST
 * records or 7 MiB. Then it is thinned out, to what was posted in half of the time, and so on; but
 * the first quarter stays, as programs often start with long waits of a kind that does not come
 * again. All ranks keep the same pieces of time, so that mostly both records of a message are kept
 * or neither:
 *
 * Time since MPI_Init is divided into windows of 2^b ns, 32 of them between 2^(b+5) and 2^(b+6) ns.
 * At level l the log keeps a 2^l-th of each window, in one piece. A hash of the window tells where:
 * a program with a rhythm of its own is sampled evenly. The piece of a level lies in that of the
 * level below, so that ranks with different levels still have pieces in common. Whatever the rate
 * of messages and the length of the run, the log spreads over some 50 pieces, and a piece holds a
 * thousand messages or two. */
#ifndef ASSAY_MESSAGES_H
#define ASSAY_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "calls.h"

enum { MESSAGES_MOST = 1 << 17, MESSAGES_FIRST = MESSAGES_MOST / 4 };
#define NO_WAIT (UINT32_MAX >> 1)

enum side { SENDER, RECEIVER };

/* A caller's serial of what is no message, or one that it does not log. */
#define NO_MESSAGE 0

struct message {
    uint64_t channel;
    int64_t time; /* ticks: the send was entered, or the receive posted */
    uint32_t sequence;
    int32_t tag, peer;
    uint32_t side : 1;
    uint32_t wait : 31; /* index of the wait that it was completed in, or NO_WAIT */
};

/* Parts of the run, whose waits are summed apart: part p is from 2^p to 2^(p+1) ns after MPI_Init.
 * What is kept of a part stands for that part alone. */
enum { PARTS = 64 };

struct wait {
    int64_t begin, end; /* ticks */
    uint8_t call, part;
    uint16_t site; /* its number */
    uint32_t moves_to;  /* while the log is thinned out: its next index, or NO_WAIT */
};

struct messages {
    struct message *messages;
    struct wait *waits;
    uint32_t count, wait_count;
    int64_t waited[PARTS][CALLS]; /* ticks of all waits, also of those that are not kept */
};

/* A send was entered, or a receive posted, at `time` (ticks). `channel` stands for communicator,
 * sender, receiver and class of tag, and is the same number on both sides; `sequence`: the
 * how-manieth of the channel; `peer`: the other side's rank in witness.comm.
 * Returns a serial > 0, also for a message that the log does not keep. */
uint64_t message_posted(enum side side, uint64_t channel, uint32_t sequence, int tag, int peer,
                        int64_t time);

/* A call that blocked from begin to end (ticks) completed these messages. NO_MESSAGE among them is
 * passed over. Where the log lacks one of them, it does not keep the wait. */
void messages_waited(enum call call, uint16_t site, int64_t begin, int64_t end,
                     const uint64_t *serials, int count);

/* A message that was posted at `since` (ticks) was cancelled, so that those after it have a number too
 * high: they are told of no other rank any more, and no others are kept. */
void messages_misnumbered(int64_t since);

const struct messages *messages_logged(void);
size_t messages_bytes(void);

#endif
