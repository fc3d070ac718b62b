/* MPI-IO: counted and timed. The bytes are those that a call asks for, which go to no other rank. */
#include "wrap.h"

#define FILE_CALL(name, ...) COUNTS(File_##name, __VA_ARGS__)
#define MOVE_CALL(name, suffix, ...) \
    RECORDS(File_##name, suffix, add_bytes(&timing, bytes_of(&timing, count, type)), __VA_ARGS__)

FILE_CALL(open, , (comm, path, mode, info, file), MPI_Comm comm, const char *path, int mode,
          MPI_Info info, MPI_File *file)
FILE_CALL(close, , (file), MPI_File *file)
FILE_CALL(delete, , (path, info), const char *path, MPI_Info info)
FILE_CALL(set_size, , (file, size), MPI_File file, MPI_Offset size)
FILE_CALL(preallocate, , (file, size), MPI_File file, MPI_Offset size)
FILE_CALL(set_view, , (file, shift, element, type, data, info), MPI_File file, MPI_Offset shift,
          MPI_Datatype element, MPI_Datatype type, const char *data, MPI_Info info)
FILE_CALL(sync, , (file), MPI_File file)
FILE_CALL(seek, , (file, offset, whence), MPI_File file, MPI_Offset offset, int whence)
FILE_CALL(seek_shared, , (file, offset, whence), MPI_File file, MPI_Offset offset, int whence)

/* By the file's own pointer, and by an offset. The last argument, if any, is a status or a request. */
#define AT_POINTER(name, suffix, buffer_t, count_t, last_t)                                     \
    MOVE_CALL(name, suffix, (file, buffer, count, type, last), MPI_File file, buffer_t *buffer, \
              count_t count, MPI_Datatype type, last_t *last)
#define AT_OFFSET(name, suffix, buffer_t, count_t, last_t)                            \
    MOVE_CALL(name, suffix, (file, offset, buffer, count, type, last), MPI_File file, \
              MPI_Offset offset, buffer_t *buffer, count_t count, MPI_Datatype type, last_t *last)
#define BEGINS_AT_POINTER(name, suffix, buffer_t, count_t)                                \
    MOVE_CALL(name, suffix, (file, buffer, count, type), MPI_File file, buffer_t *buffer, \
              count_t count, MPI_Datatype type)
#define BEGINS_AT_OFFSET(name, suffix, buffer_t, count_t)                                          \
    MOVE_CALL(name, suffix, (file, offset, buffer, count, type), MPI_File file, MPI_Offset offset, \
              buffer_t *buffer, count_t count, MPI_Datatype type)
#define ENDS(name, buffer_t) \
    FILE_CALL(name, , (file, buffer, status), MPI_File file, buffer_t *buffer, MPI_Status *status)

/* direction, type of the buffer, suffix, type of counts */
#define MOVES(way, buffer_t, suffix, count_t)                           \
    AT_POINTER(way, suffix, buffer_t, count_t, MPI_Status)              \
    AT_POINTER(way##_all, suffix, buffer_t, count_t, MPI_Status)        \
    AT_POINTER(way##_shared, suffix, buffer_t, count_t, MPI_Status)     \
    AT_POINTER(way##_ordered, suffix, buffer_t, count_t, MPI_Status)    \
    AT_OFFSET(way##_at, suffix, buffer_t, count_t, MPI_Status)          \
    AT_OFFSET(way##_at_all, suffix, buffer_t, count_t, MPI_Status)      \
    AT_POINTER(i##way, suffix, buffer_t, count_t, MPI_Request)          \
    AT_POINTER(i##way##_all, suffix, buffer_t, count_t, MPI_Request)    \
    AT_POINTER(i##way##_shared, suffix, buffer_t, count_t, MPI_Request) \
    AT_OFFSET(i##way##_at, suffix, buffer_t, count_t, MPI_Request)      \
    AT_OFFSET(i##way##_at_all, suffix, buffer_t, count_t, MPI_Request)  \
    BEGINS_AT_POINTER(way##_all_begin, suffix, buffer_t, count_t)       \
    BEGINS_AT_POINTER(way##_ordered_begin, suffix, buffer_t, count_t)   \
    BEGINS_AT_OFFSET(way##_at_all_begin, suffix, buffer_t, count_t)

#define ALL_MOVES(suffix, count_t)     \
    MOVES(read, void, suffix, count_t) \
    MOVES(write, const void, suffix, count_t)

ALL_MOVES(, int)
#ifdef HAS_PMPI_File_read_c
ALL_MOVES(_c, MPI_Count)
#endif

#define ALL_ENDS(way, buffer_t)      \
    ENDS(way##_all_end, buffer_t)    \
    ENDS(way##_at_all_end, buffer_t) \
    ENDS(way##_ordered_end, buffer_t)

ALL_ENDS(read, void)
ALL_ENDS(write, const void)
