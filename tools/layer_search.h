// check --layers: which of a model's instructions is the first whose compiled value is wrong.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comparison.h"
#include "model_options.h"
#include "tensor/literal.h"

namespace heddle::tools {

struct LayerSearch {
  struct Found {
    std::string operation;           // HLO's name of the operator
    std::vector<std::string> nodes;  // of the model
    OutputCheck check;               // `name`: the instruction's
  };
  std::optional<Found> first;  // in the order of the graph; nothing: all are right
  int64_t instructions = 0;    // that were compared
};

// Compiles the graph with its instructions as results, some at a time, and compares each with the
// reference interpreter's, by tolerances as those of check. Results change what is fused, so a
// fault of fusion may not show: `first` is then nothing. `inputs`: as the model's. Errors: user (a
// compiled program; bounds, or shapes that depend on values), machine.
Result<LayerSearch> search_layers(const heddle_model* model, const CompileChoices& choices,
                                  const std::vector<tensor::Literal>& inputs);

std::string to_string(const LayerSearch& search);  // one line, without its end
nlohmann::ordered_json to_json(const LayerSearch& search);

}  // namespace heddle::tools
