#include "api/computed_extents.h"

#include <algorithm>

#include "api/bounded.h"
#include "api/link_dimensions.h"
#include "api/log.h"
#include "api/named_multiple.h"
#include "api/ports.h"
#include "hlo/module.h"
#include "interp/interp.h"
#include "opt/mask_padding.h"
#include "opt/passes.h"

namespace heddle::api {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

constexpr int64_t kMostExtent = 1 << 24;

// By the names of dimensions.
Extents extents_of(const std::vector<Port>& ports, const std::vector<Shape>& shapes) {
  Extents result;
  for (size_t i = 0; i < ports.size() && i < shapes.size(); ++i)
    for (size_t d = 0; d < ports[i].named.size() && std::ssize(ports[i].named) == shapes[i].rank();
         ++d)
      if (const auto multiple = multiple_of(ports[i].named[d].name))
        result.emplace(multiple->name, shapes[i].dim(static_cast<int64_t>(d)) / multiple->factor);
  return result;
}

Result<import::Imported> import_extents(const Late& late, const std::vector<Shape>& shapes) {
  import::Options options = late.asked;
  options.stages = true;
  options.find_extents = true;
  options.max_fold_elems = kMostFolded;
  options.shapes.clear();
  options.shapes_of_values.clear();
  for (size_t i = 0; i < late.inputs.size(); ++i)
    options.open_shapes[late.inputs[i].name] = shapes[i].extents();
  options.bounded = extents_of(late.inputs, shapes);
  for (const auto& [name, extent] : late.asked.dims) options.bounded.erase(name);
  if (options.bounded.empty()) return user_error("no dimension has a name");
  for (const auto& [name, extent] : options.bounded) options.dims[name] = extent;
  HEDDLE_ASSIGN_OR_RETURN(import::Imported imported, late.import(options));
  const bool all_have_inputs = std::all_of(
      imported.output_names.begin(), imported.output_names.end(), [&](const std::string& name) {
        return std::find(imported.input_names.begin(), imported.input_names.end(), name) !=
               imported.input_names.end();
      });
  if (!imported.undecided.empty() || imported.output_names.empty() || !all_have_inputs)
    return user_error("it computes none");
  for (const std::string& name : imported.output_names) options.bounded[name] = 0;
  hlo::Module& module = *imported.module;
  std::vector<hlo::Symbol> symbols = symbols_named(options.bounded, imported);
  std::erase_if(symbols, [](const hlo::Symbol& symbol) { return symbol.places.empty(); });
  for (hlo::Symbol& symbol : symbols) {
    if (symbol.bound > 0) continue;
    const auto& [parameter, dimension] = symbol.places[0];
    symbol.bound =
        module.entry()->parameters()[static_cast<size_t>(parameter)]->shape().dim(dimension);
  }
  HEDDLE_RETURN_IF_ERROR(
      opt::mask_bounded(module, hlo::SymbolTable(std::move(symbols)), opt::BehindInputs::anything));
  if (auto done = opt::dce(module, {}); !done) return tl::unexpected(done.error());
  return imported;
}

}  // namespace

std::shared_ptr<const ComputedExtents> ComputedExtents::find(const Late& late,
                                                             const std::vector<Shape>& shapes) {
  Result<import::Imported> imported = import_extents(late, shapes);
  if (!imported) return nullptr;
  auto result = std::make_shared<ComputedExtents>();
  result->inputs_ = late.inputs;
  const hlo::Module& module = *imported->module;
  for (hlo::Instr* parameter : module.entry()->parameters()) {
    result->names_.emplace_back();
    for (const hlo::Symbol& symbol : module.symbols)
      if (symbol.extent == parameter->parameter_number()) result->names_.back() = symbol.name;
    if (!result->names_.back().empty()) continue;
    if (!parameter->users().empty()) {
      log(LogLevel::info, "computed extents: they follow from the elements of {}",
          parameter->name());
      return nullptr;
    }
    parameter->set_shape(Shape::array(parameter->shape().type(), {0}));
  }
  for (const std::string& name : imported->output_names) {
    Port port = make_port(name, "", Shape::array(Type::s32, {1}));
    port.named = {{name}};
    result->ports_.push_back(std::move(port));
  }
  result->module_ = std::move(imported->module);
  return result;
}

// Each may follow from those before it.
Result<std::vector<Shape>> ComputedExtents::shapes(const std::vector<Shape>& inputs) const {
  Extents extents = extents_of(inputs_, inputs);
  for (const Port& port : ports_) extents[port.name] = 1;
  for (size_t k = 0; k < ports_.size(); ++k) {
    std::vector<Literal> arguments;
    for (size_t i = 0; i < names_.size(); ++i) {
      arguments.emplace_back(module_->entry()->parameters()[i]->shape());
      if (!names_[i].empty()) arguments.back().set_s64(0, extents.at(names_[i]));
    }
    HEDDLE_ASSIGN_OR_RETURN(const Literal results, interp::evaluate(*module_, arguments));
    const int64_t extent = results.elements()[k].get_s64(0);
    if (extent < 1 || extent > kMostExtent) return user_error("{} is {}", ports_[k].name, extent);
    extents[ports_[k].name] = extent;
  }
  std::vector<Shape> result;
  for (const Port& port : ports_)
    result.push_back(Shape::array(Type::s32, {extents.at(port.name)}));
  return result;
}

}  // namespace heddle::api
