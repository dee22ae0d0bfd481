/* Late shapes, bounded dimensions and ports by name: part of heddle.h, which includes this
 * header. */
#ifndef HEDDLE_API_HEDDLE_SHAPES_H
#define HEDDLE_API_HEDDLE_SHAPES_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- late shapes: known only at run time ----
 *
 * A shape may depend on the value of an input (Reshape by an input, the sizes of a Split), or on a
 * value that is computed from inputs (NonZero). With heddle_open_options.values such a model opens
 * with the ports of that first run (if a run has to count their lengths, the model's rank is -1,
 * and programs have the shape), and its programs are specialised: a heddle_program keeps one
 * compiled program for each recent combination of the deciding values
 * (heddle_compile_options.keep_programs). A run with other values finds its program by them, or
 * compiles it. With heddle_open_options.late the shapes of inputs may differ from run to run as
 * well; then values may be omitted, and outputs whose shapes need them have rank -1 until a context
 * is prepared. One run:
 *
 *   heddle_context_set_input_shape(context, 0, dims, 2);   if the shape differs
 *   heddle_context_bind_input(context, 0, x); ...
 *   heddle_context_prepare(context);
 *   heddle_context_output(context, 0, &port);              memory of port.bytes
 *   heddle_context_bind_output(context, 0, y);
 *   heddle_context_run(context);
 *
 * If the outputs of a run have other shapes than the memory was bound for, it fails and writes
 * nothing.
 *
 * The same calls work for programs with bounded dimensions: shapes of inputs then set the extents,
 * instead of heddle_context_set_dim, and must be consistent when a run begins. */
HEDDLE_EXPORT heddle_status* heddle_context_set_input_shape(heddle_context* context, int64_t number,
                                                            const int64_t* dims, int64_t rank);
/* Finds or compiles the program for the bound inputs; computes the values that shapes depend on. */
HEDDLE_EXPORT heddle_status* heddle_context_prepare(heddle_context* context);
/* After heddle_context_prepare, an output as the next run writes it; before, or if shapes are
 * fixed, the program's. Bounded dimensions have the extents set so far. Strings and dims live until
 * the context is prepared, or extents are set, again. */
HEDDLE_EXPORT void heddle_context_output(const heddle_context* context, int64_t number,
                                         heddle_port* port);
/* The number of outputs: the length of a sequence may change. */
HEDDLE_EXPORT int64_t heddle_context_output_count(const heddle_context* context);

/* ---- families: models with a separate text for each combination of extents ----
 *
 * A framework that traces programs can only write HLO or StableHLO text with static shapes, but for
 * any shapes. If dimensions of inputs are given names, such a model has dynamic dimensions:
 * heddle_open_options.bounds and .late work as for ONNX, and with `late` one program serves a
 * bucket of extents if the texts are equal except for them. */
typedef struct heddle_family_dim {
  const char* input; /* "arg0" */
  int64_t dimension;
  const char* name; /* "length"; a derived dimension has an expression: "2*length" */
} heddle_family_dim;

typedef struct heddle_family {
  size_t struct_size;
  const char* name; /* for messages */
  const heddle_family_dim* dims;
  size_t dim_count;
  /* Returns the text for these extents, one for each name that is not an expression; NULL: there is
   * none, and *why may give the reason. Both are copied at once. Called while the model is opened,
   * and later by any thread that compiles a program of it, never by two at a time. */
  const char* (*text_at)(void* context, const heddle_dim* extents, size_t extent_count,
                         const char** why);
  void* context;
  void (*release)(void* context); /* called after the last text_at; may be NULL */
} heddle_family;
/* `hints` (or `shapes`, `dims`) of the options give the extents of the first text. `family` is
 * copied. `release` is called even if this fails. */
HEDDLE_EXPORT heddle_status* heddle_model_of_family(const heddle_family* family,
                                                    const heddle_open_options* options,
                                                    heddle_model** model);

/* ---- dynamic dimensions, ports by name ---- */

/* A dimension of an input or an output. If least < most it is bounded: `name` is then the name for
 * heddle_context_set_dim; a dimension of k times that extent has a `least` of k. Compiled programs
 * without bounds do not keep the names of their dimensions. */
typedef struct heddle_port_dim {
  size_t struct_size;
  const char* name;    /* in the model; or "" */
  int64_t extent;      /* as in heddle_port.dims */
  int64_t least, most; /* range of extents in runs */
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
