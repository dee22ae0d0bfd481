/* The origin of a model file, unsupported operators, and the log: part of heddle.h, which includes
 * this header. */
#ifndef HEDDLE_API_HEDDLE_INFO_H
#define HEDDLE_API_HEDDLE_INFO_H

#include "heddle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where a model comes from ---- */

/* From an ONNX file; from StableHLO bytecode the producer only. Strings are "" and numbers 0 if the
 * file lacks them; compiled programs do not keep them. Strings live as long as the model. */
typedef struct heddle_model_origin {
  size_t struct_size;
  const char* producer; /* the tool that wrote the file: "pytorch" */
  const char* producer_version;
  const char* domain;
  const char* description;
  const char* graph; /* its name */
  const char* graph_description;
  int64_t ir_version;
  int64_t version;  /* of the model */
  int64_t opset;    /* of ai.onnx */
  int64_t opsets;   /* how many: heddle_model_opset */
  int64_t metadata; /* how many: heddle_model_metadata */
} heddle_model_origin;
HEDDLE_EXPORT void heddle_model_get_origin(const heddle_model* model, heddle_model_origin* origin);

typedef struct heddle_opset {
  const char* domain; /* "ai.onnx", "com.microsoft" */
  int64_t version;
} heddle_opset;
/* Numbers outside the range give a NULL domain. */
HEDDLE_EXPORT heddle_opset heddle_model_opset(const heddle_model* model, int64_t number);
/* A pair of the file's metadata, in its order. */
HEDDLE_EXPORT heddle_status* heddle_model_metadata(const heddle_model* model, int64_t number,
                                                   const char** key, const char** value);

/* ---- what is not supported ---- */

/* One kind of fault, with all its places in the model. Strings live as long as the status. */
typedef struct heddle_unsupported {
  size_t struct_size;
  const char* kind;    /* "operator", "opset", "input", "initialiser", "element type" */
  const char* what;    /* "Foo", "com.microsoft.Bar" */
  const char* detail;  /* why not; "" */
  const char* way_out; /* what to do instead */
  const char* place;   /* the first one: "node 'a' (Foo)" */
  int64_t opset;       /* of an operator; 0: its domain is not imported */
  int64_t count;       /* places */
} heddle_unsupported;
/* For a status of heddle_model_open or heddle_model_parse with HEDDLE_CODE_UNSUPPORTED: the number
 * of all such faults of the model, found before it is imported; otherwise 0. */
HEDDLE_EXPORT int64_t heddle_status_unsupported_count(const heddle_status* status);
/* Numbers outside the range give a NULL kind. */
HEDDLE_EXPORT void heddle_status_unsupported(const heddle_status* status, int64_t number,
                                             heddle_unsupported* unsupported);

/* ---- a log ---- */

enum {
  HEDDLE_LOG_NOTHING = 0,
  HEDDLE_LOG_WARNING = 1, /* assumptions, and problems that are no errors */
  HEDDLE_LOG_INFO = 2,    /* models opened, programs compiled and loaded, with their times */
  HEDDLE_LOG_DEBUG = 3,   /* the steps of compilations */
};
typedef struct heddle_log_message {
  size_t struct_size;
  int32_t level;
  const char* text; /* one line, without newline; valid until the function returns */
} heddle_log_message;
typedef void (*heddle_log_function)(const heddle_log_message* message, void* context);

/* Calls `function` with messages of level `most` and below, for the whole process and from any
 * thread, one call at a time. NULL, or HEDDLE_LOG_NOTHING: no messages (the initial state). Calls
 * of the previous function have returned by then. heddle calls made by the function are not logged;
 * it must not set the log. */
HEDDLE_EXPORT heddle_status* heddle_set_log(heddle_log_function function, void* context,
                                            int32_t most);

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_API_HEDDLE_INFO_H */
