/* Tensors of strings: part of heddle.h, which includes this header. */
#ifndef HEDDLE_API_HEDDLE_TEXT_H
#define HEDDLE_API_HEDDLE_TEXT_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strings of a model are represented by numbers: equal strings have equal numbers. The first
 * function returns the number of a string (`size` bytes of UTF-8), assigning one if the string is
 * new; the second the string of a number, which lives as long as the model. An unknown number means
 * the empty string. Any thread may call them. They fail for a model without strings. */
HEDDLE_EXPORT heddle_status* heddle_model_text_id(const heddle_model* model, const char* text,
                                                  size_t size, uint32_t* id);
HEDDLE_EXPORT heddle_status* heddle_model_text(const heddle_model* model, uint32_t id,
                                               const char** text, size_t* size);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_TEXT_H */
