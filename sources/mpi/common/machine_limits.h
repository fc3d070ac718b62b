/* The machine's own limits for messages between rank 0 and the last rank, measured in the same
 * job and without MPI, so that MPI's figures can be judged as fractions of them.
 *
 * What each is, and why it bounds a message, is said in the help text of the program `limits`.
 * Over a slow network a measurement takes as long as it needs for 25 MiB each way. */
#ifndef ASSAY_MACHINE_LIMITS_H
#define ASSAY_MACHINE_LIMITS_H

/* For the options table of a program. */
/* clang-format off */
#define LIMITS_OPTION(wanted)                                                                     \
    { .name = "limits", .kind = OPTION_FLAG, .value = &(wanted),                                  \
      .help = "measure the machine's limits in the same job (see limits --help)" }
/* clang-format on */

enum { LIMITS_MOST = 8 };

/* Seconds of one of several measurements. */
#define LIMITS_SECONDS 0.02

/* Collective over MPI_COMM_WORLD, at least 2 ranks: up to `seconds` for each of five figures, of
 * which each is the best in them. Call it before, after and in between what is held against the
 * limits, LIMITS_MOST times at most: the host of a virtual machine may move its CPUs together or
 * apart, and each part of what is measured has limits that are its neighbours in time. Aborts with
 * a sentence when something is refused or the peer stops answering. */
void limits_measure(double seconds);

/* Prints a table, and writes the object "limits" to the program's JSON file: the medians over the
 * measurements, and of several "measured", the bounds of each. */
void limits_report(void);

#endif
