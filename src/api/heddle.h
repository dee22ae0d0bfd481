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
 * Errors. A function that can fail returns NULL when it worked, else a status that the caller frees
 * with heddle_status_free. What it was to write is then untouched. The message is one line: what,
 * where, got, wanted, what to do. NULL where a pointer is needed, a number out of range or a wrong
 * struct_size are user errors that name the function and the argument. A function without a status
 * does nothing with them, gives 0 or NULL, zeroes the caller's struct, and heddle_last_error tells
 * why. Handles that were freed cannot be told from others.
 *
 * Ownership. What a function writes to its last argument belongs to the caller, who frees it with
 * the function of that type; freeing NULL does nothing. A program needs no model any more, and a
 * context keeps its program alive. Strings and arrays inside the structs below belong to the object
 * they were read from and live as long as it does.
 *
 * Structs. The caller sets struct_size to sizeof the struct and zeroes the rest; zero is always the
 * default. Members are only ever added at the end, so old callers and new libraries agree; and new
 * callers and old libraries where the members that the library does not know are zero.
 *
 * Threads. Different objects may be used from different threads. One model or program may be read
 * by several threads at once (compiling with consume_model counts as writing); a context is used by
 * one thread at a time, heddle_context_cancel aside; contexts of one program run side by side.
 * Where it draws random numbers (rng of HLO) their runs take turns: each goes on where the one
 * before has stopped, from the same start whenever the program is made or loaded.
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

/* Of the library: major * 1000000 + minor * 1000 + patch. */
HEDDLE_EXPORT uint32_t heddle_version(void);

/* ---- errors ---- */

typedef struct heddle_status heddle_status;

/* heddle_status_kind; the heddle command exits with the same numbers. */
enum {
  HEDDLE_OK = 0,            /* of NULL */
  HEDDLE_USER_ERROR = 2,    /* bad file, unsupported operator, wrong shape, unknown option */
  HEDDLE_MACHINE_ERROR = 3, /* out of memory, no such device, cannot write */
  HEDDLE_CANCELLED = 4,     /* by the caller: heddle_context_cancel, a progress function */
};
HEDDLE_EXPORT int heddle_status_kind(const heddle_status* status);
HEDDLE_EXPORT const char* heddle_status_message(const heddle_status* status); /* "" of NULL */
HEDDLE_EXPORT void heddle_status_free(heddle_status* status);
/* The message of the last function that failed on this thread; "" before that. */
HEDDLE_EXPORT const char* heddle_last_error(void);

/* ---- element types ---- */

HEDDLE_EXPORT const char* heddle_type_name(heddle_type type); /* "f32"; "?" of no type */
HEDDLE_EXPORT int64_t heddle_type_bytes(heddle_type type);    /* of one element; 0 of no array's */

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
  const heddle_dim*
      dims; /* ONNX: every dynamic dimension of that name; what is unbound becomes 1 */
  size_t dim_count;
  const heddle_shape* shapes; /* ONNX: all dimensions of an input */
  size_t shape_count;
  const heddle_value* constants; /* ONNX: inputs with a fixed value; they are no inputs any more */
  size_t constant_count;
  const char* module; /* which module of a text file of several; NULL: there must be one only */
  const heddle_shape* hints; /* ONNX: of values that will be bound; they count as `shapes` */
  size_t hint_count;         /* where there is none. Ignored where shapes are fixed */
  const heddle_dim*
      bounds;         /* ONNX, of a file: dynamic dimensions that stay so, up to `size`; see */
  size_t bound_count; /* heddle_context_set_dim. At first, and in the model's ports, the extent is
                         that of `dims` or `hints`, else `size` */
  int32_t random_constants; /* HLO text: invents constants written as {...}; else an error */
} heddle_open_options;

/* Opens a model of any kind, told by its content: ONNX, HLO text, a compiled program. The file is
 * mapped: it must not be written while the model, or a program compiled from it, is alive. */
HEDDLE_EXPORT heddle_status* heddle_model_open(const char* path, const heddle_open_options* options,
                                               heddle_model** model);
/* The same from memory, which is copied. `name` is for messages. */
HEDDLE_EXPORT heddle_status* heddle_model_parse(const char* name, const void* bytes, size_t size,
                                                const heddle_open_options* options,
                                                heddle_model** model);
HEDDLE_EXPORT void heddle_model_free(heddle_model* model);

typedef struct heddle_model_info {
  size_t struct_size;
  const char* format;      /* "ONNX", "HLO text", "compiled program" */
  const char* name;        /* of the module */
  int64_t inputs, outputs; /* how many */
  int64_t notes;           /* how many: what was assumed on import */
  int64_t instructions;    /* of the graph as imported; 0 of a compiled program */
  double import_ms;        /* to read it */
  int32_t is_program;      /* compiled already */
} heddle_model_info;
HEDDLE_EXPORT void heddle_model_get_info(const heddle_model* model, heddle_model_info* info);
HEDDLE_EXPORT const char* heddle_model_note(const heddle_model* model, int64_t number);
/* By number: files read beside the model (external data); dynamic dimensions that nothing bound. */
HEDDLE_EXPORT const char* heddle_model_file(const heddle_model* model, int64_t number);
HEDDLE_EXPORT heddle_dim heddle_model_unbound(const heddle_model* model, int64_t number);

/* An input or an output: an array, dense and row-major. */
typedef struct heddle_port {
  size_t struct_size;
  const char* name;
  const char* alias; /* another accepted name; "" where there is none */
  heddle_type type;
  int32_t rank;
  const int64_t* dims;
  int64_t bytes;
} heddle_port;
/* Numbers outside the range give a port with a NULL name. */
HEDDLE_EXPORT void heddle_model_input(const heddle_model* model, int64_t number, heddle_port* port);
HEDDLE_EXPORT void heddle_model_output(const heddle_model* model, int64_t number,
                                       heddle_port* port);

/* Fills buffers[i], of input i's bytes, with random values that suit the model; the same for the
 * same model and seed. Floats lie in [-1, 1]; integers are small, those that index something stay
 * in its range; masks (integers or booleans with "mask" in the name) are ones. Of a compiled
 * program only checked indices are known: other integers are 0 or 1. Not of a consumed model. */
HEDDLE_EXPORT heddle_status* heddle_model_random_inputs(const heddle_model* model, uint64_t seed,
                                                        void* const* buffers);

/* How far output `number` may be off: |a - b| <= absolute + relative * |b| + relative_to_max *
 * max|b|, derived from the types and the reduction lengths on the way to it. */
typedef struct heddle_tolerance {
  size_t struct_size;
  double absolute, relative, relative_to_max;
} heddle_tolerance;
HEDDLE_EXPORT void heddle_model_tolerance(const heddle_model* model, int64_t number,
                                          heddle_tolerance* tolerance);

/* ---- compiling ---- */
typedef struct heddle_program heddle_program;

typedef struct heddle_compile_progress { /* before each step, and between pieces of a long one */
  size_t struct_size;
  const char* step;    /* "optimize", "fuse", "stitch", "codegen", "plan", "load" */
  int32_t done, steps; /* steps before this one; of how many */
  double seconds;      /* since the compilation began */
} heddle_compile_progress;

/* Memory for temporaries, scratch and prepared weights. Called from any thread that makes a program
 * or context, runs or frees one. */
typedef struct heddle_allocator {
  size_t struct_size;
  void* (*allocate)(void* context, int64_t bytes); /* 64-byte aligned; NULL: there is none */
  void (*release)(void* context, void* memory, int64_t bytes); /* bytes: as allocated */
  void* context;
} heddle_allocator;

/* NULL and 0: the default, in brackets. */
typedef struct heddle_compile_options {
  size_t struct_size;
  const char* device;         /* ["cpu"; of a compiled program: its own], "cuda", "cuda:1",
                                 "virtual:NAME" (of a target; runs on the host, in a hostile order),
                                 "interp": the reference interpreter, "interp:f64" */
  const char* target;         /* what to compile for: ["host"], or the name of a shipped target */
  const char* level;          /* "O0", "O1", ["O2"] */
  const char* fuse;           /* "off", "greedy", "xla", ["stitch"] */
  const char* memory;         /* ["static"], "dynamic" */
  const char* numerics;       /* "strict", ["default"], "relaxed" */
  const char* precision;      /* ["f32"] */
  const char* library;        /* ["none"], "auto" (where tuning measured it), "onednn" */
  const char* cache;          /* folder of compiled code [the user's], "off" */
  const char* dump;           /* folder for every stage as text [none] */
  const char* disable;        /* passes and rewrites to leave out, by commas [none] */
  int64_t memory_limit_bytes; /* of temporaries [none] */
  int32_t threads;            /* that run it [as many as there are cores to use] */
  int32_t consume_model;      /* the graph is given up: saves its memory. Only its info and ports
                                 may be read afterwards */
  int32_t explain;            /* keeps what was decided, for heddle explain: it is compiled even
                                 where the cache has it */
  int32_t streams;    /* memory is planned for so many [what the device has; cpu: 1]; -1: for
                         any number */
  const char* order;  /* of the commands: "module" [at O0, O1], "bfs", "dfs", "list", "beam",
                         "cheapest" [at O2]: of these the one with the least memory */
  int32_t background; /* heddle_compile returns as soon as there is a program of level O0;
                         what is asked for is compiled behind it, and every context goes
                         over to it between two runs. heddle_program_info.swap says what
                         that may do to results. Not of bounded dimensions */
  /* Called on the compiling thread (with `background` also a thread of ours); a result that is not
     0 cancels the compilation. What the cache has is not told. */
  int32_t (*progress)(const heddle_compile_progress* progress, void* context);
  void* progress_context;
  const heddle_allocator* allocator; /* on device cpu [our own]; it must outlive the program */
  int32_t compile_threads;           /* that compile it [as many as run it] */
} heddle_compile_options;

/* A model that is a compiled program is loaded; of the options only device (it must be the
 * program's), threads and dump matter then. */
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
  const char* options; /* all that was chosen, as text */
  int32_t threads;
  int32_t cache_warm;                    /* the code came from the cache, or from a saved program */
  int64_t inputs, outputs, notes, steps; /* how many */
  int64_t kernels;     /* distinct compiled kernels; 0 of the interpreter, like all that follows */
  int64_t run_kernels; /* those that a run launches: the others only prepare weights, once */
  int64_t launches;    /* commands of one run; neighbours that are one launch count once */
  int64_t flops;       /* of one run, in kernels */
  int64_t min_bytes;   /* inputs and outputs of each kernel and copy moved once */
  int64_t constant_bytes, input_bytes, output_bytes;
  int64_t temporary_bytes;             /* the arena, as planned */
  int64_t temporary_lower_bound_bytes; /* most bytes alive at one command */
  int64_t temporary_unshared_bytes;    /* without sharing */
  int64_t object_bytes;                /* code */
  double compile_ms;                   /* with loading */
  double peak_flops_per_ns;            /* f32, of the threads it runs with, from the target file */
  double bandwidth_bytes_per_ns;       /* to memory, likewise */
  int64_t temporary_pool_peak_bytes;   /* most that a run takes from the device for temporaries */
  int32_t temporary_optimal; /* no arena is smaller in this order: at the bound, or proved */
  /* Of a compilation in the background, whose facts these are as soon as it is done. */
  int32_t pending;  /* it is not ready */
  const char* swap; /* between the two programs results keep their "bits", or differ by "rounding",
                       within heddle_model_tolerance; "" where nothing is swapped */
  /* Of bounded dimensions: the programs compiled so far, and the bounds of the last of them, whose
     facts these are: "length=64, batch=4". */
  int64_t compilations; /* else 1 */
  const char* bucket;   /* else "" */
} heddle_program_info;
HEDDLE_EXPORT void heddle_program_get_info(const heddle_program* program,
                                           heddle_program_info* info);
HEDDLE_EXPORT void heddle_program_input(const heddle_program* program, int64_t number,
                                        heddle_port* port);
HEDDLE_EXPORT void heddle_program_output(const heddle_program* program, int64_t number,
                                         heddle_port* port);
/* Rewrites that change numbers, defaults taken, …: one line each. NULL outside the range. */
HEDDLE_EXPORT const char* heddle_program_note(const heddle_program* program, int64_t number);
/* A step of the compilation and its time; NULL outside the range. */
HEDDLE_EXPORT const char* heddle_program_step(const heddle_program* program, int64_t number,
                                              double* ms);
/* Waits for the compilation in the background, and for prepared weights that the first run has
 * begun to put into the cache, `most_ms` at most. `ready` (may be NULL): whether that is done.
 * Error: the compilation's own; the program of level O0 stays. */
HEDDLE_EXPORT heddle_status* heddle_program_wait(heddle_program* program, int64_t most_ms,
                                                 int32_t* ready);
/* Writes the program, with its weights prepared, as a file that heddle_model_open reads. */
HEDDLE_EXPORT heddle_status* heddle_program_save(heddle_program* program, const char* path);

/* ---- tuning ---- */

typedef struct heddle_tune_progress { /* after each product or convolution */
  size_t struct_size;
  int64_t done, tasks;
  const char* key;       /* what it computes, by extents */
  const char* record;    /* what was found best */
  double ns, untuned_ns; /* with it, and without tuning; 0 where it was known before */
  double seconds;        /* since the start */
  int32_t known;         /* kept from an earlier time, not measured */
  int64_t candidates;    /* ways that the rules gave; the most promising were tried */
  const char* measured;  /* the ways tried and their nanoseconds: "way: ns; way: ns"; or "" */
} heddle_tune_progress;

/* 0 and NULL: the default, in brackets. */
typedef struct heddle_tune_options {
  size_t struct_size;
  double budget_seconds; /* no task is begun after that [300] */
  int64_t candidates;    /* ways tried for each task, at most [12] */
  int32_t again;         /* measures what is known already */
  /* Called on the same thread; a result that is not 0 stops, and keeps what is done. */
  int32_t (*progress)(const heddle_tune_progress* progress, void* context);
  void* context;
} heddle_tune_options;

typedef struct heddle_tune_result {
  size_t struct_size;
  int64_t tasks, measured, known, left;
  int64_t faster;        /* of those measured: with a better way than without tuning */
  double ns, untuned_ns; /* of all that were measured, as often as the model uses them */
  double seconds;
  int64_t samples;  /* programs that were measured */
  int64_t compiled; /* of those: not in the cache of objects */
} heddle_tune_result;

/* Measures ways to compute the model's products and convolutions on this machine and keeps the
 * best in the cache folder, where later compilations find them. It can be stopped and gone on with
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
/* Memory of the port's bytes that stays valid until it is bound anew or the context is freed. It is
 * used as it is where it is 64-byte aligned, else at the price of a copy a run. */
HEDDLE_EXPORT heddle_status* heddle_context_bind_input(heddle_context* context, int64_t number,
                                                       const void* data);
HEDDLE_EXPORT heddle_status* heddle_context_bind_output(heddle_context* context, int64_t number,
                                                        void* data);
/* The extent of a bounded dimension in the following runs (at first the model's): the memory of
 * inputs and outputs is then that of dense arrays of this extent. The first run of an extent may
 * compile. */
HEDDLE_EXPORT heddle_status* heddle_context_set_dim(heddle_context* context, const char* name,
                                                    int64_t extent);
/* The first run also prepares the weights. ONNX indices out of range are user errors. */
HEDDLE_EXPORT heddle_status* heddle_context_run(heddle_context* context);
/* From any thread: the run under way ends before its next command with a status of the kind
 * HEDDLE_CANCELLED; where none is under way the next one does so at once. What its outputs hold is
 * unspecified; the context can run again. */
HEDDLE_EXPORT void heddle_context_cancel(heddle_context* context);

/* ---- several runs in flight ---- */

/* Runs of one program, in order, each with memory and extents of its own. While one is launched the
 * next is prepared (extents, the program of its bucket, inputs in place). From any thread. */
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
  int64_t slots; /* runs that may wait in front of each step; who submits more waits [4] */
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
  /* When the outputs are there, or with the first error (not to be freed), on another thread or,
   * serial, on this one. May be NULL. It must not submit, wait or free. Not of a request that
   * heddle_queue_submit refuses. */
  void (*done)(const heddle_status* status, void* context);
  void* context;
} heddle_run_request;
HEDDLE_EXPORT heddle_status* heddle_queue_submit(heddle_queue* queue,
                                                 const heddle_run_request* request,
                                                 heddle_run** run); /* or NULL; to be freed */
HEDDLE_EXPORT void heddle_queue_drain(heddle_queue* queue);         /* until all of them are done */
HEDDLE_EXPORT heddle_status* heddle_run_wait(heddle_run* run); /* until it is done; its error */
HEDDLE_EXPORT int32_t heddle_run_is_done(const heddle_run* run);
HEDDLE_EXPORT void heddle_run_free(heddle_run* run); /* done or not */

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
  const heddle_array* arguments; /* leaves of tuples one by one; not to be written */
  int64_t argument_count;
  const heddle_array* results; /* to be written; zero before */
  int64_t result_count;
} heddle_custom_call;
/* 0: done. Anything else: the run fails, and says so. May be called by several threads at once. */
typedef int32_t (*heddle_custom_function)(const heddle_custom_call* call, void* context);

/* What custom calls of that target do in models of this process that are compiled or loaded from
 * now on; of a saved program the functions must be there when it is loaded. NULL takes it back.
 * Targets that heddle knows itself keep their meaning. Results may depend on the arguments only. */
HEDDLE_EXPORT void heddle_register_custom_call(const char* target, heddle_custom_function function,
                                               void* context);

/* Profiling: times every command of the runs while it is on. Commands inside loops and branches
 * have numbers and times of their own, added up over all trips; a loop's time is without theirs. */
HEDDLE_EXPORT void heddle_context_set_profile(heddle_context* context, int32_t on);
HEDDLE_EXPORT void heddle_context_reset_profile(heddle_context* context);
typedef struct heddle_command_profile {
  size_t struct_size;
  const char* name;      /* of the instruction it came from */
  const char* operators; /* "add, reduce, multiply" */
  const char* kind;      /* kernel, copy, host, concatenate, update, loop, branch, library */
  const char* kernel;    /* its name; "" where it is none */
  int64_t flops, bytes;  /* of one launch */
  int64_t count, total_ns, min_ns;
  const char* label;        /* of a kernel: "softmax_select.2", of its operators; else the kind */
  const char* const* nodes; /* names of the model's own nodes that it does; live as the context */
  int64_t node_count;
} heddle_command_profile;
HEDDLE_EXPORT int64_t heddle_context_command_count(const heddle_context* context);
/* Numbers outside the range give a NULL name. */
HEDDLE_EXPORT void heddle_context_get_profile(const heddle_context* context, int64_t number,
                                              heddle_command_profile* profile);

/* Trace events of the whole process, in the JSON that Perfetto and chrome://tracing read. Starting
 * forgets what was recorded before; stopping writes the file. */
HEDDLE_EXPORT void heddle_trace_start(void);
HEDDLE_EXPORT heddle_status* heddle_trace_stop(const char* path);

/* ---- dynamic dimensions, ports by name ---- */

/* A dimension of an input or an output. Where least < most it is bounded: `name` is then what
 * heddle_context_set_dim takes, and a dimension that is k times that extent has k as its least.
 * Other compiled programs do not keep the names of their dimensions. */
typedef struct heddle_port_dim {
  size_t struct_size;
  const char* name;    /* what the model calls it; "" */
  int64_t extent;      /* as in heddle_port.dims */
  int64_t least, most; /* of runs */
} heddle_port_dim;
HEDDLE_EXPORT heddle_status* heddle_model_input_dim(const heddle_model* model, int64_t number,
                                                    int64_t dimension, heddle_port_dim* dim);
HEDDLE_EXPORT heddle_status* heddle_model_output_dim(const heddle_model* model, int64_t number,
                                                     int64_t dimension, heddle_port_dim* dim);
HEDDLE_EXPORT heddle_status* heddle_program_input_dim(const heddle_program* program, int64_t number,
                                                      int64_t dimension, heddle_port_dim* dim);
HEDDLE_EXPORT heddle_status* heddle_program_output_dim(const heddle_program* program,
                                                       int64_t number, int64_t dimension,
                                                       heddle_port_dim* dim);
/* heddle_context_bind_input and _output by the port's name or alias. */
HEDDLE_EXPORT heddle_status* heddle_context_bind_input_named(heddle_context* context,
                                                             const char* name, const void* data);
HEDDLE_EXPORT heddle_status* heddle_context_bind_output_named(heddle_context* context,
                                                              const char* name, void* data);

#ifdef __cplusplus
}
#endif
#include "heddle_device.h"
#endif /* HEDDLE_API_HEDDLE_H */
