// For tests: a model of ONNX that runs through the C interface, with shapes that are known late.
#pragma once

#include <string>
#include <vector>

#include "api/heddle.h"
#include "import/onnx_test_util.h"

namespace heddle::api::testing {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

class Session {
 public:
  Session(const import::testing::Model& from, const std::vector<heddle_value>& values, bool late,
          int32_t keep = 0) {
    heddle_open_options open{};
    open.struct_size = sizeof open;
    open.values = values.data();
    open.value_count = values.size();
    open.late = late ? 1 : 0;
    const std::string bytes = from.bytes();
    take(heddle_model_parse("test", bytes.data(), bytes.size(), &open, &model_));
    if (model_ == nullptr) return;
    heddle_compile_options compile{};
    compile.struct_size = sizeof compile;
    compile.cache = "off";
    compile.keep_programs = keep;
    take(heddle_compile(model_, &compile, &program_));
    if (program_ != nullptr) take(heddle_context_create(program_, &context_));
  }
  Session(const Session&) = delete;
  ~Session() {
    heddle_context_free(context_);
    heddle_program_free(program_);
    heddle_model_free(model_);
  }

  // Binds, prepares and runs: output 0.
  Floats run(const void* first, const void* second) {
    take(heddle_context_bind_input(context_, 0, first));
    if (second != nullptr) take(heddle_context_bind_input(context_, 1, second));
    take(heddle_context_prepare(context_));
    if (!error_.empty()) return {};  // how long the output is is not known then
    Floats y(static_cast<size_t>(output().bytes) / sizeof(float));
    y.reserve(1);
    take(heddle_context_bind_output(context_, 0, y.data()));
    take(heddle_context_run(context_));
    return y;
  }
  void set_shape(int64_t input, const Ints& dims) {
    take(heddle_context_set_input_shape(context_, input, dims.data(), std::ssize(dims)));
  }
  heddle_port output() const {
    heddle_port port{};
    port.struct_size = sizeof port;
    heddle_context_output(context_, 0, &port);
    return port;
  }
  Ints dims() const {
    const heddle_port port = output();
    return {port.dims, port.dims + port.rank};
  }
  int64_t compilations() const {
    heddle_program_info info{};
    info.struct_size = sizeof info;
    heddle_program_get_info(program_, &info);
    return info.compilations;
  }
  heddle_context* context() { return context_; }
  const std::string& error() const { return error_; }

 private:
  void take(heddle_status* status) {
    if (status != nullptr) error_ = heddle_status_message(status);
    heddle_status_free(status);
  }
  heddle_model* model_ = nullptr;
  heddle_program* program_ = nullptr;
  heddle_context* context_ = nullptr;
  std::string error_;
};

}  // namespace heddle::api::testing
