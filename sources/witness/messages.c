#define _GNU_SOURCE 1
#include "messages.h"

#include <stdbool.h>
#include <stdlib.h>

#include "clocks.h"
#include "map.h"
#include "ticks.h"
#include "witness.h"

enum { FIRST_ROOM = 1024, WINDOWS_LOG2 = 5, LEVELS = 62 };

/* A serial is the level at which the message was kept, plus 1, and its index. Thinning out moves
 * messages, and makes all serials before it invalid: few are pending then. */
#define NOT_KEPT UINT64_MAX

static struct messages logged;
static uint32_t room, wait_room;
static uint32_t most = MESSAGES_MOST; /* or what there was memory for */
static int level;

static int64_t misnumbered = INT64_MAX; /* since when messages have wrong numbers */

/* The part of the run, whether messages are kept now, and until when that holds (ticks). */
static int part;
static bool keeping;
static int64_t keeping_until = INT64_MIN;

/* A piece of time that is kept, and the end of the window that it lies in; ns of clocks_global. */
struct piece {
    int64_t from, until, next_window;
};

static int part_of(int64_t time)
{
    return 63 - __builtin_clzll((unsigned long long)time | 1);
}

static struct piece piece_near(int64_t time)
{
    int bits = part_of(time) - WINDOWS_LOG2;
    int64_t window = (int64_t)1 << (bits > 0 ? bits : 0);
    int64_t length = window >> level ? window >> level : 1;
    int64_t begin = time & ~(window - 1);
    int64_t place = (int64_t)map_hash((uint64_t)begin) & (window - 1) & ~(length - 1);
    return (struct piece){ begin + place, begin + place + length, begin + window };
}

/* Before time zero there is nothing but the error of a clock. */
static int64_t time_of(int64_t moment)
{
    int64_t time = clocks_global(moment);
    return time > 0 ? time : 0;
}

static bool is_kept(int64_t moment)
{
    int64_t time = time_of(moment);
    struct piece piece = piece_near(time);
    return piece.from <= time && time < piece.until;
}

static void find_piece(int64_t moment)
{
    ticks_calibrate();
    int64_t time = time_of(moment);
    struct piece piece = piece_near(time);
    part = part_of(time);
    keeping = piece.from <= time && time < piece.until;
    int64_t until = time < piece.from    ? piece.from
                    : time < piece.until ? piece.until
                                         : piece.next_window;
    keeping_until = moment + 1 + (int64_t)(1e-9 * (double)(until - time) / ticks_to_seconds(1));
}

/* Keeps the first messages and those that is_kept says, and the waits that have none but those. */
static void drop_the_others(void)
{
    struct message *messages = logged.messages;
    struct wait *waits = logged.waits;
    for (uint32_t i = 0; i < logged.wait_count; i++)
        waits[i].moves_to = 0;
    uint32_t kept = MESSAGES_FIRST;
    for (uint32_t i = MESSAGES_FIRST; i < logged.count; i++) {
        if (is_kept(messages[i].time))
            messages[kept++] = messages[i];
        else if (messages[i].wait != NO_WAIT)
            waits[messages[i].wait].moves_to = NO_WAIT;
    }
    logged.count = kept;

    uint32_t kept_waits = 0;
    for (uint32_t i = 0; i < logged.wait_count; i++)
        if (waits[i].moves_to != NO_WAIT)
            waits[i].moves_to = kept_waits++;
    for (uint32_t i = 0; i < logged.count; i++)
        if (messages[i].wait != NO_WAIT)
            messages[i].wait = waits[messages[i].wait].moves_to;
    for (uint32_t i = 0; i < logged.wait_count; i++)
        if (waits[i].moves_to != NO_WAIT)
            waits[waits[i].moves_to] = waits[i];
    logged.wait_count = kept_waits;
}

static void thin_out(void)
{
    ticks_calibrate();
    while (logged.count > room / 4 * 3 && level < LEVELS) {
        level++;
        drop_the_others();
    }
    keeping_until = INT64_MIN;
}

static bool grow(void **array, size_t size, uint32_t *count)
{
    uint32_t larger = *count ? 2 * *count : FIRST_ROOM;
    void *grown = realloc(*array, larger * size);
    if (!grown)
        return false;
    *array = grown;
    *count = larger;
    return true;
}

static void make_room(void)
{
    if (room < most && grow((void **)&logged.messages, sizeof *logged.messages, &room))
        return;
    most = room;
    if (room > MESSAGES_FIRST)
        thin_out();
}

uint64_t message_posted(enum side side, uint64_t channel, uint32_t sequence, int tag, int peer,
                        int64_t time)
{
    if (logged.count == room)
        make_room();
    if (time >= keeping_until)
        find_piece(time);
    if (!keeping || misnumbered != INT64_MAX || logged.count == room)
        return NOT_KEPT;
    logged.messages[logged.count] = (struct message){
        .channel = channel,
        .time = time,
        .sequence = sequence,
        .tag = tag,
        .peer = peer,
        .side = side,
        .wait = NO_WAIT,
    };
    return (uint64_t)(level + 1) << 32 | logged.count++;
}

static bool is_any(const uint64_t *serials, int count)
{
    for (int i = 0; i < count; i++)
        if (serials[i] != NO_MESSAGE)
            return true;
    return false;
}

static bool are_kept(const uint64_t *serials, int count)
{
    for (int i = 0; i < count; i++)
        if (serials[i] != NO_MESSAGE && serials[i] >> 32 != (uint64_t)(level + 1))
            return false;
    return true;
}

void messages_waited(enum call call, uint16_t site, int64_t begin, int64_t end,
                     const uint64_t *serials, int count)
{
    if (!is_any(serials, count))
        return;
    logged.waited[part][call] += end - begin;
    if (!are_kept(serials, count))
        return;
    if (logged.wait_count == wait_room &&
        (wait_room >= most || !grow((void **)&logged.waits, sizeof *logged.waits, &wait_room)))
        return;
    for (int i = 0; i < count; i++)
        if (serials[i] != NO_MESSAGE)
            logged.messages[(uint32_t)serials[i]].wait = logged.wait_count;
    logged.waits[logged.wait_count++] = (struct wait){
        .begin = begin,
        .end = end,
        .call = (uint8_t)call,
        .part = (uint8_t)part,
        .site = site,
    };
}

void messages_misnumbered(int64_t since)
{
    /* A channel that no other rank knows. */
    uint64_t none = map_hash((uint64_t)witness.rank + 1);
    for (uint32_t i = 0; i < logged.count; i++)
        if (logged.messages[i].time >= since && logged.messages[i].time < misnumbered)
            logged.messages[i].channel ^= none;
    if (since < misnumbered)
        misnumbered = since;
}

const struct messages *messages_logged(void)
{
    return &logged;
}

size_t messages_bytes(void)
{
    return room * sizeof *logged.messages + wait_room * sizeof *logged.waits;
}
