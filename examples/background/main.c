/* A model answers at once from a quickly compiled program while the optimised one is compiled in the
 * background; several threads, each with its own context; memory from our own allocator; a custom
 * call; progress; and a run that is cancelled. */
#include <heddle/heddle.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define RUNS 200
#define N 64

/* "example.scale" is our own; the trip count of the loop is an input. */
static const char kModel[] =
    "HloModule served\n"
    "go { s = (s32[], f32[64,64], s32[]) parameter(0)\n"
    "  i = s32[] get-tuple-element(s), index=0\n"
    "  n = s32[] get-tuple-element(s), index=2\n"
    "  ROOT r = pred[] compare(i, n), direction=LT }\n"
    "step { s = (s32[], f32[64,64], s32[]) parameter(0)\n"
    "  i = s32[] get-tuple-element(s), index=0\n"
    "  one = s32[] constant(1)\n"
    "  j = s32[] add(i, one)\n"
    "  x = f32[64,64] get-tuple-element(s), index=1\n"
    "  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  z = f32[64,64] tanh(y)\n"
    "  n = s32[] get-tuple-element(s), index=2\n"
    "  ROOT r = (s32[], f32[64,64], s32[]) tuple(j, z, n) }\n"
    "ENTRY main {\n"
    "  x = f32[64,64] parameter(0)\n"
    "  n = s32[] parameter(1)\n"
    "  zero = s32[] constant(0)\n"
    "  start = (s32[], f32[64,64], s32[]) tuple(zero, x, n)\n"
    "  loop = (s32[], f32[64,64], s32[]) while(start), condition=go, body=step\n"
    "  y = f32[64,64] get-tuple-element(loop), index=1\n"
    "  ROOT z = f32[64,64] custom-call(y), custom_call_target=\"example.scale\"\n"
    "}\n";

static atomic_long live_bytes;

static void must(heddle_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "error: %s\n", heddle_status_message(status));
  exit(heddle_status_kind(status));
}

static void* take(void* context, int64_t bytes) {
  (void)context;
  atomic_fetch_add(&live_bytes, bytes);
  return aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
}

static void give(void* context, void* memory, int64_t bytes) {
  (void)context;
  atomic_fetch_sub(&live_bytes, bytes);
  free(memory);
}

static int32_t scale(const heddle_custom_call* call, void* context) {
  const float* from = call->arguments[0].data;
  float* to = call->results[0].data;
  for (int i = 0; i < N * N; ++i) to[i] = from[i] * *(const float*)context;
  return 0;
}

static int32_t show(const heddle_compile_progress* progress, void* context) {
  (void)context;
  fprintf(stderr, "compiling: %s (%d of %d)\n", progress->step, progress->done + 1,
          progress->steps);
  return 0;
}

typedef struct Request {
  heddle_program* program;
  float x[N * N], y[N * N];
  int32_t trips;
} Request;

static void bind(Request* request, heddle_context** context) {
  for (int i = 0; i < N * N; ++i) request->x[i] = (float)(i % 7) * 0.01f;
  must(heddle_context_create(request->program, context));
  must(heddle_context_bind_input(*context, 0, request->x));
  must(heddle_context_bind_input(*context, 1, &request->trips));
  must(heddle_context_bind_output(*context, 0, request->y));
}

static void* serve(void* argument) {
  Request* request = argument;
  heddle_context* context;
  request->trips = 3;
  bind(request, &context);
  for (int i = 0; i < RUNS; ++i) must(heddle_context_run(context));
  /* The last run uses the optimised program. */
  must(heddle_program_wait(request->program, 60000, NULL));
  must(heddle_context_run(context));
  heddle_context_free(context);
  return NULL;
}

static void* run_for_ever(void* context) { return heddle_context_run(context); }

int main(void) {
  static Request requests[THREADS], endless;
  static float factor = 2;
  pthread_t threads[THREADS], one;
  heddle_model* model;
  heddle_program* program;
  heddle_context* context;
  heddle_program_info info = {sizeof info};
  heddle_allocator allocator = {sizeof allocator, &take, &give, NULL};
  heddle_compile_options options = {sizeof options};
  options.background = 1;
  options.allocator = &allocator;
  options.progress = &show;
  heddle_register_custom_call("example.scale", &scale, &factor);
  must(heddle_model_parse("served", kModel, strlen(kModel), NULL, &model));
  must(heddle_compile(model, &options, &program));
  heddle_model_free(model);

  for (int t = 0; t < THREADS; ++t) {
    requests[t].program = program;
    pthread_create(&threads[t], NULL, &serve, &requests[t]);
  }
  for (int t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL);
  for (int t = 1; t < THREADS; ++t)
    if (memcmp(requests[t].y, requests[0].y, sizeof requests[0].y) != 0) return 1;
  heddle_program_get_info(program, &info);
  printf("level %s; results of the two programs differ by: %s; y[0] = %g\n", info.level, info.swap,
         requests[0].y[0]);

  /* A run that takes too long. */
  endless.program = program;
  endless.trips = INT32_MAX;
  bind(&endless, &context);
  void* status;
  pthread_create(&one, NULL, &run_for_ever, context);
  heddle_context_cancel(context);
  pthread_join(one, &status);
  printf("cancelled: %s\n", heddle_status_message(status));
  if (heddle_status_kind(status) != HEDDLE_CANCELLED) return 1;
  heddle_status_free(status);
  heddle_context_free(context);
  heddle_program_free(program);
  printf("bytes left: %ld\n", (long)live_bytes);
  return live_bytes != 0;
}
