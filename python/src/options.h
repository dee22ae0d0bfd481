// What Python says, as the structs of heddle.h.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "heddle.h"
#include "input.h"

namespace heddle::python {

// heddle_open_options, from a dictionary with its members as keys: dims, bounds {name: extent},
// shapes {name: extents}, constants, values {name: array}, texts, module, random_constants,
// kv_cache.
class OpenOptions {
 public:
  explicit OpenOptions(const nanobind::dict& from);
  heddle_open_options* get() { return &options_; }

 private:
  const char* text(nanobind::handle value);
  std::vector<heddle_dim> dims(nanobind::handle from);
  std::vector<heddle_value> values(nanobind::handle from);

  heddle_open_options options_{};
  std::deque<std::string> strings_;
  std::deque<std::vector<int64_t>> extents_;
  std::deque<Input> arrays_;
  std::vector<heddle_dim> dims_, bounds_;
  std::vector<heddle_shape> shapes_;
  std::vector<heddle_value> constants_, values_;
  std::vector<const char*> texts_;
};

// heddle_compile_options: every option of `heddle compile`, with underscores.
class CompileOptions {
 public:
  explicit CompileOptions(const nanobind::dict& from);
  heddle_compile_options* get() { return &options_; }
  static nanobind::list names();

 private:
  heddle_compile_options options_{};
  std::deque<std::string> strings_;
};

}  // namespace heddle::python
