/* Memory of a GPU as inputs and outputs: part of heddle.h, which includes this header. */
#ifndef HEDDLE_API_HEDDLE_DEVICE_H
#define HEDDLE_API_HEDDLE_DEVICE_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As heddle_context_bind_input and _output, of memory that lies on the GPU of a program of device
 * cuda: 64-byte aligned, of the primary context (cudaMalloc, a tensor of PyTorch or JAX). A run then
 * copies it within the GPU only; where the host itself needs an array (an operator without a kernel,
 * indices that are checked) that one crosses the link. What is under way on the caller's streams
 * must be done before the run; the outputs are there when it returns. On other devices a user
 * error. Binding memory of the host again takes it back. */
HEDDLE_EXPORT heddle_status* heddle_context_bind_device_input(heddle_context* context,
                                                              int64_t number, const void* data);
HEDDLE_EXPORT heddle_status* heddle_context_bind_device_output(heddle_context* context,
                                                               int64_t number, void* data);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_DEVICE_H */
