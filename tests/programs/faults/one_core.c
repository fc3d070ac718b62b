/* Every process moves to CPU 0 when it starts, whatever the launcher bound it to before.
 *
 *     cc -shared -fPIC one_core.c -o one_core.so
 *     LD_PRELOAD=$PWD/one_core.so mpirun -n 2 ring */
#define _GNU_SOURCE
#include <sched.h>

__attribute__((constructor)) static void move(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
}
