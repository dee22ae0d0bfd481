// For end-to-end tests: compiles a module and runs the program once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/host_interp.h"
#include "compiler/compiler.h"
#include "runtime/cpu_device.h"
#include "runtime/executor.h"

namespace heddle {

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
  for (const program::Port& port : loaded.outputs)
    outputs.emplace_back(port.shape.without_layout());
  for (size_t i = 0; i < loaded.inputs.size(); ++i)
    (void)(*context)->bind_input(static_cast<int64_t>(i), leaves[i].data());
  for (size_t i = 0; i < outputs.size(); ++i)
    (void)(*context)->bind_output(static_cast<int64_t>(i), outputs[i].mutable_data());
  if (Status ran = (*context)->run(); !ran) *failure = ran.error().message;
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
