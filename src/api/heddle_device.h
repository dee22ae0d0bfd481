/* Memory of a GPU as inputs and outputs: part of heddle.h, which includes this header. */
#ifndef HEDDLE_API_HEDDLE_DEVICE_H
#define HEDDLE_API_HEDDLE_DEVICE_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As heddle_context_bind_input and _output, for memory on the GPU of a program of device cuda:
 * 64-byte aligned, of the primary context (cudaMalloc, a tensor of PyTorch or JAX). A run then
 * copies it only within the GPU; an array that the host itself needs (for an operator without a
 * kernel, or to check indices) crosses the link. Pending work on the caller's streams must be
 * complete before the run; the outputs are complete when it returns. On other devices this is a
 * user error. Binding host memory again undoes it. */
HEDDLE_EXPORT heddle_status* heddle_context_bind_device_input(heddle_context* context,
                                                              int64_t number, const void* data);
HEDDLE_EXPORT heddle_status* heddle_context_bind_device_output(heddle_context* context,
                                                               int64_t number, void* data);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_DEVICE_H */
