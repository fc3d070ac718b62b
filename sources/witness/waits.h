/* Who waited for whom, and how long.
 *
 * Of the time in an MPI call, a part is work of the MPI and transfer, which a faster network
 * shortens, and a part is waiting for another rank that has not come to its call yet, which only
 * better balance shortens. To tell them apart, one has to know when the other rank came.
 *
 * Nothing is asked while the program runs: no message, no barrier, no byte in a payload. Each rank
 * logs when its calls began and ended (messages.h, instances.h). In MPI_Finalize the ranks tell
 * each other what they logged, in one time (clocks.h), and each rank judges its own calls. The
 * patterns and their names are those of Scalasca (its manual page "Performance properties"; Wolf,
 * Mohr: "Automatic performance analysis of hybrid MPI/OpenMP applications"):
 *
 * Collectives. A blocking call ran from `begin` to `end` on this rank; the last of those that it has
 * to wait for began at `latest`. It waited from `begin` to `latest`, but no longer than to `end`:
 * - wait at NxN, wait at barrier (ALL_WAIT_FOR_ALL): `latest` is taken over all members
 * - late broadcast (ALL_WAIT_FOR_ROOT: bcast, scatter): `latest` is when the root began
 * - early reduce (ROOT_WAITS_FOR_ALL: reduce, gather): over all members, and only the root waits
 * All of these count as `imbalance`.
 *
 * Messages. A call that blocked from `begin` to `end` completed one message or several:
 * - late sender: a message it received was only sent at s. It waited from `begin` to s.
 * - late receiver: the receive of a message it sent was only posted at p, and the send could not
 *   end without it. It waited from `begin` to p. A receive that was posted after `end` shows that
 *   the MPI had buffered the message: the send did not wait for it.
 * If it completed several messages, it waited for the latest s or p between `begin` and `end`, and
 * all of its wait counts under the kind of that one. Patterns that need more than this, such as
 * messages in wrong order, are not told apart.
 *
 * Not everything is analysed: logs are thinned out (see there), calls in bursts are not all timed,
 * messages come from outside MPI_COMM_WORLD. A wait counts only if the other side of each of its
 * messages is found, with the same tag: to count the missing as punctual would make them a bias.
 * `analysed` is the time of what counts. A share of it is an estimate for the same share of all the
 * call's time: where a log was thinned out, each wait has weighed as much as it stands for. Pieces
 * of time end somewhere: waits that are long beside a piece are too rare in a log of messages that
 * was thinned out.
 *
 * Within a host times agree to well below a microsecond. Between hosts, a wait can be wrong by the
 * error of both clocks, which the report gives.
 *
 * The exchange of messages is sparse: each rank sends to its partners only, and nobody knows how
 * many will come. Hoefler, Siebert, Lumsdaine: "Scalable communication protocols for dynamic sparse
 * data exchange" gives the way to end it: synchronous sends, then a nonblocking barrier. */
#ifndef ASSAY_WAITS_H
#define ASSAY_WAITS_H

#include <mpi.h>
#include <stdbool.h>

#include "calls.h"
#include "instances.h"

/* Seconds, of all calls of a kind on this rank. */
struct waits {
    double analysed, late_sender, late_receiver, imbalance;
};

/* Of a site; and the rank that it waited longest for, and how long. */
struct site_waits {
    struct waits waits;
    double longest;
    int for_rank;
};

/* Collective over MPI_COMM_WORLD, at MPI_Finalize, after clocks_measure_end. Only the witness's own
 * communicators are used: whether others can be, no rank can know. Results of calls that were not
 * analysed are zero. `sites`: by the number of the site, of sites_count() zeros, or NULL. False where
 * this rank gave up waiting for another: then some were not. */
bool waits_analyse(struct waits result[CALLS], struct site_waits *sites);

#endif
