// Back substitution: x from U x = y, where y is what the factorisation has made of b.
#ifndef HPL_SUBSTITUTION_HPP
#define HPL_SUBSTITUTION_HPP

#include "matrix.hpp"

namespace hpl {

// Collective over the grid. x of this rank's columns, the same on all process rows.
Buffer substitute(const Matrix &matrix);

} // namespace hpl

#endif
