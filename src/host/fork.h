// Whether this process came out of fork() after something was made: a child has its parent's memory, but only
// the thread that called fork().
#ifndef QPLAN_SRC_HOST_FORK_H_
#define QPLAN_SRC_HOST_FORK_H_

#include <cstdint>

namespace qplan::host {

// Counts forks from now on; once is enough, and more do no harm. False where memory runs out.
[[nodiscard]] bool watch_forks();
// How many forks lie between this process and the one that began to watch. Another number than before means
// that the threads of before are not here. As cheap as reading a variable, where getpid() asks the kernel.
[[nodiscard]] uint32_t forks_so_far();

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_FORK_H_
