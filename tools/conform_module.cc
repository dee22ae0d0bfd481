#include "conform_module.h"

#include <algorithm>

#include "api/tolerance.h"
#include "comparison.h"
#include "hlo/text.h"
#include "hlo/verify.h"

namespace heddle::tools {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;

double elems_of(const Shape& shape) {
  double sum = 0;
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) sum += elems_of(element);
  } else if (shape.is_array()) {
    sum = static_cast<double>(shape.elems());
  }
  return sum;
}

// Scalar operations, about.
double work_of(const Instr& instr) {
  double work = elems_of(instr.shape());
  for (const Instr* operand : instr.operands()) work += elems_of(operand->shape());
  double each = 1;
  if (instr.is(Opcode::dot)) {
    for (int64_t d : instr.attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
      each *= static_cast<double>(instr.operand(0)->shape().dim(d));
  } else if (instr.is(Opcode::convolution)) {
    const auto& dims = instr.attrs_as<hlo::ConvolutionAttrs>().dims;
    const Shape& kernel = instr.operand(1)->shape();
    each = elems_of(kernel) /
           static_cast<double>(std::max<int64_t>(kernel.dim(dims.kernel_output_feature), 1));
  } else if (instr.is(Opcode::reduce_window) || instr.is(Opcode::select_and_scatter)) {
    for (const auto& dim : instr.attrs_as<hlo::WindowAttrs>().window.dims)
      each *= static_cast<double>(dim.size);
  }
  return work + elems_of(instr.shape()) * each;
}

}  // namespace

double work_of(const hlo::Module& module) {
  double work = 0;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->instrs()) work += work_of(*instr);
  return work;
}

namespace {

std::string first_line(std::string text) { return text.substr(0, text.find('\n')); }

// parse(print(m)) prints as m does.
std::string round_trip_fault(const hlo::Module& module) {
  const std::string once = hlo::to_string(module);
  auto again = hlo::parse_module(once);
  if (!again) return "its text does not parse: " + first_line(again.error().message);
  const std::string twice = hlo::to_string(**again);
  if (once == twice) return "";
  size_t at = 0;
  while (at < once.size() && at < twice.size() && once[at] == twice[at]) ++at;
  const size_t line =
      std::count(once.begin(), once.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return fmt::format("its text changes in line {}", line + 1);
}

Result<Literal> zeros_of(const api::Port& port) {
  if (!port.shape.is_array()) return Literal();
  return Literal::make(port.shape);
}

// Memory for every port, and where it is.
struct Buffers {
  std::vector<Literal> values;
  std::vector<void*> data;
};

Result<Buffers> make_buffers(const std::vector<api::Port>& ports) {
  Buffers buffers;
  for (const api::Port& port : ports) {
    HEDDLE_ASSIGN_OR_RETURN(Literal zeros, zeros_of(port));
    buffers.values.push_back(std::move(zeros));
  }
  for (Literal& value : buffers.values)
    buffers.data.push_back(value.bytes() > 0 ? value.mutable_data() : nullptr);
  return buffers;
}

Result<std::vector<Literal>> run_on(api::Model& model, const api::CompileOptions& options,
                                    const Buffers& inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const auto program, api::Program::compile(model, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto context, program->make_context());
  HEDDLE_ASSIGN_OR_RETURN(Buffers outputs, make_buffers(model.outputs()));
  for (size_t i = 0; i < inputs.data.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(context->bind_input(static_cast<int64_t>(i), inputs.data[i]));
  for (size_t i = 0; i < outputs.data.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(context->bind_output(static_cast<int64_t>(i), outputs.data[i]));
  HEDDLE_RETURN_IF_ERROR(context->run());
  return std::move(outputs.values);
}

api::CompileOptions on(const char* device) {
  api::CompileOptions options;
  options.device = device;
  return options;
}

Result<ModuleOutcome> compare(api::Model& model, const ConformChoices& choices) {
  HEDDLE_ASSIGN_OR_RETURN(const Buffers inputs, make_buffers(model.inputs()));
  HEDDLE_RETURN_IF_ERROR(model.random_inputs(choices.seed, inputs.data));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> want, run_on(model, on("interp"), inputs));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> got, run_on(model, choices.compile, inputs));
  std::vector<Literal> wide;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!got[i].shape().is_array()) continue;
    const std::string& name = model.outputs()[i].name;
    OutputCheck check = check_output(name, got[i], want[i], model.tolerance(i));
    if (check.equal()) continue;
    if (wide.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(wide, run_on(model, on("interp:f64"), inputs));
    }
    check = check_output(name, got[i], want[i],
                         api::measured_tolerance(check.tolerance, want[i], wide[i]));
    if (!check.equal()) return ModuleOutcome{"mismatch", to_string(check)};
  }
  return ModuleOutcome{"equal", ""};
}

}  // namespace

ModuleOutcome conform_module(std::unique_ptr<hlo::Module> module, const ConformChoices& choices) {
  if (const std::string fault = round_trip_fault(*module); !fault.empty())
    return {"round trip", fault};
  if (Status verified = hlo::verify(*module); !verified)
    return {"invalid", first_line(verified.error().message)};
  if (const double work = work_of(*module); work > choices.max_work)
    return {"too big", fmt::format("too much for the interpreter (about {:.1e} operations)", work)};
  const auto model = api::Model::from_module(std::move(module));
  Result<ModuleOutcome> outcome = compare(*model, choices);
  if (!outcome) return {"refused", first_line(outcome.error().message)};
  return *outcome;
}

}  // namespace heddle::tools
