// Converts bounded dimensions to and from their form in program files.
#include <algorithm>

#include "api/bounded.h"
#include "api/ports.h"
#include "program/saved.h"

namespace heddle::api {

std::vector<Sizes> all_buckets(const Bounded& bounded) {
  std::vector<Sizes> all{{}};
  for (size_t s = 0; s < bounded.symbols.size(); ++s) {
    const int64_t bound = bounded.symbols[s].bound;
    const bool several = bounded.is_own(s) && bounded.grows[s] == 0;
    std::vector<Sizes> longer;
    for (const Sizes& before : all) {
      for (const int64_t bucket : several ? buckets_below(bound) : Sizes{bound}) {
        if (bucket < bounded.symbols[s].least) continue;
        longer.push_back(before);
        longer.back().push_back(bucket);
      }
    }
    all = std::move(longer);
  }
  for (Sizes& extents : all) bounded.derive(&extents);
  return all;
}

Result<std::shared_ptr<const Bounded>> bounded_of(const program::Saved& saved,
                                                  const OpenOptions& options) {
  auto result = std::make_shared<Bounded>();
  const program::Program& program = saved.variants[0].program;
  std::vector<std::string> inputs;
  for (const program::Port& port : program.inputs) inputs.push_back(port.name);
  result->outputs.resize(program::shown_outputs(program));
  for (size_t s = 0; s < saved.symbols.size(); ++s) {
    const program::Symbol& from = saved.symbols[s];
    hlo::Symbol symbol;
    symbol.name = from.name;
    symbol.bound = from.bound;
    symbol.least = from.least;
    if (const auto lower = options.bounds.find(from.name); lower != options.bounds.end()) {
      if (lower->second > from.bound)
        return user_error("dimension '{}' has a bound of {}, but was compiled for at most {}",
                          from.name, lower->second, from.bound);
      symbol.bound = lower->second;
    }
    for (const program::PortDimension& place : from.inputs)
      symbol.places.emplace_back(place.port, place.dimension);
    for (const program::PortDimension& place : from.outputs)
      result->outputs[static_cast<size_t>(place.port)].emplace_back(place.dimension, s);
    result->add_own(std::move(symbol));
    if (from.of.is_constant()) continue;
    result->of.back() = from.of;
    result->asked.back() = false;
  }
  for (const auto* asked : {&options.dims, &options.bounds})
    for (const auto& [name, extent] : *asked)
      if (std::none_of(saved.symbols.begin(), saved.symbols.end(),
                       [&, &name = name](const auto& symbol) { return symbol.name == name; }))
        return user_error("--dim {}={}: its dimensions are {}", name, extent,
                          program::dimensions_text(saved.symbols));
  HEDDLE_RETURN_IF_ERROR(set_first(result.get(), inputs, options));
  return std::shared_ptr<const Bounded>(std::move(result));
}

std::vector<program::Symbol> saved_symbols(const Bounded& bounded, const std::vector<Port>& inputs,
                                           const std::vector<Port>& outputs) {
  const auto place = [&](const std::vector<Port>& ports, int64_t port, int64_t dimension,
                         size_t s) {
    const int64_t extent = ports[static_cast<size_t>(port)].dims[static_cast<size_t>(dimension)];
    return program::PortDimension{port, dimension, extent / bounded.first[s]};
  };
  std::vector<program::Symbol> result;
  for (size_t s = 0; s < bounded.symbols.size(); ++s) {
    const hlo::Symbol& from = bounded.symbols[s];
    program::Symbol& symbol = result.emplace_back();
    symbol.name = from.name;
    symbol.bound = from.bound;
    symbol.least = from.least;
    if (!bounded.is_own(s)) symbol.of = bounded.of[s];
    for (const auto& [parameter, dimension] : from.places)
      symbol.inputs.push_back(place(inputs, parameter, dimension, s));
    for (size_t i = 0; i < bounded.outputs.size(); ++i)
      for (const auto& [dimension, number] : bounded.outputs[i])
        if (number == s)
          symbol.outputs.push_back(place(outputs, static_cast<int64_t>(i), dimension, s));
  }
  return result;
}

void tell_bounds(const Bounded& bounded, std::vector<Port>& inputs, std::vector<Port>& outputs) {
  auto tell = [&](Port& port, int64_t dimension, size_t s) {
    const hlo::Symbol& symbol = bounded.symbols[s];
    const auto d = static_cast<size_t>(dimension);
    const int64_t times = port.dims.at(d) / bounded.first[s];
    port.named.resize(port.dims.size());
    port.named[d] = {symbol.name, times * symbol.least, times * symbol.bound};
  };
  for (size_t s = 0; s < bounded.symbols.size(); ++s)
    for (const auto& [input, dimension] : bounded.symbols[s].places)
      tell(inputs.at(static_cast<size_t>(input)), dimension, s);
  for (size_t i = 0; i < bounded.outputs.size(); ++i)
    for (const auto& [dimension, s] : bounded.outputs[i]) tell(outputs.at(i), dimension, s);
}

void set_ports(const Bounded& bounded, const program::Variant& variant, std::vector<Port>& inputs,
               std::vector<Port>& outputs, const std::vector<program::Symbol>& symbols) {
  const program::Program& program = variant.program;
  std::vector<tensor::Shape> shapes[2];
  for (size_t i = 0; i + variant.told.size() < program::shown_inputs(program); ++i)
    shapes[0].push_back(program.inputs[i].shape);
  for (size_t i = 0; i < program::shown_outputs(program); ++i)
    shapes[1].push_back(program.outputs[i].shape);
  for (size_t s = 0; s < symbols.size(); ++s)
    for (size_t side = 0; side < 2; ++side)
      for (const auto& [port, dimension, times] :
           side == 0 ? symbols[s].inputs : symbols[s].outputs)
        shapes[side][static_cast<size_t>(port)].set_dim(dimension, times * bounded.first[s]);
  inputs.clear();
  outputs.clear();
  for (size_t i = 0; i < shapes[0].size(); ++i)
    inputs.push_back(make_port(program.inputs[i].name, program.inputs[i].alias_name, shapes[0][i]));
  for (size_t i = 0; i < shapes[1].size(); ++i)
    outputs.push_back(
        make_port(program.outputs[i].name, program.outputs[i].alias_name, shapes[1][i]));
  tell_bounds(bounded, inputs, outputs);
}

}  // namespace heddle::api
