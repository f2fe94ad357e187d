// Options that no C could come of: names that mean something else to a compiler or to the runtime, and
// instruction sets that change nothing.
#include <algorithm>
#include <string_view>

#include "src/packer/emit/emit.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::emit {
namespace {

bool is_identifier(const std::string& name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && is_letter(name[0]) && name.size() <= 63 &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Headers of C up to C23, of POSIX, and those beside them that the headers of glibc, newlib and picolibc
// include. The folder of the model's files is searched before the C library's: a file of such a name there
// takes the place of the header, whoever includes it.
constexpr std::string_view kHeadersOfC =
    " "
    "_ansi _newlib_version _syslist aio alloca ar argp argz assert byteswap complex cpio ctype devctl "
    "dirent dlfcn elf endian envlock envz err errno error execinfo fastmath fcntl features fenv float "
    "fmtmsg fnmatch fstab fts ftw getopt glob grp gshadow iconv ieeefp ifaddrs inttypes iso646 langinfo "
    "lastlog libgen libintl limits link locale malloc math mcheck memory mntent monetary mqueue ndbm "
    "netdb newlib nl_types obstack paths picolibc poll printf pthread pty pwd reent regdef regex regexp "
    "resolv sched search semaphore setjmp sgtty shadow signal spawn stab stdalign stdarg stdatomic stdbit "
    "stdbool stdckdint stddef stdint stdio stdio_ext stdlib stdnoreturn string strings stropts syscall "
    "sysexits syslimits syslog tar termio termios tgmath threads time ttyent uchar ucontext ulimit unctrl "
    "unistd unwind utime utmp utmpx values varargs wait wchar wctype wordexp xlocale ";

// What has a function NAME_init, or the like, in the headers of C (threads.h, stdatomic.h) and of POSIX.
constexpr std::string_view kTypesOfC = " atomic cnd mtx sem ";

std::string lower_case(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw PackError(QPLAN_INVALID_ARGUMENT,
                  cat("emit-c: '", name, "' ", why,
                      "; pass another one with --name, or rename the plan's file for link"));
}

// Whether the packer knows kernels of the instruction set: those of other architectures are not in its lists.
bool has_kernels_of(uint32_t isa) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  for (uint32_t i = 0; i < all.num_families; ++i) {
    const KernelFamily* const family = all.families[i];
    for (uint32_t v = 0; family != nullptr && v < family->num_variants; ++v) {
      if (family->variants[v].isa == isa) return true;
    }
  }
  return false;
}

}  // namespace

// Upper and lower case are the same to the file systems of Windows and macOS, and in the names of macros.
void check_name(const std::string& name) {
  if (!is_identifier(name))
    refuse(
        name,
        "cannot be part of a name in C: at most 63 letters, digits and '_', the first of which is no digit");
  const std::string lower = lower_case(name);
  if (kHeadersOfC.find(cat(" ", lower, " ")) != std::string_view::npos)
    refuse(name, cat("is the name of a header of the C library, whose place '", name, ".h' would take"));
  if (lower == "qplan" || lower.starts_with("qplan_"))
    refuse(name, "begins as the names that qplan's own headers declare");
  if (kTypesOfC.find(cat(" ", lower, " ")) != std::string_view::npos || lower.starts_with("pthread_") ||
      lower.starts_with("posix_")) {
    refuse(name, cat("gives functions the names of some of the C library's: '", name, "_init'"));
  }
  // As static functions and constants of the files are called: step0_layer0_run, step1_input.
  if (lower.starts_with("step") && lower.size() > 4 && lower[4] >= '0' && lower[4] <= '9')
    refuse(name, "begins as the names of steps within the files");
}

void check_isa(const EmitOptions& options) {
  if (options.isa == QPLAN_ISA_AUTO) return;
  const char* const known = qplan_isa_name(options.isa);
  if (known == nullptr)
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("emit-c: the instruction set ", options.isa, " is not known"));
  const std::string name = known;
  if (!options.is_aot) {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("emit-c: the instruction set '", name,
                        "' is given without --aot, where the runtime chooses kernels by the processor; pass "
                        "--aot, too, or pack the model for one with --target cpu,arch=...,isa=..."));
  }
  if (has_kernels_of(options.isa)) return;
  throw PackError(QPLAN_INVALID_ARGUMENT,
                  cat("emit-c --aot: this qplan knows no kernels of the instruction set '", name,
                      "', so that the C would call reference kernels; leave --isa out, which calls those "
                      "of the plan's own instruction set, or pass --isa reference"));
}

}  // namespace qplan::emit
