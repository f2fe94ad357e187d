// How early a kernel may start while blocks of the kernel before it are unwritten.
#ifndef QPLAN_SRC_ETHOSU_ISA_BLOCKDEP_H_
#define QPLAN_SRC_ETHOSU_ISA_BLOCKDEP_H_

#include <stdint.h>

#include "src/ethosu/isa/config.h"
#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

constexpr uint32_t kMaxBlockdep = 3;

// The largest BLOCKDEP that is proved safe for `kernel` right after `previous`, by comparing ranges of bytes.
// With it, job j of the kernel may start while the last BLOCKDEP - j blocks of `previous` are unwritten, so
// nothing that blocks 0 to j read may be in them: job j belongs to one of these blocks. Returns 0 where
// nothing is proved: for a kernel that writes what `previous` reads or writes, for maps of several tiles, for
// tables.
uint32_t safe_blockdep(const Kernel& previous, const Kernel& kernel);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_BLOCKDEP_H_
