/* Which algorithms of collective operations the MPI offers, and which it was told to use: its own
 * control variables, by MPI's tool interface (MPI_T). */
#ifndef ASSAY_ALGORITHMS_H
#define ASSAY_ALGORITHMS_H

#include "json.h"

/* Local, between MPI_Init and MPI_Finalize. Writes an array "control_variables" of objects: "name";
 * "value", the number or text in force; "choices", by number, where the MPI lists them; "text", its
 * description. It has the variables whose names speak of algorithms, or of files that choose them.
 * An MPI without such variables gives an empty array. */
void algorithms_json(struct json *json);

#endif
