/* For LD_PRELOAD: in the place of fsync, which the command calls between writing a temporary file and renaming it, the
 * process gets the signal whose number is in QPLAN_TEST_SIGNAL (0: none). */
#include <signal.h>
#include <stdlib.h>

int fsync(int fd) {
  const char* number = getenv("QPLAN_TEST_SIGNAL");
  (void)fd;
  if (number != NULL && atoi(number) != 0) raise(atoi(number));
  return 0;
}
