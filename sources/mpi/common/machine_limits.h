/* The machine's own limits for messages between rank 0 and the last rank, measured in the same
 * job and without MPI, so that MPI's figures can be judged as fractions of them.
 *
 * What each is, and why it bounds a message, is said in the help text of the program `limits`.
 * A measurement takes less than 0.5 s, over a slow network as long as it needs for 30 MiB each way. */
#ifndef ASSAY_MACHINE_LIMITS_H
#define ASSAY_MACHINE_LIMITS_H

/* For the options table of a program. */
/* clang-format off */
#define LIMITS_OPTION(wanted)                                                                     \
    { .name = "limits", .kind = OPTION_FLAG, .value = &(wanted),                                  \
      .help = "measure the machine's limits in the same job (see limits --help)" }
/* clang-format on */

/* Collective over MPI_COMM_WORLD, at least 2 ranks. Call it before and after what is held against
 * the limits: in between, the host of a virtual machine may move its CPUs together or apart. The
 * slower of the two counts. Aborts with a sentence when something is refused or the peer stops
 * answering. */
void limits_measure(void);

/* Prints a table, and writes the object "limits" to the program's JSON file. */
void limits_report(void);

#endif
