/* What outputs have to be: how far off they may be, and what a StableHLO test asserts of them. Part
 * of heddle.h, which includes this header. */
#ifndef HEDDLE_API_HEDDLE_CHECK_H
#define HEDDLE_API_HEDDLE_CHECK_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far output `number` may be off: |a - b| <= absolute + relative * |b| + relative_to_max *
 * max|b|, derived from the types and the reduction lengths on the way to it. */
typedef struct heddle_tolerance {
  size_t struct_size;
  double absolute, relative, relative_to_max;
} heddle_tolerance;
HEDDLE_EXPORT void heddle_model_tolerance(const heddle_model* model, int64_t number,
                                          heddle_tolerance* tolerance);

/* How many assertions (check.expect_eq and the like) a model has. */
HEDDLE_EXPORT int64_t heddle_model_assertions(const heddle_model* model);
/* Whether they hold: outputs[i] is what a run wrote as output i. *failures: NULL if all do, else a
 * line for each that does not; free it with heddle_string_free. */
HEDDLE_EXPORT heddle_status* heddle_model_check_outputs(const heddle_model* model,
                                                        const void* const* outputs,
                                                        char** failures);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_CHECK_H */
