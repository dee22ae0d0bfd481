#include "emit_cuda.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/gpu.h"
#include "command_line.h"
#include "session_options.h"
#include "terminal.h"

namespace heddle::tools {

namespace {

nlohmann::ordered_json to_json(const compiler::GpuKernels& made) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const compiler::GpuKernel& kernel : made.kernels) {
    nlohmann::ordered_json launches = nlohmann::ordered_json::array();
    for (const emit::cuda::Launch& launch : kernel.cuda.launches)
      launches.push_back({{"function", launch.function},
                          {"blocks", launch.blocks},
                          {"threads", launch.threads},
                          {"scratch_bytes", launch.scratch_bytes}});
    kernels.push_back({{"fusion", kernel.fusion}, {"launches", launches}});
  }
  nlohmann::ordered_json refused = nlohmann::ordered_json::array();
  for (const compiler::GpuKernels::Refusal& one : made.refused)
    refused.push_back({{"fusion", one.fusion}, {"code", one.code}, {"reason", one.reason}});
  return {{"schema", 1}, {"kernels", kernels}, {"refused", refused}};
}

}  // namespace

Result<int> emit_cuda(const heddle_model* model, const std::string& name,
                      const CompileChoices& choices, const OutputFile& output,
                      const JsonChoice& json) {
  HEDDLE_ASSIGN_OR_RETURN(const api::CompileOptions options, session_options(choices));
  if (choices.target == "host")
    return user_error("compile: --emit cuda needs --target sm_80 or sm_90");
  HEDDLE_ASSIGN_OR_RETURN(const compiler::GpuKernels made,
                          api::gpu_kernels(api::unwrap(model), options));
  std::string text =
      fmt::format("// {}: {} kernels for {}\n", name, made.kernels.size(), choices.target);
  std::vector<const emit::cuda::CudaText*> kernels;
  for (size_t i = 0; i < made.kernels.size(); ++i) {
    text += fmt::format("//   k{}: {}\n", i, made.kernels[i].fusion);
    kernels.push_back(&made.kernels[i].cuda);
  }
  text += "\n" + emit::cuda::join_kernels(kernels);
  if (output.given()) {
    HEDDLE_RETURN_IF_ERROR(output.write(text));
  } else if (!json.only_json()) {
    fmt::print("{}", text);
  }
  for (const compiler::GpuKernels::Refusal& one : made.refused)
    tell("note: {} has no GPU kernel yet ({}): {}", one.fusion, one.code, one.reason);
  if (output.given() && !json.only_json())
    fmt::print("{}: {} kernels for {}\n", output.path, made.kernels.size(), choices.target);
  HEDDLE_RETURN_IF_ERROR(json.write(to_json(made)));
  return 0;
}

}  // namespace heddle::tools
