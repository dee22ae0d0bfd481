/* Shapes that are known late, bounded dimensions and ports by name: part of heddle.h, which
 * includes this header. */
#ifndef HEDDLE_API_HEDDLE_SHAPES_H
#define HEDDLE_API_HEDDLE_SHAPES_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shapes that are known late ----
 *
 * A shape may depend on the value of an input (Reshape by an input, the sizes of a Split), or on a
 * value that is computed from inputs (NonZero). With heddle_open_options.values such a model opens
 * with the ports of that first run (where their lengths are counted when it runs, programs have
 * them, and the model's rank is -1), and its programs are specialised: each keeps one for every
 * combination of deciding values that it has seen lately (heddle_compile_options.keep_programs). A
 * run with others finds its program by them, or compiles it. With heddle_open_options.late the
 * shapes of inputs may differ from run to run as well; then values may be left out, and where
 * outputs cannot be told without, their rank is -1 until a context is prepared. One run:
 *
 *   heddle_context_set_input_shape(context, 0, dims, 2);   where shapes differ
 *   heddle_context_bind_input(context, 0, x); ...
 *   heddle_context_prepare(context);
 *   heddle_context_output(context, 0, &port);              memory of port.bytes
 *   heddle_context_bind_output(context, 0, y);
 *   heddle_context_run(context);
 *
 * A run whose outputs have other shapes than memory was bound for fails and writes nothing.
 *
 * Programs with bounded dimensions take the same calls: shapes of inputs then say the extents, in
 * place of heddle_context_set_dim, and must fit together when a run begins. */
HEDDLE_EXPORT heddle_status* heddle_context_set_input_shape(heddle_context* context, int64_t number,
                                                            const int64_t* dims, int64_t rank);
/* Finds or makes the program for the inputs that are bound; computes the values that decide. */
HEDDLE_EXPORT heddle_status* heddle_context_prepare(heddle_context* context);
/* An output as the next run writes it, after heddle_context_prepare; before, and where shapes are
 * fixed, the program's. Of bounded dimensions, at the extents said so far. Strings and dims live
 * until the context is prepared, or extents are said, again. */
HEDDLE_EXPORT void heddle_context_output(const heddle_context* context, int64_t number,
                                         heddle_port* port);
/* How many outputs there are: a sequence may have other lengths. */
HEDDLE_EXPORT int64_t heddle_context_output_count(const heddle_context* context);

/* ---- models that are another text for other extents ----
 *
 * A framework that traces programs has HLO or StableHLO text of static shapes only, and can write
 * it for any. Told which dimensions of which inputs have a name, such a model has dynamic
 * dimensions: heddle_open_options.bounds and .late are for it as they are for ONNX, and with
 * `late` one program serves a bucket of extents where the texts agree but for them. */
typedef struct heddle_family_dim {
  const char* input; /* "arg0" */
  int64_t dimension;
  const char* name; /* "length"; of one that follows from others an expression: "2*length" */
} heddle_family_dim;

typedef struct heddle_family {
  size_t struct_size;
  const char* name; /* for messages */
  const heddle_family_dim* dims;
  size_t dim_count;
  /* The text for these extents, one for each name that is no expression; NULL: there is none, and *why may say why not.
   * Both are copied at once. Called while the model is opened, and later by whatever thread
   * compiles a program of it, never by two at a time. */
  const char* (*text_at)(void* context, const heddle_dim* extents, size_t extent_count,
                         const char** why);
  void* context;
  void (*release)(void* context); /* once nothing will ask for a text any more; may be NULL */
} heddle_family;
/* `hints` (or `shapes`, `dims`) of the options say the extents of the first text. `family` is
 * copied. Where this fails, `release` has been called, too. */
HEDDLE_EXPORT heddle_status* heddle_model_of_family(const heddle_family* family,
                                                    const heddle_open_options* options,
                                                    heddle_model** model);

/* ---- dynamic dimensions, ports by name ---- */

/* A dimension of an input or an output. Where least < most it is bounded: `name` is then the one
 * for heddle_context_set_dim, and a dimension that is k times that extent has k as its least.
 * Compiled programs without bounds do not keep the names of their dimensions. */
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
/* As heddle_context_bind_input and _output, by the port's name or alias. */
HEDDLE_EXPORT heddle_status* heddle_context_bind_input_named(heddle_context* context,
                                                             const char* name, const void* data);
HEDDLE_EXPORT heddle_status* heddle_context_bind_output_named(heddle_context* context,
                                                              const char* name, void* data);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_SHAPES_H */
