/* State arrays, which a program keeps from run to run: part of heddle.h, which includes this
 * header. */
#ifndef HEDDLE_API_HEDDLE_STATE_H
#define HEDDLE_API_HEDDLE_STATE_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* State arrays, by number (heddle_program_info.states of them): random generators, and the scale of
 * a training step's gradients, "loss_scale", f32[5]: the scale; good steps since it changed;
 * skipped steps; steps skipped since the last good one; the number of the input whose gradient was
 * not finite in the last step, or -1. All contexts of a program share them. */
HEDDLE_EXPORT void heddle_program_state(const heddle_program* program, int64_t number,
                                        heddle_port* port);
/* Copy `bytes` bytes (the port's size) between two runs: they wait for the current run to end. A
 * checkpoint must contain all states. */
HEDDLE_EXPORT heddle_status* heddle_program_read_state(const heddle_program* program,
                                                       int64_t number, void* data, int64_t bytes);
HEDDLE_EXPORT heddle_status* heddle_program_write_state(heddle_program* program, int64_t number,
                                                        const void* data, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_STATE_H */
