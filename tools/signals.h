// What the command does on SIGINT, SIGTERM and SIGHUP.
#ifndef TOOLS_SIGNALS_H_
#define TOOLS_SIGNALS_H_

namespace qplan::tools {

// SIGINT, SIGTERM and SIGHUP remove the temporary files of writes under way and then end the process as they
// do by default, so that a shell sees the signal. One that is ignored (nohup) stays ignored. SIGXFSZ is
// ignored: a limit on the size of files is an error of the write, with a text, and not the end of the
// process.
void install_signal_handlers();

}  // namespace qplan::tools

#endif  // TOOLS_SIGNALS_H_
