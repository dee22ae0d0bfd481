#include "api/link_dimensions.h"

#include <utility>

#include "api/named_multiple.h"
#include "hlo/module.h"
#include "opt/passes.h"

namespace heddle::api {

std::vector<hlo::Symbol> symbols_named(const std::map<std::string, int64_t>& bounded,
                                       const import::Imported& imported) {
  std::vector<hlo::Symbol> symbols;
  for (const auto& [name, extent] : bounded) {
    hlo::Symbol& symbol = symbols.emplace_back();
    symbol.name = name;
    symbol.bound = extent;
    symbol.extent = -1;
    for (size_t i = 0; i < imported.input_names.size(); ++i) {
      const auto dims = imported.input_dims.find(imported.input_names[i]);
      if (dims == imported.input_dims.end()) continue;
      for (size_t d = 0; d < dims->second.size(); ++d)
        if (const auto of = multiple_of(dims->second[d]); of && of->name == name)
          symbol.places.emplace_back(static_cast<int64_t>(i), static_cast<int64_t>(d));
    }
  }
  return symbols;
}

Status link_dimensions(const std::map<std::string, int64_t>& bounded, import::Imported* imported) {
  hlo::Module& module = *imported->module;
  module.symbols = symbols_named(bounded, *imported);
  Result<bool> done = opt::split_rows(module, {});
  if (done) done = opt::merge_rows(module, {});
  module.symbols.clear();
  if (done) done = opt::narrow_indices(module, {});
  if (done && *done) done = opt::dce(module, {});
  return done ? Status() : tl::unexpected(done.error());
}

}  // namespace heddle::api
