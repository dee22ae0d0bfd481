#include "mixed_text.h"

#include <fmt/format.h>

#include <map>

namespace heddle::tools {
namespace {

using precision::MixedChoice;

// The codes of precision/mixed_graph.h, in words.
std::string_view reason(std::string_view code) {
  static const std::map<std::string_view, std::string_view> kReasons = {
      {"chain", "an operand never leaves its kernel"},
      {"copied", "its array is copied where it is computed or read"},
      {"cost", "16 bits gain nothing here"},
      {"gain", "16 bits gain less than 3 % in all"},
      {"input", "an input has the type of the interface"},
      {"loop", "a loop or a branch reads or computes it"},
      {"no-kernel", "no faster instruction for these types or extents"},
      {"output", "an output has the type of the interface"},
      {"range", "its values may leave the range of f16"},
      {"scalar", "one number: nothing is gained"},
      {"state", "the state of a training step is computed from it"},
      {"sums", "sums over many elements stay f32"},
      {"type", "it is not f32"},
      {"unknown", "the operator that computes it is unknown"},
      {"wide", "its range or meaning needs f32"},
  };
  const auto found = kReasons.find(code);
  return found == kReasons.end() ? code : found->second;
}

int fused_casts(const compiler::MixedReport& mixed) {
  return mixed.casts_kept - mixed.cast_kernels;
}

std::string run_text(const compiler::MixedTimes& run, const std::string& type) {
  return fmt::format("  a run: {:.4g} us predicted with {}, {:.4g} us in f32: {}{}\n",
                     run.mixed_ns / 1000, type, run.f32_ns / 1000,
                     run.pays ? "as chosen" : "stays f32",
                     run.measured ? ", as tuning measured" : "");
}

}  // namespace

std::string mixed_text(const compiler::MixedReport& mixed) {
  std::string text = fmt::format(
      "\nmixed precision, {}: {} products and {} values, predicted {:.4g} us for {:.4g} us in f32\n"
      "  casts: {} made, {} removed, {} fused, {} kernels that do nothing else\n",
      mixed.type, mixed.products, mixed.values, mixed.mixed_ns / 1000, mixed.f32_ns / 1000,
      mixed.casts_made, mixed.casts_made - mixed.casts_kept, fused_casts(mixed),
      mixed.cast_kernels);
  if (mixed.run) text += run_text(*mixed.run, mixed.type);
  std::map<std::string, int> islands;
  for (const MixedChoice& choice : mixed.choices)
    if (!choice.low) ++islands[choice.why];
  if (!islands.empty()) text += "  stay f32:\n";
  for (const auto& [code, count] : islands)
    text += fmt::format("    {:>4} {}: {}\n", count, code, reason(code));
  for (const MixedChoice& choice : mixed.choices)
    text += fmt::format("  {} {} {}{}\n", choice.is_product ? "product" : "value  ", choice.name,
                        choice.low ? mixed.type : "f32",
                        choice.low ? "" : fmt::format(" ({})", choice.why));
  return text;
}

nlohmann::ordered_json mixed_json(const compiler::MixedReport& mixed) {
  nlohmann::ordered_json json{{"type", mixed.type},
                              {"products", mixed.products},
                              {"values", mixed.values},
                              {"f32_ns", mixed.f32_ns},
                              {"mixed_ns", mixed.mixed_ns},
                              {"casts",
                               {{"made", mixed.casts_made},
                                {"removed", mixed.casts_made - mixed.casts_kept},
                                {"fused", fused_casts(mixed)},
                                {"left", mixed.cast_kernels}}},
                              {"choices", nlohmann::ordered_json::array()}};
  if (mixed.run)
    json["run"] = {{"f32_ns", mixed.run->f32_ns},
                   {"mixed_ns", mixed.run->mixed_ns},
                   {"chosen", mixed.run->pays ? mixed.type : "f32"},
                   {"by", mixed.run->measured ? "measurement" : "prediction"}};
  for (const MixedChoice& choice : mixed.choices)
    json["choices"].push_back({{"name", choice.name},
                               {"kind", choice.is_product ? "product" : "value"},
                               {"type", choice.low ? mixed.type : "f32"},
                               {"why", choice.why},
                               {"gain_ns", choice.gain_ns}});
  return json;
}

}  // namespace heddle::tools
