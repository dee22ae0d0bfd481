/* Checks of outputs: tolerances, and the assertions of a StableHLO test. Part of heddle.h, which
 * includes this header. */
#ifndef HEDDLE_API_HEDDLE_CHECK_H
#define HEDDLE_API_HEDDLE_CHECK_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tolerance of output `number`: |a - b| <= absolute + relative * |b| + relative_to_max *
 * max|b|, derived from the types and the reduction lengths on the way to the output. */
typedef struct heddle_tolerance {
  size_t struct_size;
  double absolute, relative, relative_to_max;
} heddle_tolerance;
HEDDLE_EXPORT void heddle_model_tolerance(const heddle_model* model, int64_t number,
                                          heddle_tolerance* tolerance);

/* The number of assertions (check.expect_eq and the like) of a model. */
HEDDLE_EXPORT int64_t heddle_model_assertions(const heddle_model* model);
/* Checks the assertions: outputs[i] is output i of a run. *failures: NULL if all hold, else one
 * line for each that does not; free it with heddle_string_free. */
HEDDLE_EXPORT heddle_status* heddle_model_check_outputs(const heddle_model* model,
                                                        const void* const* outputs,
                                                        char** failures);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_CHECK_H */
