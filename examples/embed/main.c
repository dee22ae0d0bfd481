/* Runs a model once on random inputs and prints the first value of every f32 output. */
#include <heddle/heddle.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_PORTS 64

static void must(heddle_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "error: %s\n", heddle_status_message(status));
  exit(heddle_status_kind(status));
}

int main(int argc, char** argv) {
  heddle_model* model;
  heddle_program* program;
  heddle_context* context;
  heddle_model_info info = {sizeof info};
  heddle_port port = {sizeof port};
  void *inputs[MOST_PORTS], *outputs[MOST_PORTS];
  must(heddle_model_open(argc > 1 ? argv[1] : "model.onnx", NULL, &model));
  must(heddle_compile(model, NULL, &program));
  must(heddle_context_create(program, &context));
  heddle_model_get_info(model, &info);
  if (info.inputs > MOST_PORTS || info.outputs > MOST_PORTS) return 2;
  for (int64_t i = 0; i < info.inputs; ++i) {
    heddle_model_input(model, i, &port);
    inputs[i] = calloc(1, port.bytes + 1);
    must(heddle_context_bind_input(context, i, inputs[i]));
  }
  must(heddle_model_random_inputs(model, /*seed=*/0, inputs));
  for (int64_t i = 0; i < info.outputs; ++i) {
    heddle_model_output(model, i, &port);
    outputs[i] = calloc(1, port.bytes + 1);
    must(heddle_context_bind_output(context, i, outputs[i]));
  }
  must(heddle_context_run(context));
  for (int64_t i = 0; i < info.outputs; ++i) {
    heddle_model_output(model, i, &port);
    if (port.type == HEDDLE_F32) printf("%s[0] = %g\n", port.name, *(float*)outputs[i]);
    free(outputs[i]);
  }
  for (int64_t i = 0; i < info.inputs; ++i) free(inputs[i]);
  heddle_context_free(context);
  heddle_program_free(program);
  heddle_model_free(model);
  return 0;
}
