#include "patience.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static char sentence[512];

/* Ends this rank by itself: launchers take the others down, but may overlook ranks that are to be
 * killed. */
static void end_hung(int number)
{
    (void)number;
    ssize_t written = write(STDERR_FILENO, sentence, strlen(sentence));
    (void)written;
    _exit(EXIT_BROKEN);
}

void patience_start(double seconds, const char *format, ...)
{
    char what[256];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof what, format, values);
    va_end(values);
    snprintf(sentence, sizeof sentence,
             "%s: rank %d: %s did not come to an end within %.0f s: it hangs\n",
             bench.about->program, bench.rank, what, round(seconds));
    signal(SIGALRM, end_hung);
    alarm((unsigned)round(seconds));
}

void patience_end(void)
{
    alarm(0);
}
