// HLO text: uses hlo's parser; names of inputs and outputs as in CLI.md.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hlo/attrs.h"
#include "hlo/module.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "import/hlo_lapack.h"
#include "import/hlo_names.h"
#include "import/kv_cache.h"
#include "import/onnx.h"

namespace heddle::import {
namespace {

using tensor::Shape;

// Calls visit(".0.1", leaf) for every leaf of a shape; "" if it is not a tuple.
template <typename Visit>
void for_each_leaf(const Shape& shape, const std::string& path, Visit visit) {
  if (!shape.is_tuple()) return visit(path, shape);
  for (size_t i = 0; i < shape.elements().size(); ++i)
    for_each_leaf(shape.elements()[i], path + "." + std::to_string(i), visit);
}

// Checks the preconditions of all later steps: a module that parses may still be invalid.
Status check(const hlo::Module& module) {
  const Status valid = hlo::verify(module);
  if (valid && !module.symbols.empty() && module.symbols[0].extent < 0)
    return user_error(
        "{}: dimension '{}' has no parameter that is its extent: heddle opt "
        "--passes=mask_padding adds it",
        module.name(), module.symbols[0].name);
  if (valid) return {};
  const std::string& all = valid.error().message;
  const auto more = std::count(all.begin(), all.end(), '\n');
  return user_error("{}: {}{}", module.name(), all.substr(0, all.find('\n')),
                    more == 0 ? "" : fmt::format(" (and {} more)", more));
}

// Constants written as {...} have no values.
Status check_constants(const hlo::Module& module, const Options& options, Imported& result) {
  std::vector<std::string> elided;
  for (const auto& computation : module.computations())
    for (const hlo::Instr* instr : computation->instrs())
      if (instr->is(hlo::Opcode::constant) && instr->attrs_as<hlo::ConstantAttrs>().elided)
        elided.push_back(instr->name());
  if (elided.empty()) return {};
  const std::string names =
      elided[0] + (elided.size() > 1 ? fmt::format(" and {} more", elided.size() - 1) : "");
  if (!options.random_constants)
    return user_error(
        "constant {}: its values were left out of the text ({{...}}); print them, or have them "
        "invented with --random-constants",
        names);
  result.notes.push_back(
      fmt::format("constant {}: the values are invented (--random-constants)", names));
  return {};
}

// Replaces parameters with fixed values by constants. `numbers`: for the remaining ones, their
// numbers in the model.
Status fix_values(hlo::Module& module, const Options& options, std::vector<int64_t>& numbers) {
  if (options.values.empty()) return {};
  if (!module.symbols.empty() || !module.states.empty())
    return user_error("{}: a module with bounded dimensions or states takes no fixed values",
                      module.name());
  hlo::Computation& entry = *module.entry();
  for (const auto& [name, value] : options.values) {
    const auto is_meant = [&](const hlo::Instr* parameter) {
      const int64_t number = numbers[static_cast<size_t>(parameter->parameter_number())];
      return parameter->name() == name || fmt::format("arg{}", number) == name;
    };
    const auto& all = entry.parameters();
    const auto found = std::find_if(all.begin(), all.end(), is_meant);
    if (found == all.end()) return user_error("no input {} to give a fixed value", name);
    hlo::Instr* const parameter = *found;
    const int64_t at = parameter->parameter_number();
    if (Shape plain = parameter->shape(); !plain.is_array() || !plain.is_static() ||
                                          plain.type() != value.type() ||
                                          plain.extents() != value.shape().extents())
      return user_error("the fixed value of {} is {}; wanted {}", name,
                        tensor::to_string(value.shape()), tensor::to_string(plain));
    const auto is_aliased = [&](const hlo::Alias& alias) { return alias.parameter == at; };
    std::erase_if(module.input_output_alias, is_aliased);
    for (hlo::Alias& alias : module.input_output_alias) alias.parameter -= alias.parameter > at;
    if (module.entry_layout)
      module.entry_layout->first.erase(module.entry_layout->first.begin() + at);
    hlo::ConstantAttrs attrs;
    attrs.value = value;
    entry.replace_all_uses(parameter, entry.add(hlo::Opcode::constant, parameter->shape(), {},
                                                std::move(attrs), {}, name));
    entry.remove_parameter(at);
    numbers.erase(numbers.begin() + at);
  }
  return {};
}

void note_bounds(const std::string& name, const Shape& shape, std::vector<std::string>& notes) {
  for (size_t d = 0; d < shape.dims().size(); ++d) {
    const tensor::Dim& dim = shape.dims()[d];
    if (dim.dynamic && dim.size != tensor::Dim::kUnbounded)
      notes.push_back(fmt::format("{}: dimension {} is bounded (<={}); it runs at its bound", name,
                                  d, dim.size));
  }
}

Shape at_bounds(Shape shape) {
  for (Shape& element : shape.mutable_elements()) element = at_bounds(element);
  for (size_t d = 0; d < shape.dims().size(); ++d) {
    const tensor::Dim& dim = shape.dims()[d];
    if (dim.dynamic && dim.size != tensor::Dim::kUnbounded)
      shape.set_dim(static_cast<int64_t>(d), dim.size);
  }
  return shape;
}

// Kernels and program files have static shapes.
void run_at_bounds(hlo::Module& module) {
  for (const auto& computation : module.computations())
    for (hlo::Instr* instr : computation->instrs())
      if (!instr->shape().is_static()) instr->set_shape(at_bounds(instr->shape()));
}

}  // namespace

Result<Imported> with_names(std::unique_ptr<hlo::Module> module, const Options& options) {
  HEDDLE_RETURN_IF_ERROR(check(*module));
  HEDDLE_RETURN_IF_ERROR(replace_lapack_calls(*module));
  Imported result;
  HEDDLE_RETURN_IF_ERROR(check_constants(*module, options, result));
  std::vector<int64_t> numbers(module->entry()->parameters().size());
  std::iota(numbers.begin(), numbers.end(), 0);
  HEDDLE_RETURN_IF_ERROR(fix_values(*module, options, numbers));
  const hlo::Computation& entry = *module->entry();
  for (const hlo::Instr* parameter : entry.parameters()) {
    const int64_t number = numbers[static_cast<size_t>(parameter->parameter_number())];
    for_each_leaf(parameter->shape(), "", [&](const std::string& path, const Shape& shape) {
      result.input_names.push_back(fmt::format("arg{}{}", number, path));
      result.input_aliases.push_back(parameter->name() + path);
      note_bounds(result.input_names.back(), shape, result.notes);
    });
  }
  for_each_leaf(entry.root()->shape(), "", [&](const std::string&, const Shape&) {
    result.output_names.push_back(fmt::format("out{}", result.output_names.size()));
  });
  run_at_bounds(*module);
  result.module = std::move(module);
  HEDDLE_RETURN_IF_ERROR(narrow_caches(options.kv_cache, &result));
  return result;
}

Result<std::unique_ptr<hlo::Module>> choose_module(
    std::vector<std::unique_ptr<hlo::Module>> modules, const std::string& name) {
  if (modules.empty()) return user_error("no HLO module in the text");
  std::string names;
  for (const auto& module : modules) names += (names.empty() ? "" : ", ") + module->name();
  if (name.empty()) {
    if (modules.size() > 1)
      return user_error("{} modules; choose one with --module NAME: {}", modules.size(), names);
    return std::move(modules.front());
  }
  const auto is_meant = [&](const auto& module) { return module->name() == name; };
  const auto found = std::find_if(modules.begin(), modules.end(), is_meant);
  if (found == modules.end()) return user_error("no module {}; there are: {}", name, names);
  if (const auto count = std::count_if(modules.begin(), modules.end(), is_meant); count > 1)
    return user_error("--module {}: {} modules have this name; give them names of their own", name,
                      count);
  return std::move(*found);
}

Result<Imported> import_hlo_text(std::string_view text, const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(auto modules, hlo::parse_modules(text));
  HEDDLE_ASSIGN_OR_RETURN(auto module, choose_module(std::move(modules), options.module_name));
  return with_names(std::move(module), options);
}

}  // namespace heddle::import
