// HLO text: the parser is hlo's own; names of inputs and outputs by CLI.md.
#include <fmt/format.h>

#include <algorithm>

#include "hlo/module.h"
#include "hlo/text.h"
#include "import/onnx.h"

namespace heddle::import {
namespace {

using tensor::Shape;

// Calls visit(".0.1") for every leaf of a shape; "" for one that is no tuple.
template <typename Visit>
void for_each_leaf(const Shape& shape, const std::string& path, Visit visit) {
  if (!shape.is_tuple()) return visit(path);
  for (size_t i = 0; i < shape.elements().size(); ++i)
    for_each_leaf(shape.elements()[i], path + "." + std::to_string(i), visit);
}

Imported with_names(std::unique_ptr<hlo::Module> module) {
  Imported result;
  const hlo::Computation& entry = *module->entry();
  for (const hlo::Instr* parameter : entry.parameters()) {
    for_each_leaf(parameter->shape(), "", [&](const std::string& path) {
      result.input_names.push_back(fmt::format("arg{}{}", parameter->parameter_number(), path));
      result.input_aliases.push_back(parameter->name() + path);
    });
  }
  for_each_leaf(entry.root()->shape(), "", [&](const std::string&) {
    result.output_names.push_back(fmt::format("out{}", result.output_names.size()));
  });
  result.module = std::move(module);
  return result;
}

}  // namespace

Result<Imported> import_hlo_text(std::string_view text, const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<hlo::Module>> modules,
                          hlo::parse_modules(text));
  if (modules.empty()) return user_error("no HLO module in the text");
  std::string names;
  for (const auto& module : modules) names += (names.empty() ? "" : ", ") + module->name();
  if (options.module_name.empty()) {
    if (modules.size() > 1)
      return user_error("{} modules; choose one with --module NAME: {}", modules.size(), names);
    return with_names(std::move(modules.front()));
  }
  const auto found = std::find_if(modules.begin(), modules.end(), [&](const auto& module) {
    return module->name() == options.module_name;
  });
  if (found == modules.end())
    return user_error("no module {}; there are: {}", options.module_name, names);
  return with_names(std::move(*found));
}

}  // namespace heddle::import
