#include "cost/traffic.h"

#include <algorithm>
#include <map>

namespace heddle::cost {

double moved_bytes(const stage::PlacedFusion& placed) {
  double bytes = 0;
  for (size_t phase = 0; phase < placed.schedule.phases.size(); ++phase) {
    // By array: inputs, then stages of other phases. No load reads more points than its stage has.
    std::map<std::pair<int, size_t>, double> read;
    for (size_t i = 0; i < placed.graph.stages.size(); ++i) {
      const stage::Stage& stage = placed.graph.stages[i];
      if (placed.placement.stages[i].phase != static_cast<int>(phase)) continue;
      const double points = static_cast<double>(stage.out_elems() * stage.red_elems());
      for (const stage::Load& load : stage.loads) {
        double elems = 0, size = 0;
        std::pair<int, size_t> array;
        if (load.source.input >= 0) {
          const auto input = static_cast<size_t>(load.source.input);
          const tensor::Shape& shape = placed.graph.inputs[input].shape;
          elems = static_cast<double>(shape.elems());
          size = static_cast<double>(tensor::type_bytes(shape.type()));
          array = {0, input};
        } else {
          const size_t source = load.source.stage.index();
          if (placed.placement.stages[source].phase == static_cast<int>(phase)) continue;
          const stage::Stage& from = placed.graph.stages[source];
          elems = static_cast<double>(from.out_elems());
          const auto value = static_cast<size_t>(load.source.value);
          size = static_cast<double>(tensor::type_bytes(from.values[value].type));
          array = {1, source};
        }
        // Several loads of one array count at most all of it.
        double& sum = read[array];
        sum = std::min(elems * size, std::max(sum, std::min(elems, points) * size));
      }
      for (const stage::Value& value : stage.values)
        if (value.output >= 0 || placed.placement.stages[i].space == stage::Space::global)
          bytes += static_cast<double>(stage.out_elems() * tensor::type_bytes(value.type));
    }
    for (const auto& [array, size] : read) bytes += size;
  }
  return bytes;
}

double traffic_ns(const stage::PlacedFusion& placed, const target::Target& target) {
  const double bytes = moved_bytes(placed);
  double rate = target.memory_bandwidth_bytes_per_ns;
  for (size_t i = target.caches.size(); i-- > 0;)
    if (4 * bytes <= static_cast<double>(target.caches[i].bytes))
      rate = std::max(rate, target.caches[i].bandwidth_bytes_per_ns);
  const double launches = static_cast<double>(std::max<size_t>(1, placed.schedule.phases.size()));
  return bytes / std::max(rate, 1e-3) + launches * (target.launch_ns + target.serial_command_ns);
}

}  // namespace heddle::cost
