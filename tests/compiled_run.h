// For end-to-end tests: compiles a module and runs the program once.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/host_interp.h"
#include "compiler/compiler.h"
#include "runtime/cpu_device.h"
#include "runtime/executor.h"

namespace heddle {

// Once more with outputs on the inputs that they alias, of which they must make the same bits.
inline void run_donated(const program::Program& program, runtime::Context& context,
                        std::span<const tensor::Literal> leaves,
                        std::vector<tensor::Literal> outputs, std::string* failure) {
  std::vector<tensor::Literal> given(leaves.begin(), leaves.end());  // shared until written
  std::vector<std::pair<size_t, size_t>> donated;                    // output, input
  for (size_t i = 0; i < outputs.size(); ++i) {
    const program::BufferId buffer = program.outputs[i].buffer;
    const program::BufferId alias =
        buffer.valid() ? program.buffers[buffer.index()].alias : program::BufferId();
    if (!alias.valid()) continue;
    donated.emplace_back(i, static_cast<size_t>(program.buffers[alias.index()].number));
    void* memory = given[donated.back().second].mutable_data();
    (void)context.bind_input(static_cast<int64_t>(donated.back().second), memory);
    (void)context.bind_output(static_cast<int64_t>(i), memory);
  }
  if (donated.empty()) return;
  const std::vector<tensor::Literal> want = outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (std::none_of(donated.begin(), donated.end(),
                     [&](const auto& pair) { return pair.first == i; }))
      (void)context.bind_output(static_cast<int64_t>(i), outputs[i].mutable_data());
  if (Status ran = context.run(); !ran) *failure = "donated: " + ran.error().message;
  for (const auto& [output, input] : donated)
    if (failure->empty() && std::memcmp(want[output].data(), given[input].data(),
                                        static_cast<size_t>(want[output].bytes())) != 0)
      *failure = "donated: output " + std::to_string(output) + " has other bits";
}

// The leaves of the result in order; nothing and a message in `failure` where something went wrong.
inline std::vector<tensor::Literal> run_program(program::Program program,
                                                std::span<const tensor::Literal> leaves,
                                                int threads, std::string* failure) {
  std::vector<tensor::Literal> outputs;
  Workers workers(threads);
  runtime::CpuDevice device(workers);
  auto executable =
      runtime::Executable::load(std::move(program), device.device(), api::host_functions());
  if (!executable) return *failure = executable.error().message, outputs;
  auto context = (*executable)->make_context();
  if (!context) return *failure = context.error().message, outputs;
  const program::Program& loaded = (*executable)->program();
  for (size_t i = 0; i < program::shown_outputs(loaded); ++i)
    outputs.emplace_back(loaded.outputs[i].shape.without_layout());
  for (size_t i = 0; i < program::shown_inputs(loaded); ++i)
    (void)(*context)->bind_input(static_cast<int64_t>(i), leaves[i].data());
  for (size_t i = 0; i < outputs.size(); ++i)
    (void)(*context)->bind_output(static_cast<int64_t>(i), outputs[i].mutable_data());
  if (Status ran = (*context)->run(); !ran) return *failure = ran.error().message, outputs;
  run_donated(loaded, **context, leaves, outputs, failure);
  return outputs;
}

inline std::vector<tensor::Literal> compile_and_run(std::unique_ptr<hlo::Module> module,
                                                    std::span<const tensor::Literal> leaves,
                                                    const target::Target& target,
                                                    const compiler::Options& options, int threads,
                                                    std::string* failure) {
  auto program = compiler::compile(std::move(module), {}, target, options);
  if (program) return run_program(std::move(*program), leaves, threads, failure);
  *failure = program.error().message;
  return {};
}

inline void append_leaves(const tensor::Literal& literal, std::vector<tensor::Literal>* leaves) {
  if (!literal.shape().is_tuple()) return leaves->push_back(literal);
  for (const tensor::Literal& element : literal.elements()) append_leaves(element, leaves);
}

}  // namespace heddle
