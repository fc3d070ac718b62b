#include "caches.h"

#include "host.h"
#include "system.h"

static int members(const struct set *set)
{
    int count = 0;
    for (int member = set_next(set, 0); member >= 0; member = set_next(set, member + 1))
        count++;
    return count;
}

/* Takes those of the other CPUs to be like the one of CPU 0. */
size_t caches_last_level(void)
{
    struct set online = system_set("/sys/devices/system/cpu/online"), sharing = { { 0 } };
    for (int index = 0; index < 8; index++) {
        struct set cpus =
            system_set("/sys/devices/system/cpu/cpu0/cache/index%d/shared_cpu_list", index);
        if (members(&cpus) > 0)
            sharing = cpus; /* of the largest cache in the end: they stand in order of level */
    }
    int cpus = members(&online), share = members(&sharing);
    int caches = share > 0 && cpus > share ? (cpus + share - 1) / share : 1;
    return (size_t)caches * host_last_level_cache();
}
