// A model, a program on device interp, a context and a queue through the C interface, and the table
// of wrong calls on them: wrong_calls_*.cc, one row a call.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/heddle.h"

namespace heddle::wrong_calls {

// y = x + x of f32[2,3], x named arg0 and "x"; bounded: softmax of x [4, length], length <= 16.
struct Good {
  Good();
  ~Good();
  Good(const Good&) = delete;
  heddle_model* model = nullptr;
  heddle_program* program = nullptr;
  heddle_context* context = nullptr;
  heddle_context* bounded = nullptr;
  heddle_queue* queue = nullptr;
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  const void* inputs[1] = {x};
  void* outputs[1] = {y};

  // What no wrong call may touch.
  heddle_model* no_model = nullptr;
  heddle_program* no_program = nullptr;
  heddle_context* no_context = nullptr;
  heddle_queue* no_queue = nullptr;
  heddle_run* no_run = nullptr;
  char* no_text = nullptr;

 private:
  heddle_model* bounded_model_ = nullptr;
  heddle_program* bounded_program_ = nullptr;
};

struct Row {
  const char* function;
  std::string argument;  // named in the message
  // A status; or, of a function that has none to return (`silent`), null.
  std::function<heddle_status*(Good&)> call;
  bool silent = false;
};

template <typename Struct>
Struct sized() {
  Struct value{};
  value.struct_size = sizeof value;
  return value;
}

// A struct of a later version: one member more, which is set.
template <typename Struct>
struct Later {
  Struct known = sized<Struct>();
  int64_t more = 1;
  Later() { known.struct_size = sizeof *this; }
};

std::vector<Row> model_rows();
std::vector<Row> open_rows();
std::vector<Row> program_rows();
std::vector<Row> run_rows();

#define CALL(function, argument, ...) \
  rows.push_back({#function, argument, [=]([[maybe_unused]] Good& g) { return function(__VA_ARGS__); }})
// A function without a status.
#define SILENT(function, argument, ...)                       \
  rows.push_back({#function, argument,                        \
                  [=]([[maybe_unused]] Good& g) -> heddle_status* {            \
                    static_cast<void>(function(__VA_ARGS__)); \
                    return nullptr;                           \
                  },                                          \
                  true})

}  // namespace heddle::wrong_calls
