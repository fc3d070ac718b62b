#include "schedule.h"

#include <stdbool.h>

/* Nodes that stand on the circle: an odd number. The last node stands in its middle, or nobody. */
static int circle_of(int nodes)
{
    return nodes % 2 ? nodes : nodes - 1;
}

static void add_round(struct schedule *schedule, int sum)
{
    int circle = circle_of(schedule->nodes);
    bool is_new;
    do {
        is_new = true;
        for (int round = 0; round < schedule->rounds; round++)
            is_new &= schedule->sums[round] != sum;
        if (!is_new)
            sum = (sum + 1) % circle;
    } while (!is_new);
    schedule->sums[schedule->rounds++] = sum;
}

struct schedule schedule_make(int nodes)
{
    struct schedule schedule = { .nodes = nodes };
    int circle = circle_of(nodes), powers = 0;
    if (nodes <= SCHEDULE_ALL) {
        for (int sum = 0; sum < circle; sum++)
            add_round(&schedule, sum);
        return schedule;
    }
    while (1ll << powers < nodes)
        powers++;
    for (int power = 0; power < powers; power++) {
        long long even = (long long)circle * power / powers;
        add_round(&schedule, (int)even);
        add_round(&schedule, (int)((even + (1ll << power)) % circle));
    }
    return schedule;
}

int schedule_partner(const struct schedule *schedule, int round, int node)
{
    int circle = circle_of(schedule->nodes), middle = circle;
    long long sum = schedule->sums[round];
    if (node == middle)
        return (int)(sum % 2 ? (sum + circle) / 2 : sum / 2);
    int partner = (int)((sum - node + circle) % circle);
    if (partner != node)
        return partner;
    return middle < schedule->nodes ? middle : -1;
}
