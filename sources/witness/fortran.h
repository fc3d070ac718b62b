/* Libraries of Fortran bindings, through which programs call the C library. */
#ifndef ASSAY_FORTRAN_H
#define ASSAY_FORTRAN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether code at an address is of such a library. */
bool fortran_is_binding(uintptr_t address);

#endif
