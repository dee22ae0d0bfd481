#include "import/hlo_proto_header.h"

namespace heddle::import {
namespace {

constexpr std::string_view kTexts[] = {"alias_passthrough_params",
                                       "allow_spmd_sharding_propagation_to_parameters",
                                       "allow_spmd_sharding_propagation_to_output"};

}  // namespace

TextParts header_parts(const hlo::Module& module) {
  TextParts parts;
  if (module.replica_count != 1)
    parts.emplace_back("replica_count", std::to_string(module.replica_count));
  if (module.num_partitions != 1)
    parts.emplace_back("num_partitions", std::to_string(module.num_partitions));
  if (!module.states.empty()) parts.emplace_back("states", hlo::states_text(module.states));
  if (!module.symbols.empty()) parts.emplace_back("symbols", hlo::symbols_text(module.symbols));
  for (const auto& [key, value] : module.header)
    if (std::find(std::begin(kTexts), std::end(kTexts), key) != std::end(kTexts))
      parts.emplace_back(key, value);
  return parts;
}

void read_header_part(std::string_view key, const std::string& text, hlo::Module& module) {
  if (key == "replica_count" || key == "num_partitions") {
    const int64_t count = number_in(text);
    if (count < 1) fail("{} is {}, wanted at least 1", key, count);
    (key == "replica_count" ? module.replica_count : module.num_partitions) = count;
  } else if (key == "states") {
    module.states = value_or_throw(hlo::read_states(text));
  } else if (key == "symbols") {
    module.symbols = value_or_throw(hlo::read_symbols(text));
  } else if (std::find(std::begin(kTexts), std::end(kTexts), key) != std::end(kTexts)) {
    hlo::Lexer lexer(text);
    const std::string_view value = value_or_throw(lexer.value(false));
    if (!lexer.at_end()) fail("{} is malformed", key);
    module.header.emplace_back(key, value);
  }
}

}  // namespace heddle::import
