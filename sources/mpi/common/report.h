/* The heads of the two reports: the human one on stdout and the JSON one. */
#ifndef ASSAY_REPORT_H
#define ASSAY_REPORT_H

/* "0.1.0" */
const char *report_version(void);

/* Rank 0: prints the header (implementation, program, version, MPI library, ranks, hosts,
 * arguments) and writes the same at the top of the JSON file. */
void report_head(void);

/* Rank 0: the --help text. */
void report_help(void);

#endif
