#include "api/run_extents.h"

#include <fmt/ranges.h>

namespace heddle::api {

RunExtents::RunExtents(const Bounded& bounded, const std::vector<Port>& inputs,
                       const std::vector<Port>& outputs)
    : bounded_(bounded),
      inputs_(inputs),
      outputs_(outputs),
      extents_(bounded.first),
      asked_(bounded.first.size(), 0),
      shapes_(inputs.size()) {}

void RunExtents::set_own(size_t symbol, int64_t extent) {
  if (extents_[symbol] == extent) return;
  asked_.assign(asked_.size(), 0);
  extents_[symbol] = extent;
  bounded_.derive(&extents_);
  at_extents_.reset();
}

Status RunExtents::set(const std::string& name, int64_t extent) {
  const std::vector<hlo::Symbol>& symbols = bounded_.symbols;
  for (size_t s = 0; s < symbols.size(); ++s) {
    if (symbols[s].name != name) continue;
    if (extent < symbols[s].least || extent > symbols[s].bound)
      return user_error("dimension '{}' is {}, wanted {} to {}", name, extent, symbols[s].least,
                        symbols[s].bound);
    shapes_.assign(shapes_.size(), std::nullopt);
    if (bounded_.is_own(s))
      set_own(s, extent);
    else
      asked_[s] = extent;
    return {};
  }
  return user_error("no dimension '{}' is bounded", name);
}

Sizes RunExtents::dims_of(size_t input) const {
  return bounded_.actual(inputs_[input].dims, bounded_.places_of_input(input), extents_);
}

// Elements of the dimension per element of the symbol's extent.
int64_t RunExtents::times_in(size_t input, int64_t dimension, size_t symbol) const {
  const int64_t first = bounded_.first[symbol];  // 0: derived from others
  return first == 0 ? 1 : inputs_[input].dims[static_cast<size_t>(dimension)] / first;
}

std::string RunExtents::wanted(size_t input) const {
  std::vector<std::string> words;
  for (const int64_t extent : inputs_[input].dims) words.push_back(std::to_string(extent));
  for (const auto& [dimension, s] : bounded_.places_of_input(input)) {
    const int64_t times = times_in(input, dimension, s);
    words[static_cast<size_t>(dimension)] =
        fmt::format("{}{}<={}", times == 1 ? "" : fmt::format("{}*", times),
                    bounded_.symbols[s].name, bounded_.symbols[s].bound * times);
  }
  return fmt::format("[{}]", fmt::join(words, ","));
}

Status RunExtents::set_input_shape(size_t input, const std::vector<int64_t>& dims) {
  const Port& port = inputs_[input];
  const Bounded::Places places = bounded_.places_of_input(input);
  const auto differs = [&] {
    return error_of(ErrorKind::shape, "input {} is [{}]; wanted {}", port.name,
                    fmt::join(dims, ","), wanted(input));
  };
  Sizes fixed = dims;
  for (const auto& [dimension, s] : places) {
    const auto d = static_cast<size_t>(dimension);
    const int64_t times = times_in(input, dimension, s);
    const hlo::Symbol& symbol = bounded_.symbols[s];
    if (dims[d] % times != 0 || dims[d] / times < symbol.least || dims[d] / times > symbol.bound)
      return differs();
    fixed[d] = port.dims[d];
  }
  if (fixed != port.dims) return differs();
  for (const auto& [dimension, s] : places) {
    const auto d = static_cast<size_t>(dimension);
    if (bounded_.is_own(s)) set_own(s, dims[d] / times_in(input, dimension, s));
  }
  shapes_[input] = dims;
  return {};
}

Status RunExtents::check() const {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (!shapes_[i]) continue;
    const Sizes now = dims_of(i);
    if (*shapes_[i] != now)
      return error_of(ErrorKind::shape,
                      "input {} is [{}]; wanted [{}], which follows from other inputs",
                      inputs_[i].name, fmt::join(*shapes_[i], ","), fmt::join(now, ","));
  }
  return check_asked(bounded_, extents_, asked_);
}

const std::vector<Port>& RunExtents::outputs() const {
  if (at_extents_) return *at_extents_;
  std::vector<Port>& ports = at_extents_.emplace(outputs_);
  for (size_t i = 0; i < ports.size(); ++i) {
    ports[i].dims = bounded_.actual_output(i, ports[i].dims, extents_);
    ports[i].shape = tensor::Shape::array(ports[i].shape.type(), ports[i].dims);
    ports[i].bytes = ports[i].shape.bytes();
  }
  return ports;
}

}  // namespace heddle::api
