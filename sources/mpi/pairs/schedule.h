/* Which nodes are measured with each other in which round, so that no node is in two pairs of a
 * round. No MPI in it.
 *
 * Up to SCHEDULE_ALL nodes it is a round-robin tournament by the circle method: every pair once, in
 * one round less than there are nodes (with an odd number of nodes as many rounds, in each of which
 * one node has no partner). Of more nodes a part of these rounds is played, 2 * ceil(log2(nodes)) of
 * them. With the nodes in their order on a circle, half of these rounds give a node partners at even
 * distances all round it; each of the others is one of those rounds shifted by another power of two,
 * so that two steps from partner to partner lead to the nodes 1, 2, 4, 8, ... further on: all nodes
 * hang together by a few steps, and a fault anywhere has pairs on both of its sides. */
#ifndef ASSAY_SCHEDULE_H
#define ASSAY_SCHEDULE_H

enum { SCHEDULE_ALL = 64, SCHEDULE_MOST = 64 };

struct schedule {
    int nodes;  /* at least 2 */
    int rounds; /* at most SCHEDULE_MOST, for any number of nodes */
    int sums[SCHEDULE_MOST]; /* of the numbers of the two nodes of a pair, modulo the circle */
};

struct schedule schedule_make(int nodes);

/* The partner of a node in a round, -1 if it has none. */
int schedule_partner(const struct schedule *schedule, int round, int node);

#endif
