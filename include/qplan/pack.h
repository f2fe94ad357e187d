/* pack.h -- the packer's C API: a model file in, a plan out. Host only. C99 and C++17.
 * Calls are independent of each other and may run in several threads. Texts in error are one line:
 * what, where, found, expected, what to do. */
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

/* The packer's errors may be long (a list of all unsupported operators): whole text through error_text. */
typedef struct qplan_pack_options {
  uint32_t struct_size;
  uint32_t strip_names;       /* 1: leave out names and provenance */
  const char* target;         /* "cpu" (NULL), "cpu,isa=reference", "cpu,arch=cortex-m", ... */
  const char* dump_after;     /* NULL, "all" or the name of a pass: IR text through dump */
  uint32_t planner_budget;    /* memory planner: hill-climbing iterations; 0: default. Never a time: plans are
                                 the same on every host */
  uint32_t log_level;         /* QPLAN_LOG_* */
  void* user;                 /* for the functions below, all optional */
  void (*log)(void* user, uint32_t level, const char* text);
  qplan_write_fn dump;
  qplan_write_fn error_text;  /* the whole error, where 240 bytes are too few */
  void (*progress)(void* user, const char* stage, uint32_t done, uint32_t total);
  const char* contract;       /* numeric contract of all operators: "tfl2", "f32e"; NULL: what the model means */
  const char* io;             /* dtype of the plan's inputs and outputs: "int8", "uint8", "float"; NULL: the model's */
  const char* io_layout;      /* of its four-dimensional ones: "nhwc", "nchw"; NULL: the model's */
  uint32_t keep_float;        /* 1: rewrites that give a float pattern an integer meaning are left out */
  uint32_t num_skip;
  const char* const* skip;    /* names of passes or rewrites that are left out */
  const qplan_named_tensor* bindings;  /* become constants */
  uint32_t num_bindings;
  uint32_t num_input_types;
  const qplan_named_type* input_types;
  uint32_t synthesize_constants; /* 1: constants that a text names without data get data made of the seed */
  uint32_t canonical_body;    /* 1: qplan_import_text writes the body alone, without names */
  uint64_t synthesize_seed;
  const char* why_not;        /* NULL or the name of a rewrite: qplan_import_text tells where it does not apply, and why */
} qplan_pack_options;

/* Packs the model at model_path (.tflite; the content decides, not the name) and hands the plan's bytes to write, in
 * order. Nothing is written on an error. QPLAN_MODEL_INVALID, QPLAN_MODEL_UNSUPPORTED, QPLAN_FILE_ERROR, ... */
QPLAN_API qplan_status qplan_pack_file(const char* model_path, const qplan_pack_options* options,
                                       qplan_write_fn write, void* write_user, qplan_error* error);
/* The same from memory; name stands in errors and provenance. */
QPLAN_API qplan_status qplan_pack_bytes(const void* model, size_t size, const char* name,
                                        const qplan_pack_options* options, qplan_write_fn write, void* write_user,
                                        qplan_error* error);
/* The imported module as Relay text, before any rewrite (canonical 0) or after all (canonical 1). */
QPLAN_API qplan_status qplan_import_text(const char* model_path, const qplan_pack_options* options, int canonical,
                                         qplan_write_fn write, void* write_user, qplan_error* error);

/* What a plan holds, as JSON: content_digest, inputs, outputs, memory, steps, ... */
QPLAN_API qplan_status qplan_inspect_json(const void* plan, size_t size, qplan_write_fn write, void* user,
                                          qplan_error* error);
/* A listing of the plan's steps for people: one per line with kernel, tensors, addresses, parameters. */
QPLAN_API qplan_status qplan_disassemble(const void* plan, size_t size, qplan_write_fn write, void* user,
                                         qplan_error* error);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_PACK_H_ */
