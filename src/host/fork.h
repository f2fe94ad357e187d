// Whether this process came out of fork() after something was made: a child has its parent's memory, but only
// the thread that called fork().
#ifndef QPLAN_SRC_HOST_FORK_H_
#define QPLAN_SRC_HOST_FORK_H_

#include <cstdint>

namespace qplan::host {

// Counts forks from now on; once is enough, and more do no harm. False where memory runs out.
[[nodiscard]] bool watch_forks();
// Returns the number of forks between this process and the one that started to watch. A changed number means
// that the earlier threads do not exist in this process. The call is as cheap as reading a variable; getpid()
// would ask the kernel.
[[nodiscard]] uint32_t forks_so_far();

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_FORK_H_
