/* For LD_PRELOAD: what signals do to a process that writes a file.
 * In the place of fsync, which the command calls between writing a temporary file and renaming it, the
 * process gets the signal whose number is in QPLAN_TEST_SIGNAL (0: none). QPLAN_TEST_EINTR: the first call of
 * "fsync", or of "close" after an fsync, ends with EINTR, as on network file systems. A file is renamed only
 * after an fsync that succeeded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fsyncs;     /* calls */
static int is_synced;  /* one succeeded */
static int was_closed; /* with EINTR */

static int is_interrupted(const char* function) {
  const char* name = getenv("QPLAN_TEST_EINTR");
  return name != NULL && strcmp(name, function) == 0;
}

int fsync(int fd) {
  const char* number = getenv("QPLAN_TEST_SIGNAL");
  (void)fd;
  if (number != NULL && atoi(number) != 0) raise(atoi(number));
  if (++fsyncs == 1 && is_interrupted("fsync")) {
    errno = EINTR;
    return -1;
  }
  is_synced = 1;
  return 0;
}

int close(int fd) {
  const int result = (int)syscall(SYS_close, fd);
  if (!is_synced || was_closed || !is_interrupted("close")) return result;
  was_closed = 1;
  errno = EINTR;
  return -1;
}

int rename(const char* from, const char* to) {
  if (is_synced) return renameat(AT_FDCWD, from, AT_FDCWD, to);
  errno = EIO;
  return -1;
}
