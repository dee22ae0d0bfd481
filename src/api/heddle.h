/* heddle: the C interface. Everything a program needs to open a model, compile it and run it.
 *
 *   heddle_model* model; heddle_program* program; heddle_context* context;
 *   heddle_status* error = heddle_model_open("model.onnx", NULL, &model);
 *   if (!error) error = heddle_compile(model, NULL, &program);
 *   if (!error) error = heddle_context_create(program, &context);
 *   if (!error) error = heddle_context_bind_input(context, 0, x);
 *   if (!error) error = heddle_context_bind_output(context, 0, y);
 *   if (!error) error = heddle_context_run(context);
 *   if (error) puts(heddle_status_message(error));
 *
 * Errors. A function that can fail returns NULL on success, else a status that the caller frees
 * with heddle_status_free; its output arguments are then untouched. The message is one line: what,
 * where, got, wanted, what to do. NULL where a pointer is needed, a number out of range or a wrong
 * struct_size are user errors that name the function and the argument. In these cases a function
 * without a status does nothing, returns 0 or NULL and zeroes the caller's struct, and
 * heddle_last_error gives the reason. Use of a freed handle is not detected.
 *
 * Ownership. An object written to a function's last argument belongs to the caller, who frees it
 * with the free function of its type; freeing NULL does nothing. A program no longer needs its
 * model, and a context keeps its program alive. Strings and arrays inside the structs below belong
 * to the object they were read from and live as long as it does.
 *
 * Structs. The caller sets struct_size to sizeof the struct and zeroes the rest; zero is always the
 * default. Members are only added at the end: old callers work with new libraries, and new callers
 * with old libraries if the members that are unknown to these are zero.
 *
 * Threads. Different objects may be used from different threads. One model or program may be read
 * by several threads at once (compiling with consume_model counts as writing); a context is used by
 * one thread at a time, except for heddle_context_cancel; contexts of one program run concurrently.
 * If the program draws random numbers (HLO's rng), these runs take turns: each continues the
 * sequence of the previous one; compiling or loading the program restarts the same sequence.
 */
#ifndef HEDDLE_API_HEDDLE_H
#define HEDDLE_API_HEDDLE_H

#include <stddef.h>
#include <stdint.h>

#include "heddle_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HEDDLE_EXPORT __attribute__((visibility("default")))
#else
#define HEDDLE_EXPORT
#endif

#define HEDDLE_VERSION_MAJOR 0
#define HEDDLE_VERSION_MINOR 1
#define HEDDLE_VERSION_PATCH 0

/* The version of the library: major * 1000000 + minor * 1000 + patch. */
HEDDLE_EXPORT uint32_t heddle_version(void);

/* ---- errors ---- */
typedef struct heddle_status heddle_status;

/* heddle_status_kind; the heddle command exits with the same numbers. */
enum {
  HEDDLE_OK = 0,            /* the kind of NULL */
  HEDDLE_USER_ERROR = 2,    /* bad file, unsupported operator, wrong shape, unknown option */
  HEDDLE_MACHINE_ERROR = 3, /* out of memory, no such device, cannot write */
  HEDDLE_CANCELLED = 4,     /* by the caller: heddle_context_cancel, a progress function */
};
HEDDLE_EXPORT int heddle_status_kind(const heddle_status* status);
/* heddle_status_code: distinguishes errors of one kind. More codes may be added. */
enum {
  HEDDLE_CODE_NONE = 0,        /* no further distinction, or no error */
  HEDDLE_CODE_UNSUPPORTED = 1, /* user: an operator, a type or a form of it is not implemented */
  HEDDLE_CODE_SHAPE = 2,       /* user: shapes do not fit together */
  HEDDLE_CODE_MEMORY = 3,      /* machine: out of memory */
  HEDDLE_CODE_DEVICE = 4,      /* machine: there is no such device, or it failed */
  HEDDLE_CODE_VALUE = 5,       /* user: a shape depends on a missing value: heddle_shapes.h */
};
HEDDLE_EXPORT int heddle_status_code(const heddle_status* status);
HEDDLE_EXPORT const char* heddle_status_message(const heddle_status* status); /* "" for NULL */
HEDDLE_EXPORT void heddle_status_free(heddle_status* status);
/* The message of the last function that failed on this thread; "" before that. */
HEDDLE_EXPORT const char* heddle_last_error(void);

/* ---- element types ---- */

HEDDLE_EXPORT const char* heddle_type_name(heddle_type type); /* "f32"; "?" if not a type */
HEDDLE_EXPORT int64_t heddle_type_bytes(heddle_type type); /* per element; 0 if no array has it */

/* ---- models ---- */
typedef struct heddle_model heddle_model;

typedef struct heddle_dim {
  const char* name;
  int64_t size;
} heddle_dim;

typedef struct heddle_shape {
  const char* name; /* of an input */
  const int64_t* dims;
  int64_t rank;
} heddle_shape;

/* A value in the caller's memory: dense, row-major. */
typedef struct heddle_value {
  const char* name;
  heddle_type type;
  const int64_t* dims;
  int64_t rank;
  const void* data;
} heddle_value;

typedef struct heddle_open_options {
  size_t struct_size;
  const heddle_dim* dims; /* ONNX: every dynamic dimension of that name; unbound ones become 1 */
  size_t dim_count;
  const heddle_shape* shapes; /* ONNX: all dimensions of an input */
  size_t shape_count;
  const heddle_value* constants; /* fixed values of inputs, which are then no longer inputs */
  size_t constant_count;
  const char* module; /* which module, if a text file holds several; NULL: there must be only one */
  const heddle_shape* hints;  /* ONNX: shapes of values that will be bound; used for inputs */
  size_t hint_count;          /* that `shapes` lacks. Ignored for fixed shapes */
  const heddle_dim* bounds;   /* ONNX files: dimensions that stay dynamic, up to `size`; see */
  size_t bound_count;         /* heddle_context_set_dim. Initially as in `dims`, `hints` or `size`.
                                 One derived from others must have the derived bound */
  int32_t random_constants;   /* HLO text: invents constants written as {...}; else an error */
  const char* kv_cache;       /* KV caches as ["f32"], "bf16", "int8" (adds ports NAME.scale) */
  const heddle_value* values; /* ONNX, StableHLO: values of inputs in the first run. If a shape */
  size_t value_count;         /* depends on one, programs are specialised on it: heddle_shapes.h */
  int32_t late;               /* shapes of inputs may differ from run to run: heddle_shapes.h */
  const char* const* texts;   /* distinct strings of `constants` and `values`: number i + 1 */
  size_t text_count;          /* means texts[i], 0 the empty string */
} heddle_open_options;

/* Opens a model of any kind (ONNX, HLO or StableHLO text, a compiled program), detected from its
 * content. The file is mapped: it must not be written while the model or a program of it lives. */
HEDDLE_EXPORT heddle_status* heddle_model_open(const char* path, const heddle_open_options* options,
                                               heddle_model** model);
/* The same from memory, which is copied. `name` is for messages. */
HEDDLE_EXPORT heddle_status* heddle_model_parse(const char* name, const void* bytes, size_t size,
                                                const heddle_open_options* options,
                                                heddle_model** model);
HEDDLE_EXPORT void heddle_model_free(heddle_model* model);

typedef struct heddle_model_info {
  size_t struct_size;
  const char* format;      /* "ONNX", "HLO text", "StableHLO text", "compiled program" */
  const char* name;        /* of the module */
  int64_t inputs, outputs; /* how many */
  int64_t notes;           /* how many; assumptions made on import */
  int64_t instructions;    /* of the graph as imported; 0 for a compiled program */
  double import_ms;        /* time to read it */
  int32_t is_program;      /* already compiled */
} heddle_model_info;
HEDDLE_EXPORT void heddle_model_get_info(const heddle_model* model, heddle_model_info* info);
HEDDLE_EXPORT const char* heddle_model_note(const heddle_model* model, int64_t number);
/* By number: other files of the model (external data); dynamic dimensions left unbound. */
HEDDLE_EXPORT const char* heddle_model_file(const heddle_model* model, int64_t number);
HEDDLE_EXPORT heddle_dim heddle_model_unbound(const heddle_model* model, int64_t number);

/* An input or an output: an array, dense and row-major. */
typedef struct heddle_port {
  size_t struct_size;
  const char* name;
  const char* alias; /* another accepted name; "" if there is none */
  heddle_type type;
  int32_t rank; /* -1: unknown until a context is prepared (heddle_shapes.h) */
  const int64_t* dims;
  int64_t bytes;
  int32_t is_text; /* strings: HEDDLE_U32 numbers, see heddle_text.h */
} heddle_port;
/* Numbers outside the range give a port with a NULL name. */
HEDDLE_EXPORT void heddle_model_input(const heddle_model* model, int64_t number, heddle_port* port);
HEDDLE_EXPORT void heddle_model_output(const heddle_model* model, int64_t number,
                                       heddle_port* port);

/* Fills buffers[i], of input i's size, with random values that suit the model; the same for the
 * same model and seed. Floats are in [-1, 1]; integers are small, and in range where they index
 * something; masks (integers or booleans with "mask" in the name) are ones. For a compiled program
 * only checked indices are known: other integers are 0 or 1. Fails for a consumed model. */
HEDDLE_EXPORT heddle_status* heddle_model_random_inputs(const heddle_model* model, uint64_t seed,
                                                        void* const* buffers);

/* ---- compiling ---- */
typedef struct heddle_program heddle_program;

typedef struct heddle_compile_progress { /* before each step, and between parts of a long one */
  size_t struct_size;
  const char* step;    /* "optimize", "fuse", "stitch", "codegen", "plan", "load" */
  int32_t done, steps; /* steps before this one; all steps */
  double seconds;      /* since the compilation began */
} heddle_compile_progress;

/* Memory for temporaries, scratch and prepared weights. Called from any thread that creates, runs
 * or frees a program or context. */
typedef struct heddle_allocator {
  size_t struct_size;
  void* (*allocate)(void* context, int64_t bytes); /* 64-byte aligned; NULL: out of memory */
  void (*release)(void* context, void* memory, int64_t bytes); /* bytes: as allocated */
  void* context;
} heddle_allocator;

/* NULL and 0: the default, in brackets. */
typedef struct heddle_compile_options {
  size_t struct_size;
  const char* device;         /* ["cpu"; a compiled program: its own], "cuda", "cuda:1",
                                 "virtual:NAME" (a target; runs on the host, in a hostile order),
                                 "interp": the reference interpreter, "interp:f64" */
  const char* target;         /* what to compile for: ["host"], or the name of a shipped target */
  const char* level;          /* "O0", "O1", ["O2"] */
  const char* fuse;           /* "off", "greedy", "xla", ["stitch"] */
  const char* memory;         /* ["static"], "dynamic" */
  const char* numerics;       /* "strict", ["default"], "relaxed" */
  const char* precision;      /* ["f32"], "bf16", "f16": for all products and values that can */
  const char* library;        /* ["none"], "auto" (if tuning found it faster), "onednn" */
  const char* cache;          /* folder for compiled code [the user's], "off" */
  const char* dump;           /* folder for every stage as text [none] */
  const char* disable;        /* passes and rewrites to skip, separated by commas [none] */
  int64_t memory_limit_bytes; /* for temporaries [none] */
  int32_t threads;            /* that run the program [one for each available core] */
  int32_t consume_model;      /* releases the graph to save its memory. Only the model's info and
                                 ports may be read afterwards */
  int32_t explain;            /* keeps the decisions, for heddle explain; this compiles the model
                                 even if the cache has it */
  int32_t streams;    /* that memory is planned for [as many as the device has; cpu: 1]; -1: any
                         number */
  const char* order;  /* of the commands: "module" [at O0, O1], "bfs", "dfs", "list", "beam",
                         "cheapest" [at O2]: the one of these with the least memory */
  int32_t background; /* heddle_compile returns as soon as there is a program of level O0; the
                         requested program is compiled in the background, and every context
                         switches to it between two runs. heddle_program_info.swap tells how
                         that may change results. Not for bounded dimensions */
  /* Called on the compiling thread (with `background` also on a thread of ours); a result other
     than 0 cancels the compilation. Not called for work that the cache saves. */
  int32_t (*progress)(const heddle_compile_progress* progress, void* context);
  void* progress_context;
  const heddle_allocator* allocator; /* on device cpu [our own]; it must outlive the program */
  int32_t compile_threads;           /* that compile the program [as many as `threads`] */
  const char* amp; /* mixed precision: ["off"], "auto" (if faster), "bf16", "f16", "propagate" */
  const char* loss_scale;    /* "none", "auto" (heddle_state.h), 2^n [f16: auto, else none] */
  const char* ranges;        /* a file of heddle profile --ranges: which values fit f16 [none] */
  int32_t keep_programs;     /* programs kept for a model with late shapes [32]; the least
                                recently run one is dropped */
  int64_t keep_memory_bytes; /* limit of their total memory [4 GiB] */
} heddle_compile_options;

/* A model that is a compiled program is only loaded, with the options device (it must be the
 * program's), threads and dump; the others are ignored. */
HEDDLE_EXPORT heddle_status* heddle_compile(heddle_model* model,
                                            const heddle_compile_options* options,
                                            heddle_program** program);
HEDDLE_EXPORT void heddle_program_free(heddle_program* program);

/* The state of the compilation at a point, as text: "import", the name of a pass or "optimize" (HLO
 * text), "fuse" (HLO text), "schedule", "stitch" (kernels), "plan" (the program). Free the text
 * with heddle_string_free. */
HEDDLE_EXPORT heddle_status* heddle_compile_until(const heddle_model* model,
                                                  const heddle_compile_options* options,
                                                  const char* point, char** text);
HEDDLE_EXPORT void heddle_string_free(char* text);

typedef struct heddle_program_info {
  size_t struct_size;
  const char* device; /* "cpu", "cuda:0", "interp" */
  const char* isa;    /* widest vector extension of the target: "avx512_vnni" */
  const char* target; /* its name */
  const char* level;
  const char* precision;
  const char* options; /* all options, as text */
  int32_t threads;
  int32_t cache_warm;                    /* the code came from the cache, or from a saved program */
  int64_t inputs, outputs, notes, steps; /* how many */
  int64_t kernels;     /* distinct compiled kernels; 0 for the interpreter, as all that follow */
  int64_t run_kernels; /* those that a run launches: the others only prepare weights */
  int64_t launches;    /* commands of one run; several merged into one launch count once */
  int64_t flops;       /* of one run, in kernels */
  int64_t min_bytes;   /* if each kernel and copy moves its inputs and outputs once */
  int64_t constant_bytes, input_bytes, output_bytes;
  int64_t temporary_bytes;             /* the arena, as planned */
  int64_t temporary_lower_bound_bytes; /* most bytes live at one command */
  int64_t temporary_unshared_bytes;    /* without sharing */
  int64_t object_bytes;                /* code */
  double compile_ms;                   /* including loading */
  double peak_flops_per_ns;            /* f32, of the threads it runs on, from the target file */
  double bandwidth_bytes_per_ns;       /* to memory, likewise */
  int64_t temporary_pool_peak_bytes;   /* most that a run takes from the device for temporaries */
  int32_t temporary_optimal; /* no smaller arena exists for this order: at the bound, or proved */
  /* For a compilation in the background; once it is done, this struct describes its program. */
  int32_t pending;      /* nonzero: not ready */
  const char* swap;     /* "bits": both programs give identical results; "rounding": results differ
                           within heddle_model_tolerance; "": nothing is swapped */
  int64_t compilations; /* for bounded dimensions: the number of programs so far; else 1 */
  const char* bucket; /* the bounds of the last one, which this struct describes: "n=64"; else "" */
  int64_t states;     /* how many: heddle_state.h */
} heddle_program_info;
HEDDLE_EXPORT void heddle_program_get_info(const heddle_program* program,
                                           heddle_program_info* info);
HEDDLE_EXPORT void heddle_program_input(const heddle_program* program, int64_t number,
                                        heddle_port* port);
HEDDLE_EXPORT void heddle_program_output(const heddle_program* program, int64_t number,
                                         heddle_port* port);
/* The number of the donated input (StableHLO's tf.aliasing_output, HLO's input_output_alias) whose
 * memory may be bound as this output, too; -1: none may. */
HEDDLE_EXPORT int64_t heddle_program_output_donor(const heddle_program* program, int64_t number);
/* Rewrites that change numbers, defaults that were used, …: one line each. NULL out of range. */
HEDDLE_EXPORT const char* heddle_program_note(const heddle_program* program, int64_t number);
/* A step of the compilation and its time; NULL out of range. */
HEDDLE_EXPORT const char* heddle_program_step(const heddle_program* program, int64_t number,
                                              double* ms);
/* Waits at most `most_ms` for the compilation in the background, and for prepared weights that the
 * first run has begun to put into the cache. `ready` (may be NULL): whether both are done. An error
 * is that of the compilation; the program of level O0 stays in use. */
HEDDLE_EXPORT heddle_status* heddle_program_wait(heddle_program* program, int64_t most_ms,
                                                 int32_t* ready);
/* Writes the program, with its weights prepared, as a file that heddle_model_open reads. */
HEDDLE_EXPORT heddle_status* heddle_program_save(heddle_program* program, const char* path);

/* ---- tuning ---- */

typedef struct heddle_tune_progress { /* after each product or convolution */
  size_t struct_size;
  int64_t done, tasks;
  const char* key;       /* identifies the computation, by its extents */
  const char* record;    /* the best one found */
  double ns, untuned_ns; /* with it, and without tuning; 0 if it was already known */
  double seconds;        /* since the start */
  int32_t known;         /* kept from earlier, not measured */
  int64_t candidates;    /* given by the rules; the most promising were tried */
  const char* measured;  /* those tried and their nanoseconds: "way: ns; way: ns"; or "" */
} heddle_tune_progress;

/* 0 and NULL: the default, in brackets. */
typedef struct heddle_tune_options {
  size_t struct_size;
  double budget_seconds; /* no task is started after this time [300] */
  int64_t candidates;    /* tried for each task, at most [12] */
  int32_t again;         /* also measures tasks that have a record */
  /* Called on the same thread; a result other than 0 stops, and keeps what is done. */
  int32_t (*progress)(const heddle_tune_progress* progress, void* context);
  void* context;
} heddle_tune_options;

typedef struct heddle_tune_result {
  size_t struct_size;
  int64_t tasks, measured, known, left;
  int64_t faster;        /* of those measured: faster than without tuning */
  double ns, untuned_ns; /* sums over measured tasks, times their uses in the model */
  double seconds;
  int64_t samples;  /* programs that were measured */
  int64_t compiled; /* of those: not in the object cache */
} heddle_tune_result;

/* Measures ways to compute the model's products and convolutions on this machine and keeps the
 * best in the cache folder, where later compilations find them. It can be stopped and continued
 * at any time. The result may be NULL. */
HEDDLE_EXPORT heddle_status* heddle_tune(const heddle_model* model,
                                         const heddle_compile_options* options,
                                         const heddle_tune_options* tuning,
                                         heddle_tune_result* result);

/* ---- running ---- */
typedef struct heddle_context heddle_context;

HEDDLE_EXPORT heddle_status* heddle_context_create(heddle_program* program,
                                                   heddle_context** context);
HEDDLE_EXPORT void heddle_context_free(heddle_context* context);
/* Memory of the port's size, which must stay valid until the port is bound again or the context is
 * freed. Used directly if it is 64-byte aligned, else with one copy per run. */
HEDDLE_EXPORT heddle_status* heddle_context_bind_input(heddle_context* context, int64_t number,
                                                       const void* data);
HEDDLE_EXPORT heddle_status* heddle_context_bind_output(heddle_context* context, int64_t number,
                                                        void* data);
/* The extent of a bounded dimension in the following runs (initially the model's): inputs and
 * outputs are then dense arrays of this extent. The first run of an extent may compile; caches that
 * grow from run to run (docs/dynamic-shapes.md) have one program, and may be empty. An extent that
 * is derived from others need not be set; a run fails if it was set to another value. */
HEDDLE_EXPORT heddle_status* heddle_context_set_dim(heddle_context* context, const char* name,
                                                    int64_t extent);
/* The first run also prepares the weights. ONNX indices out of range are user errors. */
HEDDLE_EXPORT heddle_status* heddle_context_run(heddle_context* context);
/* From any thread: the current run ends before its next command with a status of the kind
 * HEDDLE_CANCELLED; without a current run, the next one does so at once. The contents of its
 * outputs are unspecified; the context can run again. */
HEDDLE_EXPORT void heddle_context_cancel(heddle_context* context);

/* ---- several runs in flight ---- */

/* Runs of one program, in order, each with memory and extents of its own. While one is launched the
 * next is prepared (extents, its bucket's program, inputs in place). Usable from any thread. */
typedef struct heddle_queue heddle_queue;
typedef struct heddle_run heddle_run;
enum {
  HEDDLE_QUEUE_AUTOMATIC = 0, /* pipelined on more than two cores */
  HEDDLE_QUEUE_SERIAL = 1,    /* a run is done when heddle_queue_submit returns */
  HEDDLE_QUEUE_PIPELINED = 2, /* three threads */
};
typedef struct heddle_queue_options {
  size_t struct_size;
  int32_t mode;  /* HEDDLE_QUEUE_... */
  int64_t slots; /* runs that may wait before each step; submitting more blocks [4] */
} heddle_queue_options;
HEDDLE_EXPORT heddle_status* heddle_queue_create(heddle_program* program,
                                                 const heddle_queue_options* options, /* or NULL */
                                                 heddle_queue** queue);
HEDDLE_EXPORT void heddle_queue_free(heddle_queue* queue); /* waits for its runs */
HEDDLE_EXPORT int32_t heddle_queue_is_pipelined(const heddle_queue* queue);
typedef struct heddle_run_request {
  size_t struct_size;
  const void* const* inputs; /* of all ports, by number; valid until the run is done */
  int64_t input_count;
  void* const* outputs;
  int64_t output_count;
  const heddle_dim* dims; /* extents of bounded dimensions; the others are the model's */
  int64_t dim_count;
  /* Called when the outputs are complete, or with the first error (not to be freed), on another
   * thread or, if serial, on this one. May be NULL. It must not submit, wait or free. Not called
   * for a request that heddle_queue_submit refuses. */
  void (*done)(const heddle_status* status, void* context);
  void* context;
} heddle_run_request;
HEDDLE_EXPORT heddle_status* heddle_queue_submit(heddle_queue* queue,
                                                 const heddle_run_request* request,
                                                 heddle_run** run); /* or NULL; to be freed */
HEDDLE_EXPORT void heddle_queue_drain(heddle_queue* queue);         /* waits for all of them */
HEDDLE_EXPORT heddle_status* heddle_run_wait(heddle_run* run);      /* returns its error */
HEDDLE_EXPORT int32_t heddle_run_is_done(const heddle_run* run);
HEDDLE_EXPORT void heddle_run_free(heddle_run* run); /* before or after it is done */

/* ---- custom calls ---- */

typedef struct heddle_array {
  heddle_type type;
  int64_t rank;
  const int64_t* dims;
  void* data; /* dense, row-major */
} heddle_array;

typedef struct heddle_custom_call {
  size_t struct_size;
  const char* target;            /* custom_call_target */
  const char* config;            /* backend_config, as written; "" */
  const heddle_array* arguments; /* tuples as separate leaves; read-only */
  int64_t argument_count;
  const heddle_array* results; /* to be written; initially zero */
  int64_t result_count;
  char* error; /* buffer of error_bytes for the reason of a failure; initially "" */
  int64_t error_bytes;
} heddle_custom_call;
/* Returns 0 on success; anything else fails the run. May be called by several threads at once. */
typedef int32_t (*heddle_custom_function)(const heddle_custom_call* call, void* context);

/* Registers the function for custom calls of that target, in models that this process compiles or
 * loads from now on; a saved program needs it when it is loaded. NULL removes it. Targets built
 * into heddle keep their meaning. Results may depend on the arguments only. */
HEDDLE_EXPORT void heddle_register_custom_call(const char* target, heddle_custom_function function,
                                               void* context);

/* Profiling: while it is on, times every command of a run. Commands inside loops and branches have
 * numbers and times of their own, summed over all trips; a loop's time excludes them. */
HEDDLE_EXPORT void heddle_context_set_profile(heddle_context* context, int32_t on);
HEDDLE_EXPORT void heddle_context_reset_profile(heddle_context* context);
typedef struct heddle_command_profile {
  size_t struct_size;
  const char* name;      /* of the instruction it came from */
  const char* operators; /* "add, reduce, multiply" */
  const char* kind;      /* kernel, copy, host, concatenate, update, loop, branch, library */
  const char* kernel;    /* its name; "" if it is not a kernel */
  int64_t flops, bytes;  /* of one launch */
  int64_t count, total_ns, min_ns;
  const char* label;        /* of a kernel, from its operators: "softmax_select.2"; else the kind */
  const char* const* nodes; /* the model's nodes that it computes; live as long as the context */
  int64_t node_count;
} heddle_command_profile;
HEDDLE_EXPORT int64_t heddle_context_command_count(const heddle_context* context);
/* Numbers outside the range give a NULL name. */
HEDDLE_EXPORT void heddle_context_get_profile(const heddle_context* context, int64_t number,
                                              heddle_command_profile* profile);

/* Trace events of the whole process, in the JSON that Perfetto and chrome://tracing read. Starting
 * discards what was recorded before; stopping writes the file. */
HEDDLE_EXPORT void heddle_trace_start(void);
HEDDLE_EXPORT heddle_status* heddle_trace_stop(const char* path);

#ifdef __cplusplus
}
#endif
#include "heddle_check.h"
#include "heddle_device.h"
#include "heddle_info.h"
#include "heddle_shapes.h"
#include "heddle_state.h"
#include "heddle_text.h"
#endif /* HEDDLE_API_HEDDLE_H */
