/* Runs a plan in place from flash, in memory known at build time, without heap, and compares the output with
 * the bytes that the framework gave. Exit status 0: equal. C99. */
#include <qplan/qplan.h>
#include <string.h>

#include "image_files.h"
#include "measure.h"
#ifdef FIRMWARE_PROFILE
#include "profile.h"
#endif

extern const uint8_t plan_bytes[], plan_bytes_end[];

#ifndef FIRMWARE_OPEN_FLAGS
#define FIRMWARE_OPEN_FLAGS QPLAN_PLAN_DIGEST
#endif

/* `qplan inspect PLAN` prints what a plan needs; a product would put the exact figure here. */
#define ARENA_BYTES (1024u * 1024u)
static uint8_t arena[ARENA_BYTES] __attribute__((aligned(64)));
#ifdef FIRMWARE_PROFILE /* the cycles of each step */
static profile cycles_of_steps;
#endif

static int fail(const char* what, const qplan_error* error) {
  semihosting_write("firmware: ");
  semihosting_write(what);
  semihosting_write(": ");
  semihosting_write(qplan_status_name(error->status));
  semihosting_write(": ");
  semihosting_write(error->text);
  semihosting_write("\n");
  return 1;
}

int main(void) {
  qplan_error error;
  memset(&error, 0, sizeof(error));
  error.struct_size = sizeof(error);

  stack_paint();
  qplan_plan plan;
  if (qplan_plan_open(&plan, plan_bytes, (size_t)(plan_bytes_end - plan_bytes), FIRMWARE_OPEN_FLAGS, &error) <
      0) {
    return fail("open", &error);
  }

  qplan_session_config config;
  memset(&config, 0, sizeof(config));
  config.struct_size = sizeof(config);
  config.kernels = qplan_kernels_integer();
#ifdef FIRMWARE_PROFILE
  qplan_platform platform;
  profile_platform(&cycles_of_steps, &platform);
  config.platform = &platform;
#endif

  qplan_memory_need need;
  uint32_t num_banks = 1;
  if (qplan_session_memory_needs(&plan, &config, &need, &num_banks, &error) < 0)
    return fail("memory", &error);
  print("memory_bytes ", (uint32_t)need.size);

  qplan_memory memory;
  memory.base = arena;
  memory.size = (size_t)need.size; /* exactly: the declared size must do */
  if (need.size > sizeof(arena)) {
    print("firmware: the arena is too small, bytes: ", sizeof(arena));
    return 1;
  }
  qplan_session* session;
  if (qplan_session_init(&plan, &config, &memory, 1, &session, &error) < 0) return fail("init", &error);

  DLTensor input; /* before the stack is looked at: benchmarks/firmware.sh counts the start up to here */
  if (qplan_session_view(session, QPLAN_INPUT, 0, &input) < 0) {
    qplan_session_last_error(session, &error);
    return fail("input", &error);
  }
  print("init_stack_bytes ", stack_used());

#ifdef FIRMWARE_SELF_CHECK /* for plans of `qplan pack --self-check N`: before the first input */
  stack_paint();
  if (qplan_session_self_check(session) < 0) {
    qplan_session_last_error(session, &error);
    return fail("self-check", &error);
  }
  print("self_check_stack_bytes ", stack_used());
#endif

  if (!read_input(&input)) return 1;

  stack_paint();
  if (qplan_session_invoke(session) < 0) {
    qplan_session_last_error(session, &error);
    return fail("invoke", &error);
  }

  DLTensor output;
  if (qplan_session_view(session, QPLAN_OUTPUT, 0, &output) < 0) {
    qplan_session_last_error(session, &error);
    return fail("output", &error);
  }
  print("run_stack_bytes ", stack_used());
#ifdef FIRMWARE_PROFILE
  profile_print(&cycles_of_steps);
#endif
  uint32_t different;
  if (!compare_output(&output, &different)) return 1;

  for (size_t i = (size_t)need.size; i < sizeof(arena); ++i) {
    if (arena[i] != 0) {
      print("firmware: a byte beyond the declared memory was written, offset ", (uint32_t)i);
      return 1;
    }
  }
  qplan_session_deinit(session);
  return different == 0 ? 0 : 2;
}
