/* pack.h -- the packer's C API: a model file in, a plan out. Host only. C99 and C++17.
 * Calls are independent of each other and may run in several threads. Texts in error are one line:
 * what, where, found, expected, what to do. A list of faults, such as all operators of a model that cannot be
 * imported, has one line for each of them when it goes through error_text: their sum first, then "\n  2 x
 * SVDF ...". Before it stands a line that says what the model was compiled for or how it was quantised, where
 * that is the reason. error.text is the same in one line, cut to its size. */
#ifndef QPLAN_PACK_H_
#define QPLAN_PACK_H_

#include <qplan/qplan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives text or bytes in pieces. */
typedef void (*qplan_write_fn)(void* user, const char* bytes, size_t size);

/* A tensor by name: data for a parameter of the model. Strides are honoured. */
typedef struct qplan_named_tensor {
  const char* name;
  const DLTensor* tensor;
} qplan_named_tensor;

/* A type by name: of an input whose extents or dtype the model leaves open. */
typedef struct qplan_named_type {
  const char* name;
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape; /* extents of at least 1 */
} qplan_named_type;

struct qplan_user_pass; /* below */
struct qplan_custom_operator;

/* The packer's errors may be long (a list of all unsupported operators): whole text through error_text. */
typedef struct qplan_pack_options {
  uint32_t struct_size;
  uint32_t strip_names;    /* 1: leave out names and provenance */
  const char* target;      /* "cpu" (NULL), "cpu,isa=reference", "vta, cpu", ...: docs/placement.md */
  const char* dump_after;  /* NULL, "all" or the name of a pass: IR text through dump */
  uint32_t planner_budget; /* memory planner: hill-climbing iterations; 0: default. Never a time: plans are
                              the same on every host */
  uint32_t log_level;      /* QPLAN_LOG_* */
  void* user;              /* for the functions below, all optional */
  void (*log)(void* user, uint32_t level, const char* text);
  qplan_write_fn dump;
  qplan_write_fn error_text; /* the whole error, where 240 bytes are too few; may have several lines */
  void (*progress)(void* user, const char* stage, uint32_t done, uint32_t total);
  const char* contract; /* numeric contract of all operators: "tfl2", "f32e"; NULL: what the model means */
  const char* io; /* dtype of the plan's inputs and outputs: "int8", "uint8", "float"; NULL: the model's */
  const char* io_layout; /* of its four-dimensional ones: "nhwc", "nchw"; NULL: the model's */
  uint32_t keep_float;   /* 1: rewrites that give a float pattern an integer meaning are left out */
  uint32_t num_skip;
  const char* const* skip;            /* names of passes or rewrites that are left out */
  const qplan_named_tensor* bindings; /* become constants */
  uint32_t num_bindings;
  uint32_t num_input_types;
  const qplan_named_type* input_types;
  /* 1: constants that a Relay text names without data get data made of the seed; other files are refused */
  uint32_t synthesize_constants;
  uint32_t canonical_body; /* 1: qplan_import_text writes the body alone, without names */
  uint64_t synthesize_seed;
  const char* why_not; /* NULL or a rewrite: qplan_import_text tells where it does not apply, and why */
  const struct qplan_user_pass* const* passes; /* of the caller, in addition to the built-in ones */
  uint32_t num_passes;
  uint32_t placement; /* QPLAN_PLACEMENT_* */
  const char* const*
      pins; /* "block3/conv=vta", "%12=cpu": operators whose target is given; docs/placement.md */
  uint32_t num_pins;
  uint32_t no_cost_gate; /* 1: regions stay on the device, whatever prefer says of them */
  uint32_t
      no_fallback; /* 1: no CPU steps and weights for regions: smaller, and nothing runs without the device */
  uint32_t reserved;
  const char* target_file; /* targets from a JSON file, in place of target */
  const char* const*
      target_libs; /* shared libraries, each of which describes a target (qplan/npu_target.h) */
  uint32_t num_target_libs;
  uint32_t reserved2;
  /* One line after a plan was made: operators, MACs and bytes per device, regions, copies. */
  void (*summary)(void* user, const char* text);
  const char* tuning_file; /* measurements of qplan tune: each step gets the schedule that was fastest; NULL:
                              none. docs/schedules.md */
  uint32_t tuning_threads; /* lines of it that count: those of so many threads; 0: 1 */
  uint32_t fuse;           /* QPLAN_FUSE_* */
  /* The packer asks it before each pass and each operator that it lowers, and after each step of self_checks,
   * in the thread that packs; non-zero ends the call with QPLAN_CANCELLED. */
  int32_t (*cancelled)(void* user);
  uint32_t prefer; /* QPLAN_PREFER_*: what decides whether a region is worth its device */
  uint32_t num_custom_operators;
  /* For what the model has that is not qplan's: qplan/custom_operator.h. */
  const struct qplan_custom_operator* const* custom_operators;
  uint64_t max_ram; /* bytes of a session with one thread that the plan may take, in all memory areas of the
                       target together, without memories of devices; 0: any. Where it takes more, the plan of
                       QPLAN_FUSE_MEMORY stands in, on processors of 32 bits with cascades as fast as the
                       rest permits; where that takes more, too, it is an error that names the step which
                       takes most. Distributed among areas a plan may take more than in one memory: that
                       is an error, too */
  uint32_t self_checks; /* runs, at most 64, whose checksums the plan holds for qplan_session_self_check: 4
                           bytes a step and run, and 4 a step for its constants. The packer runs the plan on
                           the reference kernels, as many times */
  uint32_t reserved3;
  /* A part of the model: it begins at these tensors, which become its inputs, and ends at those, which become
   * its outputs, in this order; none: at the model's own. Names of tensors in the file; of a .tflite file
   * also their numbers ("12"), where names are absent or not unique. Operators outside of the part may be
   * anything. Not for TorchScript and Relay text, whose tensors have no names. QPLAN_INVALID_ARGUMENT for a
   * name that is unknown or no tensor that is computed, and where the part also reads inputs that begin_at
   * leaves out. */
  const char* const* begin_at;
  const char* const* end_at;
  uint32_t num_begin_at;
  uint32_t num_end_at;
} qplan_pack_options;

enum { /* layers that run as one step: docs/schedules.md */
       QPLAN_FUSE_AUTO =
           0, /* where it saves much memory and costs little time, or saves time by tuning_file */
       QPLAN_FUSE_OFF = 1, /* each layer a step of its own */
       QPLAN_FUSE_ALL =
           2, /* wherever it can be done, for measurements: its tiles may take more memory than AUTO's plan */
       QPLAN_FUSE_MEMORY =
           3 /* what takes the least memory, whatever time it takes; never more than the others */
};

enum {
  QPLAN_PLACEMENT_SOFT = 0,  /* what the preferred target does not take runs on the next one */
  QPLAN_PLACEMENT_STRICT = 1 /* an operator off the preferred target is an error that lists all of them */
};

enum {                           /* what the cost gate of docs/placement.md judges a region of a device by */
       QPLAN_PREFER_DEFAULT = 0, /* NPU where the first of the targets is a device, else LATENCY */
       QPLAN_PREFER_NPU = 1, /* it stays on the device, however slow that is, if its copies take the CPU less
                                time than its operators would */
       QPLAN_PREFER_LATENCY = 2, /* it stays where the device is estimated faster, copies included */
       QPLAN_PREFER_ENERGY =
           3 /* it stays where the device is estimated to take less energy, copies included */
};

/* Packs the model at model_path (.tflite, .onnx, .pt, Relay text; the content decides, not the name) and
 * hands the plan's bytes to write, in order. Nothing is written on an error. QPLAN_MODEL_INVALID,
 * QPLAN_MODEL_UNSUPPORTED, QPLAN_FILE_ERROR, ... */
QPLAN_API qplan_status qplan_pack_file(const char* model_path, const qplan_pack_options* options,
                                       qplan_write_fn write, void* write_user, qplan_error* error);
/* The same from memory; name stands in errors and provenance. */
QPLAN_API qplan_status qplan_pack_bytes(const void* model, size_t size, const char* name,
                                        const qplan_pack_options* options, qplan_write_fn write,
                                        void* write_user, qplan_error* error);
/* The imported module as Relay text, before any rewrite (canonical 0) or after all (canonical 1). */
QPLAN_API qplan_status qplan_import_text(const char* model_path, const qplan_pack_options* options,
                                         int canonical, qplan_write_fn write, void* write_user,
                                         qplan_error* error);
/* Whether two models are one network: their canonical bodies side by side, as lines of text that name each
 * scale, zero point, attribute and constant that differs (docs/canonical-form.md). options: for both models;
 * types and constants of inputs for those that have such an input.
 * *same: 1 where nothing differs but contracts, names, and biases by 1. The statuses of qplan_import_text. */
QPLAN_API qplan_status qplan_compare_models(const char* model_path, const char* other_path,
                                            const qplan_pack_options* options, qplan_write_fn write,
                                            void* write_user, int* same, qplan_error* error);
/* Which operator of the model would run where, and why, for the targets of options->target
 * ("vta,sram=quarter, cpu"), as pack would place it. docs/placement.md tells what it says. A plan in the
 * place of the model: what was decided when it was packed. */
enum {
  QPLAN_EXPLAIN_TEXT = 0,
  QPLAN_EXPLAIN_JSON = 1,
  QPLAN_EXPLAIN_HTML = 2,
  /* How large a share of a model's operators and multiply-accumulates would run on the CPU, and what would
   * not, as JSON. Operators that are not imported count, too. */
  QPLAN_EXPLAIN_COVERAGE = 3
};
QPLAN_API qplan_status qplan_explain(const char* path, const qplan_pack_options* options, int format,
                                     qplan_write_fn write, void* write_user, qplan_error* error);

/* Receives a file: its name without a folder, and its content. */
typedef void (*qplan_write_file_fn)(void* user, const char* name, const char* bytes, size_t size);
typedef struct qplan_emit_options {
  uint32_t struct_size;
  uint32_t aot;     /* 1: direct calls of kernels instead of an array that the runtime opens */
  const char* name; /* of functions and files; an identifier of C, no header of the C library, and neither
                       "qplan" nor with that prefix, in upper or lower case */
  uint32_t isa;     /* QPLAN_ISA_* of direct calls, at most; QPLAN_ISA_AUTO: what every processor of the
                       plan's architecture has, on a microcontroller that of the plan. Others are an error
                       where aot is 0, and where the packer knows no kernels of them */
  uint32_t reserved;
} qplan_emit_options;
/* The plan as C99 for firmware: NAME.h, NAME.c and, where aot is 0, NAME_plan.c, which define NAME_init,
 * NAME_input, NAME_run and NAME_output and need <qplan/firmware.h> alone. QPLAN_MODEL_UNSUPPORTED for a plan
 * with steps on devices and, where aot is 1, with a step that has no form in C: the error names it. */
QPLAN_API qplan_status qplan_emit_c(const void* plan, size_t size, const qplan_emit_options* options,
                                    qplan_write_file_fn write, void* user, qplan_error* error);
/* A plan among those whose models share an arena. */
typedef struct qplan_linked_plan {
  uint32_t struct_size; /* a multiple of the size of a pointer */
  uint32_t reserved;    /* 0 */
  const void* plan;
  size_t size;
  const char* name; /* of the model's functions and files; as qplan_emit_options::name */
} qplan_linked_plan;
/* Several plans as C99 whose models run one after another in one arena: the files of qplan_emit_c for each,
 * and NAME.h and NAME.c of the arena, with options->name. options as there. Entries of plans follow each
 * other by the caller's struct_size; fields beyond it count as 0. QPLAN_INVALID_ARGUMENT where two names are
 * the same, or two of the headers would define one macro; the errors of qplan_emit_c, with the plan's
 * name. */
QPLAN_API qplan_status qplan_link_c(const qplan_linked_plan* plans, uint32_t num_plans,
                                    const qplan_emit_options* options, qplan_write_file_fn write, void* user,
                                    qplan_error* error);
/* The content of a plan as JSON: content_digest, inputs, outputs, memory, steps, ... */
QPLAN_API qplan_status qplan_inspect_json(const void* plan, size_t size, qplan_write_fn write, void* user,
                                          qplan_error* error);
/* A listing of the plan's steps for people: one per line with kernel, tensors, addresses, parameters. */
QPLAN_API qplan_status qplan_disassemble(const void* plan, size_t size, qplan_write_fn write, void* user,
                                         qplan_error* error);

/* ---- tuning (docs/schedules.md): schedules set sizes and orders of the steps' kernels, never what they
 * compute ---- */
/* The schedules that may be faster than the plan's own, as JSON: {"num_steps": n, "steps": [{"step", "key",
 * "kernel", "candidates": [{}, {"block_pixels": 24}, ...], "pruned": {..}}, ...]}, its own first.
 * isa_limit: QPLAN_ISA_* of the machine that is meant, AUTO for this one; num_threads: of the sessions that
 * are meant. */
QPLAN_API qplan_status qplan_tuning_space(const void* plan, size_t size, uint32_t isa_limit,
                                          uint32_t num_threads, qplan_write_fn write, void* user,
                                          qplan_error* error);
/* The plan with other schedules. schedules: JSON, a list with one of the objects above for each of the plan's
 * steps, null where it stays as it is. */
QPLAN_API qplan_status qplan_reschedule(const void* plan, size_t size, const char* schedules,
                                        qplan_write_fn write, void* user, qplan_error* error);

/* What a CPU costs, fitted to measurements of it (docs/placement.md, "Calibration"). measurements: JSON,
 * {"target": "vta, cpu,isa=avx2", "isa": "avx2", "steps": [{"work": "convolution", "macs": n, "bytes": n,
 * "weight_bytes": n, "ns": n}, ...]}: the targets that the file is to have, the instruction set that ran the
 * steps, and of each step what qplan_inspect_json states as its "cost", with its time. Writes JSON: {"file":
 * a target file, for target_file of the options above, "steps": [{"default_ns": n, "estimated_ns": n},
 * ...]}, the estimates of the same steps before and after. QPLAN_INVALID_ARGUMENT. */
QPLAN_API qplan_status qplan_fit_costs(const char* measurements, qplan_write_fn write, void* user,
                                       qplan_error* error);

/* A plan of one step of a plan, with its constants, for somebody who looks for an error in it: what the step
 * reads are its inputs, in the step's order, and what it writes its outputs. A region brings its fallback
 * steps. QPLAN_NOT_FOUND where the plan has no such step. */
QPLAN_API qplan_status qplan_extract_step(const void* plan, size_t size, uint32_t step, qplan_write_fn write,
                                          void* user, qplan_error* error);

/* ==== patterns, rewrites and passes of the caller (docs/passes.md; C++: <qplan/pass.hpp>, Python:
 * qplan.passes) ==== A rewrite is a pattern and a function that builds the replacement of the value that
 * matched. A pass is a list of rewrites, or a function of its own. They are part of the pipeline like the
 * built-in ones: what they make is verified, they are logged, dumped (dump_after), left out by name (skip)
 * and asked why they do not apply (why_not).
 *
 * pre is the function as it was and is only read; post is the one that takes its place and is only added to.
 * Their values are of different types; qplan_post_value_of alone leads from the first to the second.
 * Lifetimes: a pattern is its creator's until qplan_pattern_destroy. It keeps what it is made of: operand
 * patterns may be destroyed before it. Passes, rewrites and all that they point to must stay until the
 * packing call returns. pre, post, matches, values, nodes and all pointers got from them are good until the
 * callback returns, pointers into post until the next call on it. Threads: patterns are immutable. Callbacks
 * run in the thread that packs. Errors: a callback returns a status; with a negative one packing fails. The
 * text is the one given to qplan_pre_fail, else that of the last call that failed within the callback. No
 * exception may leave a callback. */
typedef struct qplan_pattern qplan_pattern;
typedef struct qplan_pre qplan_pre;
typedef struct qplan_post qplan_post;
typedef struct qplan_matches qplan_matches;
typedef struct qplan_pre_value {
  uint32_t index;
} qplan_pre_value;
typedef struct qplan_pre_node { /* nodes are numbered from 0 in topological order */
  uint32_t index;
} qplan_pre_node;
typedef struct qplan_post_value {
  uint32_t index;
} qplan_post_value;

enum { QPLAN_VALUE_ANY = 0, QPLAN_VALUE_PARAM = 1, QPLAN_VALUE_CONSTANT = 2, QPLAN_VALUE_RESULT = 3 };
enum {
  QPLAN_ATTR_BOOL = 0,
  QPLAN_ATTR_INT = 1,
  QPLAN_ATTR_FLOAT = 2,
  QPLAN_ATTR_STRING = 3,
  QPLAN_ATTR_INTS = 4,
  QPLAN_ATTR_INT_LISTS = 5
};

/* An attribute; what its kind does not use is ignored. */
typedef struct qplan_attr {
  const char* name;
  uint32_t kind;              /* QPLAN_ATTR_* */
  uint32_t count;             /* INTS: of values; INT_LISTS: of lists */
  int64_t integer;            /* INT; BOOL: 0 or 1 */
  double number;              /* FLOAT */
  const char* text;           /* STRING */
  const int64_t* ints;        /* INTS; INT_LISTS: the values of all lists, one list after the other */
  const uint32_t* list_sizes; /* INT_LISTS: count of them */
} qplan_attr;

/* ---- patterns: every call makes a new one ---- */
/* QPLAN_VALUE_ANY, _PARAM or _CONSTANT. */
QPLAN_API qplan_status qplan_pattern_value(uint32_t kind, qplan_pattern** pattern, qplan_error* error);
/* A result of one of the operators. Fewer operands than the node has: the others may be anything. commutative
 * 1: the first two in either order. */
QPLAN_API qplan_status qplan_pattern_op(const char* const* names, uint32_t num_names,
                                        const qplan_pattern* const* operands, uint32_t num_operands,
                                        int commutative, qplan_pattern** pattern, qplan_error* error);
/* first, else second. */
QPLAN_API qplan_status qplan_pattern_either(const qplan_pattern* first, const qplan_pattern* second,
                                            qplan_pattern** pattern, qplan_error* error);
/* The operator on inner (its first operand) and others, or inner alone. */
QPLAN_API qplan_status qplan_pattern_optional(const char* name, const qplan_pattern* inner,
                                              const qplan_pattern* const* others, uint32_t num_others,
                                              qplan_pattern** pattern, qplan_error* error);
/* A value that matches child, whose first operand leads through nodes of the operators path, each on the
 * first operand of the next, to one that matches parent; each value in between is read once. */
QPLAN_API qplan_status qplan_pattern_dominates(const qplan_pattern* parent, const char* const* path,
                                               uint32_t num_path, const qplan_pattern* child,
                                               qplan_pattern** pattern, qplan_error* error);
/* The same pattern with a further condition on the value: */
/* found under this name (qplan_matches_find); the same name twice is the same value twice */
QPLAN_API qplan_status qplan_pattern_as(const qplan_pattern* of, const char* name, qplan_pattern** pattern,
                                        qplan_error* error);
QPLAN_API qplan_status qplan_pattern_dtypes(const qplan_pattern* of, const DLDataType* any_of, uint32_t count,
                                            qplan_pattern** pattern, qplan_error* error);
QPLAN_API qplan_status qplan_pattern_shape(const qplan_pattern* of, const int64_t* shape, uint32_t ndim,
                                           qplan_pattern** pattern, qplan_error* error);
QPLAN_API qplan_status qplan_pattern_rank(const qplan_pattern* of, uint32_t ndim, qplan_pattern** pattern,
                                          qplan_error* error);
/* read by one operand or output, no more */
QPLAN_API qplan_status qplan_pattern_one_use(const qplan_pattern* of, qplan_pattern** pattern,
                                             qplan_error* error);
/* the attribute of the node that makes it, or the operator's fallback, is this */
QPLAN_API qplan_status qplan_pattern_attr(const qplan_pattern* of, const qplan_attr* attr,
                                          qplan_pattern** pattern, qplan_error* error);
/* anything else: holds returns 1, 0 or a negative status; asked when all other conditions at and below the
 * value held. text ends the sentence "expected a value ...". release (or NULL) is called when no pattern
 * needs user any more. */
QPLAN_API qplan_status qplan_pattern_where(const qplan_pattern* of, const char* text,
                                           qplan_status (*holds)(void* user, const qplan_pre* pre,
                                                                 qplan_pre_value value),
                                           void* user, void (*release)(void* user), qplan_pattern** pattern,
                                           qplan_error* error);
/* The pattern in words, as in near-miss reports. */
QPLAN_API qplan_status qplan_pattern_text(const qplan_pattern* pattern, qplan_write_fn write, void* user,
                                          qplan_error* error);
QPLAN_API void qplan_pattern_destroy(qplan_pattern* pattern); /* NULL is fine */

/* ---- reading ---- */
typedef struct qplan_function_info {
  uint32_t struct_size;
  uint32_t num_params;
  uint32_t num_outputs;
  uint32_t num_nodes;
  const char* name;
} qplan_function_info;
typedef struct qplan_value_info {
  uint32_t struct_size;
  uint32_t kind; /* QPLAN_VALUE_PARAM, _CONSTANT or _RESULT */
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape;
  const char* name;    /* of the source model, may be "" */
  const void* data;    /* _CONSTANT: packed, row-major, little-endian */
  uint64_t size_bytes; /* of data */
  uint32_t num_uses;   /* by operands and outputs; 0 for values of post, whose uses are not known yet */
  uint32_t reserved;
} qplan_value_info;
typedef struct qplan_node_info {
  uint32_t struct_size;
  uint32_t num_operands;
  uint32_t num_results;
  uint32_t num_attrs; /* those that are written; others have the operator's fallback */
  const char* op;     /* "qnn.conv2d"; "" for a call of a function of the module */
  const char* callee; /* that function, else "" */
  const char* name;   /* of the source model, may be "" */
} qplan_node_info;
/* Info structs: set struct_size before the call, QPLAN_INVALID_ARGUMENT without. */
QPLAN_API qplan_status qplan_pre_function_info(const qplan_pre* pre, qplan_function_info* info);
QPLAN_API qplan_status qplan_pre_param(const qplan_pre* pre, uint32_t index, qplan_pre_value* value);
QPLAN_API qplan_status qplan_pre_output(const qplan_pre* pre, uint32_t index, qplan_pre_value* value);
QPLAN_API qplan_status qplan_pre_value_info(const qplan_pre* pre, qplan_pre_value value,
                                            qplan_value_info* info);
/* The node that makes the value; QPLAN_NOT_FOUND for parameters and constants. */
QPLAN_API qplan_status qplan_pre_producer(const qplan_pre* pre, qplan_pre_value value, qplan_pre_node* node);
QPLAN_API qplan_status qplan_pre_node_info(const qplan_pre* pre, qplan_pre_node node, qplan_node_info* info);
QPLAN_API qplan_status qplan_pre_operand(const qplan_pre* pre, qplan_pre_node node, uint32_t index,
                                         qplan_pre_value* value);
QPLAN_API qplan_status qplan_pre_result(const qplan_pre* pre, qplan_pre_node node, uint32_t index,
                                        qplan_pre_value* value);
/* The attribute, or the operator's fallback; QPLAN_NOT_FOUND where it has neither. */
QPLAN_API qplan_status qplan_pre_attr(const qplan_pre* pre, qplan_pre_node node, const char* name,
                                      qplan_attr* attr);
/* One of the num_attrs that are written. */
QPLAN_API qplan_status qplan_pre_attr_at(const qplan_pre* pre, qplan_pre_node node, uint32_t index,
                                         qplan_attr* attr);
/* Sets the text of the error with which the callback is about to end; returns status. */
QPLAN_API qplan_status qplan_pre_fail(const qplan_pre* pre, qplan_status status, const char* text);
/* The text of the last call that failed within this callback, "" where none did. */
QPLAN_API const char* qplan_pre_error(const qplan_pre* pre);
/* QPLAN_NOT_FOUND for what an alternative or an optional operator left out. */
QPLAN_API qplan_status qplan_matches_find(const qplan_matches* matches, const char* name,
                                          qplan_pre_value* value);
QPLAN_API qplan_status qplan_matches_root(const qplan_matches* matches, qplan_pre_node* node);

/* ---- building ---- */
/* The new function's counterpart of the old value. */
QPLAN_API qplan_status qplan_post_value_of(qplan_post* post, qplan_pre_value value, qplan_post_value* result);
/* A copy of the tensor's data (CPU memory; strides are honoured). name may be NULL. The same type and content
 * give the same value. */
QPLAN_API qplan_status qplan_post_constant(qplan_post* post, const DLTensor* tensor, const char* name,
                                           qplan_post_value* result);
/* A node. results: room for num_results, as many as the operator has. name (of the source operator, for
 * messages) may be NULL. Types are inferred; what does not fit is an error. */
QPLAN_API qplan_status qplan_post_call(qplan_post* post, const char* op, const qplan_post_value* operands,
                                       uint32_t num_operands, const qplan_attr* attrs, uint32_t num_attrs,
                                       const char* name, qplan_post_value* results, uint32_t num_results);
QPLAN_API qplan_status qplan_post_value_info(const qplan_post* post, qplan_post_value value,
                                             qplan_value_info* info);
/* For run() of a pass: from here on readers of the old value read the new one, which has the same type. In
 * the order of the nodes; nodes whose results are not replaced stay as they are. */
QPLAN_API qplan_status qplan_post_replace(qplan_post* post, qplan_pre_value value,
                                          qplan_post_value replacement);
/* Why a rewrite fires, or why it does not: one line for the log or the near-miss report. */
QPLAN_API qplan_status qplan_post_why(qplan_post* post, const char* text);

/* ---- rewrites and passes ---- */
typedef struct qplan_user_rewrite {
  uint32_t struct_size;
  int32_t benefit; /* at one value higher ones are tried first; equal ones in the order of the list */
  const char* name;
  const qplan_pattern* pattern; /* matched against the result of each node that has one */
  void* user;
  /* Builds the replacement of the matched value, of the same type. result untouched: the rewrite does not
   * apply. */
  qplan_status (*build)(void* user, const qplan_pre* pre, qplan_post* post, const qplan_matches* matches,
                        qplan_post_value* result);
} qplan_user_rewrite;

typedef struct qplan_user_pass {
  uint32_t struct_size;
  uint32_t num_rewrites;
  const char* name;  /* not that of another pass */
  const char* after; /* the pass, built-in or earlier in the list, that it follows; NULL: before all */
  const qplan_user_rewrite* const* rewrites; /* run until none fires */
  void* user;
  /* NULL where the pass is made of rewrites. Called for each function of the module, whenever its turn comes:
   * passes run in rounds until none changes anything, so that run must come to an end too. */
  qplan_status (*run)(void* user, const qplan_pre* pre, qplan_post* post);
} qplan_user_pass;

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_PACK_H_ */
