/* An accumulate of pairs with a gap between their members, by MPI_MAXLOC. */
#include "defects.h"

enum { PAIRS = 100 };

struct pair {
    short value;
    int place;
};

bool accumulate_pairs(int rank, int ranks)
{
    static struct pair mine[PAIRS], most[PAIRS];
    bool is_wrong = false;
    MPI_Win window;
    for (int i = 0; i < PAIRS; i++) {
        mine[i] = (struct pair){ .value = (short)(i + rank), .place = rank };
        most[i] = (struct pair){ .value = -1, .place = -1 };
    }
    MPI_Win_create(most, sizeof most, sizeof most[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Accumulate(mine, PAIRS, MPI_SHORT_INT, 0, 0, PAIRS, MPI_SHORT_INT, MPI_MAXLOC, window);
    MPI_Win_fence(0, window);
    for (int i = 0; rank == 0 && i < PAIRS; i++)
        is_wrong = is_wrong || most[i].value != i + ranks - 1 || most[i].place != ranks - 1;
    MPI_Win_free(&window);
    return is_wrong;
}
