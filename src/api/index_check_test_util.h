// Runs ONNX models built in a test on every device and level.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "api/session.h"
#include "import/onnx_test_util.h"

namespace heddle::api {

using OnnxModel = import::testing::Model;
using Ints = std::vector<int64_t>;
using Feeds = std::map<std::string, Ints>;  // integers of inputs; all others are 0

// The result: an error, or the first output's bytes.
struct Ran {
  std::string error, bytes;
};

inline Ran run(const std::shared_ptr<Program>& program, const Feeds& feeds) {
  auto context = program->make_context();
  if (!context) return {context.error().message, ""};
  std::vector<std::string> inputs, outputs;
  for (const Port& port : program->inputs()) {
    std::string& bytes = inputs.emplace_back(static_cast<size_t>(port.bytes), '\0');
    tensor::Literal filled(port.shape);
    const auto found = feeds.find(port.name);
    for (int64_t i = 0; i < filled.elems(); ++i) {
      if (tensor::is_float(port.shape.type()))
        filled.set_f64(i, static_cast<double>(i) + 0.5);
      else
        filled.set_s64(i, found == feeds.end() ? 0 : found->second.at(static_cast<size_t>(i)));
    }
    std::memcpy(bytes.data(), filled.data(), bytes.size());
  }
  for (const Port& port : program->outputs())
    outputs.emplace_back(static_cast<size_t>(port.bytes), '\0');
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE((*context)->bind_input(static_cast<int64_t>(i), inputs[i].data()));
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_TRUE((*context)->bind_output(static_cast<int64_t>(i), outputs[i].data()));
  EXPECT_FALSE((*context)->bind_output(std::ssize(outputs), nullptr)) << "a hidden output is seen";
  // A failed run has no effect on later ones.
  for (int round = 0; round < 2; ++round) {
    const Status status = (*context)->run();
    if (status) continue;
    EXPECT_EQ(status.error().kind, ErrorKind::user);
    if (round == 1) return {status.error().message, ""};
  }
  return {"", outputs[0]};
}

struct Way {
  const char *name, *device, *level;
  bool saved = false;
};
inline constexpr Way kWays[] = {{"O0", "cpu", "O0"},
                                {"O1", "cpu", "O1"},
                                {"O2", "cpu", "O2"},
                                {"interp", "interp", "O2"},
                                {"saved", "cpu", "O2", true}};

inline Result<std::shared_ptr<Program>> make_program(const OnnxModel& onnx, const Way& way) {
  HEDDLE_ASSIGN_OR_RETURN(const auto model, Model::parse("test", onnx.bytes(), {}));
  CompileOptions options;
  options.device = way.device;
  options.level = way.level;
  options.cache = "off";
  HEDDLE_ASSIGN_OR_RETURN(auto program, Program::compile(*model, options));
  if (!way.saved) return program;
  const std::string path =
      testing::TempDir() + "index_check_" + std::to_string(::getpid()) + ".heddle";
  HEDDLE_RETURN_IF_ERROR(program->save(path));
  auto opened = Model::open(path, {});
  std::remove(path.c_str());
  if (!opened) return tl::unexpected(opened.error());
  return Program::compile(**opened, {});
}

inline Ran run(const OnnxModel& onnx, const Way& way, const Feeds& feeds) {
  const auto program = make_program(onnx, way);
  return program ? run(*program, feeds) : Ran{program.error().message, ""};
}

}  // namespace heddle::api
