/* Rows of a tile from or to a file: a call of the system for each, none of Python.

   Plain C without Python: it is loaded with ctypes, which lets go of the interpreter lock. */

#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* `count` runs of `length` bytes, `apart` bytes from one another in the file and `step` in memory. Returns 0, the
   number of the system's error, or -1 if the file ends before. */
EXPORT int linnet_move_runs(int file, int64_t place, int64_t apart, char *memory, int64_t step, int64_t length,
                            int64_t count, int writing)
{
    for (int64_t run = 0; run < count; run++, place += apart, memory += step)
        for (int64_t at = 0; at < length;) {
            ssize_t done = writing ? pwrite(file, memory + at, length - at, place + at)
                                   : pread(file, memory + at, length - at, place + at);
            if (done == 0)
                return -1;
            if (done < 0 && errno != EINTR)
                return errno;
            if (done > 0)
                at += done;
        }
    return 0;
}
