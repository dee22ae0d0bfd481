#include "api/family.h"

#include <fmt/ranges.h>

#include <memory>
#include <mutex>

#include "api/size_buckets.h"
#include "hlo/module.h"
#include "import/hlo_proto.h"
#include "import/stablehlo.h"

namespace heddle::api {
namespace {

using import::Imported;
using Shapes = std::map<std::string, std::vector<int64_t>>;
using Extents = std::map<std::string, int64_t>;

const std::vector<int64_t>* shape_of(const std::string& input, const import::Options& options) {
  for (const Shapes* shapes : {&options.shapes, &options.open_shapes})
    if (const auto found = shapes->find(input); found != shapes->end()) return &found->second;
  return nullptr;
}

Result<Extents> extents_of(const Family& family, const import::Options& options) {
  Extents result;
  for (const Family::Dim& dim : family.dims) {
    const auto of = multiple_of(dim.name);
    if (!of) continue;
    if (const auto given = options.dims.find(of->name); given != options.dims.end()) {
      result[of->name] = given->second;
      continue;
    }
    const std::vector<int64_t>* shape = shape_of(dim.input, options);
    if (shape == nullptr || static_cast<size_t>(dim.dimension) >= shape->size()) continue;
    const int64_t extent = (*shape)[static_cast<size_t>(dim.dimension)];
    if (extent % of->factor != 0)
      return user_error("{}: dimension '{}' is {} of {}, which is no multiple of {}", family.name,
                        dim.name, extent, dim.input, of->factor);
    const int64_t known = result.emplace(of->name, extent / of->factor).first->second;
    if (known * of->factor != extent)
      return user_error("{}: dimension '{}' is {} of {} and {} of another input", family.name,
                        dim.name, extent, dim.input, known * of->factor);
  }
  for (const Family::Dim& dim : family.dims)
    if (const auto of = multiple_of(dim.name); of && !result.contains(of->name))
      return user_error("{}: the extent of dimension '{}' ({}) is not known", family.name, dim.name,
                        dim.input);
  return result;
}

// Of the text: inputs have the shapes that runs will bring, where these are asked for.
Status check_shapes(const Family& family, const Imported& imported,
                    const import::Options& options) {
  for (size_t i = 0; i < imported.input_names.size(); ++i) {
    const std::string& name = imported.input_names[i];
    const auto wanted = options.shapes.find(name);
    if (wanted == options.shapes.end() || !options.dims.empty()) continue;
    const tensor::Shape& shape = imported.module->entry()->parameters()[i]->shape();
    if (!shape.is_array() || shape.extents() != wanted->second)
      return user_error("{}: input {} is {} in the text for these extents, got [{}]", family.name,
                        name, to_string(shape), fmt::join(wanted->second, ","));
  }
  return {};
}

void name_dims(const Family& family, Imported* imported) {
  for (size_t i = 0; i < imported->input_names.size(); ++i) {
    const tensor::Shape& shape = imported->module->entry()->parameters()[i]->shape();
    if (!shape.is_array()) continue;
    std::vector<std::string>& names = imported->input_dims[imported->input_names[i]];
    names.resize(static_cast<size_t>(shape.rank()));
    for (const Family::Dim& dim : family.dims)
      if (dim.input == imported->input_names[i] && dim.dimension < shape.rank())
        names[static_cast<size_t>(dim.dimension)] = dim.name;
  }
}

}  // namespace

Import family_import(Family family) {
  struct State {
    Family family;
    std::mutex asking;
  };
  const auto state = std::make_shared<State>();
  state->family = std::move(family);
  return [state](const import::Options& with) -> Result<Imported> {
    const Family& family = state->family;
    HEDDLE_ASSIGN_OR_RETURN(const Extents extents, extents_of(family, with));
    std::string text;
    {
      const std::lock_guard lock(state->asking);
      HEDDLE_ASSIGN_OR_RETURN(text, family.text_at(extents));
    }
    import::Options fixed = with;
    fixed.dims.clear();
    fixed.shapes.clear();
    fixed.open_shapes.clear();
    fixed.hints.clear();
    auto imported = import::is_stablehlo(import::sniff(text))
                        ? import::import_stablehlo_bytes(text, fixed)
                        : import::import_hlo_text(text, fixed);
    if (!imported) return error_in(family.name, imported.error());
    HEDDLE_RETURN_IF_ERROR(check_shapes(family, *imported, with));
    name_dims(family, &*imported);
    return imported;
  };
}

}  // namespace heddle::api
