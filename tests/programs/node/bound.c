/* CPU time that disturbance_read counts as this process's: two threads work for half a second each,
 * each bound to a CPU of its own. Prints that on the CPU of the first, and that on both. */
#define _GNU_SOURCE 1

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "disturbance.h"

static struct set allowed;
static pthread_barrier_t barrier;

static void *work(void *cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(*(int *)cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_barrier_wait(&barrier);
    struct timespec now = { 0 };
    while (now.tv_sec == 0 && now.tv_nsec < 500000000)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void)
{
    disturbance_add_cpus(&allowed);
    int first = set_next(&allowed, 0), second = set_next(&allowed, first + 1);
    struct set one = { { 0 } };
    set_add(&one, first);
    struct disturbance before_one = disturbance_read(&one), before = disturbance_read(&allowed);
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, work, &first);
    pthread_create(&threads[1], NULL, work, &second);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    printf("%.3f %.3f\n", disturbance_since(&before_one, &one).own,
           disturbance_since(&before, &allowed).own);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
