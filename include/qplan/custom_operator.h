/* custom_operator.h -- operators that qplan does not have, written by the application. C99, C++17.
 * docs/custom-operators.md is the guide.
 *
 * A qplan_custom_operator is a table of functions in constant memory. It is needed twice:
 *   packer    finds it by name where a model has an operator that is not qplan's, asks prepare() once, and
 *             writes the name, the options and what prepare() asked for into the plan;
 *   runtime   finds it by the same name in the session's kernel set (qplan_kernels_with_custom), asks
 *             prepare() when the session is made, and run() once for each run.
 * A library of operators for the packer and the command (--custom-operators) is a shared library that exports
 *   const qplan_custom_operator* const* qplan_custom_operators(uint32_t* count);
 * It needs this header alone and links nothing of qplan.
 *
 * Trust: a plan is untrusted. prepare() must refuse every shape, dtype and option that run() does not expect;
 * what it accepts, run() may rely on. The contents of tensors are never to be trusted: neither indices nor
 * sizes among them. Both functions get the same call but for data, which prepare() has of constants alone. */
#ifndef QPLAN_CUSTOM_OPERATOR_H_
#define QPLAN_CUSTOM_OPERATOR_H_

#include <qplan/qplan.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { QPLAN_CUSTOM_MAX_OPERANDS = 16 }; /* inputs and outputs together, the state not counted */

typedef struct qplan_custom_tensor {
  const int64_t* shape; /* ndim extents of at least 1, outermost first; packed row-major; NULL for ndim 0 */
  void* data;           /* aligned to the element; of inputs read only; NULL in prepare() but for constants */
  uint64_t size_bytes;
  int32_t ndim; /* at most 6 */
  DLDataType dtype;
  float scale; /* real = scale * (q - zero_point); 0: not quantised */
  int32_t zero_point;
  uint32_t is_constant;
  uint32_t reserved;
} qplan_custom_tensor;

typedef struct qplan_custom_call {
  uint32_t struct_size;
  uint32_t num_inputs;
  uint32_t num_outputs;
  uint32_t reserved;
  const char* name; /* of the operator */
  const qplan_custom_tensor* inputs;
  const qplan_custom_tensor* outputs;
  void* scratch; /* run(): scratch_bytes, aligned to 64 (to 16 with 32-bit pointers), contents undefined */
  uint64_t scratch_bytes;
  /* run(): what the run before wrote as next_state, or zeros in the first run and after
   * qplan_session_reset_state; next_state is to be written whole. NULL without a state. */
  const void* state;
  void* next_state;
  uint64_t state_bytes;
  /* Options of the model, read by the functions below. */
  const void* options;
  uint32_t (*num_numbers)(const struct qplan_custom_call* call, const char* option);
  double (*number)(const struct qplan_custom_call* call, const char* option, uint32_t index);
  const char* (*text)(const struct qplan_custom_call* call, const char* option);
} qplan_custom_call;

/* How many numbers the option has; 0 where the model does not have it, or as a text. */
static inline uint32_t qplan_custom_count(const qplan_custom_call* call, const char* option) {
  return call->num_numbers(call, option);
}
/* The option's number at position `index`, which is finite, or the fallback where the model does not have it.
 */
static inline double qplan_custom_number_at(const qplan_custom_call* call, const char* option, uint32_t index,
                                            double fallback) {
  return index < call->num_numbers(call, option) ? call->number(call, option, index) : fallback;
}
static inline double qplan_custom_number(const qplan_custom_call* call, const char* option, double fallback) {
  return qplan_custom_number_at(call, option, 0, fallback);
}
/* The option's text, or the fallback where the model does not have it. */
static inline const char* qplan_custom_text(const qplan_custom_call* call, const char* option,
                                            const char* fallback) {
  const char* text = call->text(call, option);
  return text != NULL ? text : fallback;
}

/* What an operator needs for a call. All fields are 0 when prepare() is called. */
typedef struct qplan_custom_needs {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t scratch_bytes;
  uint64_t work;        /* elementary operations of a run at most (docs/work.md), at least 1 */
  uint64_t state_bytes; /* kept from run to run; the packer adds it to the function's states */
  char error[128];      /* why the call is refused, one line, NUL-terminated */
} qplan_custom_needs;

/* `return qplan_custom_refuse(needs, "the boxes are not float32");` */
static inline qplan_status qplan_custom_refuse(qplan_custom_needs* needs, const char* error) {
  size_t i = 0;
  for (; error[i] != '\0' && i + 1 < sizeof(needs->error); ++i) needs->error[i] = error[i];
  needs->error[i] = '\0';
  return QPLAN_INVALID_ARGUMENT;
}

/* The type of an output, as infer() gives it. */
typedef struct qplan_custom_type {
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[6];
} qplan_custom_type;

typedef struct qplan_custom_operator {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* as the model has it: "TFLite_Detection_PostProcess" */
  void* user;
  /* Packer only: the types of the outputs, num_outputs of them, where the model does not state them
   * (outputs of TFLite files may have no shape). call has inputs and options; its outputs are not known
   * yet. NULL: the model must state them. */
  qplan_status (*infer)(const struct qplan_custom_operator* self, const qplan_custom_call* call,
                        qplan_custom_type* outputs, qplan_custom_needs* needs);
  /* Checks the call; not QPLAN_OK: refused, needs->error says why. Depends on the call alone, and may be
   * called any number of times. */
  qplan_status (*prepare)(const struct qplan_custom_operator* self, const qplan_custom_call* call,
                          qplan_custom_needs* needs);
  /* Computes the outputs. It may be called by several threads at once, for different sessions. */
  void (*run)(const struct qplan_custom_operator* self, const qplan_custom_call* call);
} qplan_custom_operator;

/* Storage of a kernel set, the caller's. */
typedef struct qplan_kernel_set_storage {
  uint64_t opaque[4];
} qplan_kernel_set_storage;

/* base (qplan_kernels_all(), ...) with the operators, in storage, which must outlive the sessions like the
 * operators; nothing is copied or allocated. Of two operators of one name the first counts. NULL where an
 * argument is NULL, or an operator lacks its name, prepare or run. */
QPLAN_API const qplan_kernel_set* qplan_kernels_with_custom(qplan_kernel_set_storage* storage,
                                                            const qplan_kernel_set* base,
                                                            const qplan_custom_operator* const* operators,
                                                            uint32_t num_operators);

/* The entry of a library of operators, and how the command finds it. */
#define QPLAN_CUSTOM_OPERATORS_ENTRY_NAME "qplan_custom_operators"
typedef const qplan_custom_operator* const* (*qplan_custom_operators_entry_fn)(uint32_t* count);
/* In libqplan_host. Loads a library of operators, which stays loaded until the process ends, and returns them
 * with those that come with qplan after them: TFLite_Detection_PostProcess and PosenetDecoderOp of TensorFlow
 * Lite. path NULL: these alone. The list lives as long. QPLAN_FILE_ERROR where path cannot be loaded,
 * QPLAN_INVALID_ARGUMENT where it has no such entry or an operator is not whole. */
QPLAN_API qplan_status qplan_host_custom_operators_load(const char* path,
                                                        const qplan_custom_operator* const** operators,
                                                        uint32_t* num_operators, qplan_error* error);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_CUSTOM_OPERATOR_H_ */
