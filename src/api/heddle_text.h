/* Tensors of strings: part of heddle.h, which includes this header. */
#ifndef HEDDLE_API_HEDDLE_TEXT_H
#define HEDDLE_API_HEDDLE_TEXT_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strings of a model are numbers: equal strings have equal ones. The number of a string (`size`
 * bytes of UTF-8), which is given to it now if it is new; the string of a number, which lives as
 * long as the model. An unknown number is the empty string. Both from any thread. Fails for a model
 * without strings. */
HEDDLE_EXPORT heddle_status* heddle_model_text_id(const heddle_model* model, const char* text,
                                                  size_t size, uint32_t* id);
HEDDLE_EXPORT heddle_status* heddle_model_text(const heddle_model* model, uint32_t id,
                                               const char** text, size_t* size);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_TEXT_H */
