#include "compiler/gpu_kernels.h"

#include <algorithm>

#include "compiler/compiler.h"
#include "compiler/make_kernel.h"
#include "cost/latency.h"
#include "kernel/text.h"
#include "kernel/verify.h"
#include "schedule/place.h"

namespace heddle::compiler {

namespace {

std::unique_ptr<hlo::Module> alone(const hlo::Computation& fusion) {
  auto module = std::make_unique<hlo::Module>(fusion.name());
  module->set_entry(module->clone_computation(fusion));
  return module;
}

// Needs no kernel: computes nothing.
bool is_plumbing(const hlo::Instr& instr) {
  return instr.is(hlo::Opcode::parameter) || instr.is(hlo::Opcode::constant) ||
         instr.is(hlo::Opcode::tuple) || instr.is(hlo::Opcode::get_tuple_element) ||
         instr.is(hlo::Opcode::bitcast);
}

}  // namespace

Result<GpuKernels> gpu_kernels(std::unique_ptr<hlo::Module> module, const target::Target& target,
                               const Options& options) {
  if (target.kind != target::DeviceKind::gpu)
    return user_error("target {}: is not a GPU; wanted sm_80 or sm_90", target.name);
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> fused,
                          fuse_only(std::move(module), target, options));
  GpuKernels result;
  for (const hlo::Instr* instr : fused->entry()->instrs()) {
    if (is_plumbing(*instr)) continue;
    if (!instr->is(hlo::Opcode::fusion)) {
      result.refused.push_back({instr->name(), "no-kernel",
                                fmt::format("{} stands alone", hlo::opcode_text(instr->opcode()))});
      continue;
    }
    const hlo::Computation& computation = *instr->called().at(0);
    const stage::PlacedFusion placed =
        schedule::place(computation, target, options.numerics != Numerics::strict);
    if (!placed.decision) {
      result.refused.push_back({instr->name(), placed.decision.code(), placed.decision.reason()});
      continue;
    }
    GpuKernel made;
    made.fusion = instr->name();
    Result<stitch::Stitched> stitched =
        make_kernel(placed, fmt::format("k{}", result.kernels.size()), target);
    HEDDLE_CHECK(stitched.has_value(), "{}", stitched.error().message);
    made.stitched = std::move(*stitched);
    if (Status verified = kernel::verify(made.stitched.kernel); !verified)
      HEDDLE_UNREACHABLE("kernel of {}: {}\n{}", instr->name(), verified.error().message,
                         kernel::to_string(made.stitched.kernel));
    Result<emit::cuda::CudaText> cuda =
        emit::cuda::to_cuda(made.stitched.kernel, target, !stitch::may_overwrite(made.stitched));
    if (!cuda) {
      result.refused.push_back({instr->name(), "no-cuda-form", cuda.error().message});
      continue;
    }
    made.cuda = std::move(*cuda);
    made.module = alone(computation);
    made.estimated_registers = cost::latency(placed, target).registers;
    result.kernels.push_back(std::move(made));
  }
  return result;
}

}  // namespace heddle::compiler
